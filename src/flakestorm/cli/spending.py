"""`--max-runs`, `--max-tokens`, `--max-cost`, `--max-time`, `--dry-run`, `--all-trials`: what a command may spend."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import field

from flakestorm.core.record import Record
from flakestorm.engine.budget import Budget, Limits
from flakestorm.engine.events import Report

__all__ = ["Spending", "estimate", "expected", "spending_options"]

T = TypeVar("T")

_EARLIER = 5
"""How many of the newest saved reports are looked at for what a run costs."""


class Spending(Record, frozen=True):
    """What was said about spending.

    Args:
        limits: the most that may be spent.
        dry_run: only say what would be run.
        early: whether decided cells are left early; None where nothing was said.
    """

    limits: Limits = field(default_factory=Limits)
    dry_run: bool = False
    early: bool | None = None

    def options(self) -> dict[str, Any]:
        """As the API takes them; the time counts from now."""
        budget = Budget(self.limits, time.monotonic) if self.limits.any else None
        return {"budget": budget, "early": self.early, "dry_run": self.dry_run}


def spending_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options to a command, which then gets `spending`, a `Spending`."""
    above = click.FloatRange(min=0, min_open=True)
    options = [
        click.option("--max-runs", "runs", type=click.IntRange(min=1), help="Budget: agent runs."),
        click.option("--max-tokens", "tokens", type=click.IntRange(min=1), help="Budget: tokens of the agent's model."),
        click.option("--max-cost", "cost", type=above, help="Budget: US dollars, by list prices."),
        click.option("--max-time", "time_s", type=above, help="Budget: wall time, in seconds."),
        click.option("--dry-run", is_flag=True, help="Only say how many runs there would be, and their cost."),
        click.option(
            "--early-stop/--all-trials", "early", default=None,
            help="Leave decided cells (from 10 trials on, unless a score decides), or make every trial.",
        ),
    ]  # fmt: skip

    @wraps(command)
    def with_spending(*args: Any, **params: Any) -> T:
        limits = Limits(*(params.pop(name) for name in ("runs", "tokens", "cost", "time_s")))
        said = Spending(limits, params.pop("dry_run"), params.pop("early"))
        return command(*args, spending=said, **params)

    for option in reversed(options):
        option(with_spending)
    return with_spending


def estimate(report: Report, folder: Path) -> str:
    """What a dry run says: how many runs, and what earlier runs of the same agent let expect of their cost.

    Args:
        report: of the dry run.
        folder: the store's.
    """
    return f"{report.headline}\n{expected(report.planned, report.agent, folder)}"


def expected(planned: int, agent: str, folder: Path) -> str:
    """What so many runs of this agent would cost, by those that the store in this folder has."""
    runs = _known(agent, folder)
    parts = []
    for key, form in (("tokens", "{:,.0f} tokens"), ("cost", "{:.4f} US dollars")):
        known = [float(run[key]) for run in runs if isinstance(run.get(key), int | float)]
        if known:
            parts.append(f"about {form.format(planned * sum(known) / len(known))} ({len(known)} earlier runs)")
    if not parts:
        return "cost: unknown; no earlier run of this agent is saved whose model calls could be priced"
    unpriced = "" if len(parts) == 2 else "; cost: unknown, for the model has no list price"
    return f"cost: {', '.join(parts)}{unpriced}"


def _known(agent: str, folder: Path) -> list[Mapping[str, Any]]:
    """The newest saved runs of this agent."""
    from flakestorm.errors import Misuse
    from flakestorm.store.sqlite import Store

    try:
        with Store(folder) as store:
            documents = (store.document(entry.id) for entry in store.entries(limit=4 * _EARLIER))
            same = [found for found in documents if agent and found.get("agent") == agent]
            return [run for document in same[:_EARLIER] for run in document["runs"]]
    except Misuse:
        return []
