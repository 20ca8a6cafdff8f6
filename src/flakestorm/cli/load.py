"""`flakestorm load`."""

from __future__ import annotations

import click

from flakestorm import api
from flakestorm.cli.judging import carry_out, min_score_option, resume_option
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.spending import Spending, spending_options
from flakestorm.engine.events import Report

__all__ = ["load"]


def _levels(_: click.Context, param: click.Parameter, said: str | None) -> tuple[float, ...] | None:
    """`1,10,100`, or, of rates, also `0.5,2`."""
    if said is None:
        return None
    words = [word.strip() for word in said.split(",")]
    whole = param.name == "users"
    try:
        return tuple(int(word) if whole else float(word) for word in words)
    except ValueError:
        raise click.BadParameter(f"{said!r} is not a list of numbers, such as 1,10,100") from None


@click.command()
@global_options
@click.option("--users", callback=_levels, metavar="N,N,...", help="Users at once, level by level (load.users).")
@click.option(
    "--rates",
    callback=_levels,
    metavar="R,R,...",
    help="New users a second, come what may, by level (load.rates).",
)
@click.option("--runs", "each", type=click.IntRange(min=1), help="Runs of each level (load.runs).")
@min_score_option("the contract score that decides", full=100)
@resume_option
@spending_options
def load(
    options: Globals,
    users: tuple[float, ...] | None,
    rates: tuple[float, ...] | None,
    each: int | None,
    min_score: float | None,
    resume: str | None,
    spending: Spending,
) -> int:
    """Put more and more users on the agent at once, or at a rate, without chaos, and judge every answer.

    Each level is a row of the map; latencies are given as percentiles with their intervals. Fails as `contract run`
    does, and where a level breaks a latency limit (load.max_ms). --resume makes the levels that were not finished.
    """

    def judge(project: api.Project, opts: api.Options) -> Report:
        return project.under_load(opts, users=users, rates=rates, runs=each)

    return carry_out(options, "load", judge, min_score, resume, spending=spending)
