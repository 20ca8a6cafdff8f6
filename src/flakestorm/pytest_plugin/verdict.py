"""What a trial proves, and what a failure shows of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from flakestorm.errors import Misuse
from flakestorm.pytest_plugin.marks import Mark
from flakestorm.pytest_plugin.notes import RUNS, TAPED, TRIAL, UNJUDGED
from flakestorm.pytest_plugin.runs import Run, inconclusive
from flakestorm.tape.text import block, plain

__all__ = ["demand_a_fault", "properties", "tell", "unfired"]

_SHOWN = 40
"""How many exchanges of a run are shown; the rest is on its tape."""


def demand_a_fault(item: pytest.Item) -> None:
    """End a test that got through as inconclusive, where faults were planned and none fired."""
    runs = item.stash.get(RUNS, [])
    reason = _idle(item) if not runs else unfired(runs)
    if reason:
        item.stash[UNJUDGED] = "chance" if runs and all(run.chance for run in runs) else "unfired"
        inconclusive(reason)


def _idle(item: pytest.Item) -> str:
    try:
        mark = Mark.of(item)
    except Misuse as error:
        pytest.fail(str(error), pytrace=False)
    if mark == Mark(trials=mark.trials, min_pass_rate=mark.min_pass_rate, config=mark.config, seed=mark.seed):
        return ""
    return (
        "no planned fault fired, for the test got no answer of the agent; call agent_run(...), and await it in an "
        "async test"
    )


def unfired(runs: Sequence[Run]) -> str:
    """Why runs prove nothing of the faults planned for them; empty where one fired, or none was planned."""
    planned = list(dict.fromkeys(line for run in runs for line in run.planned))
    if not planned or any(run.fired for run in runs):
        return ""
    seen = list(dict.fromkeys(name for run in runs for name in run.seen))
    names = f"tools seen: {', '.join(plain(name) for name in seen)}" if seen else "no tool was seen"
    return f"no planned fault fired ({'; '.join(planned)}); {names}"


def tell(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Add to a report what the agent's runs were like, where it tells of a failure."""
    runs = item.stash.get(RUNS, [])
    if report.when == "teardown" and TRIAL not in item.stash:
        report.user_properties += properties(runs)
    if call.excinfo is None or report.when != "call" or not report.failed:
        return
    error, why = call.excinfo.value, unfired(runs)
    if isinstance(error, pytest.fail.Exception) and str(error).startswith("inconclusive:"):
        _headline(report, str(error))
    elif why:  # what it asserts may well be false, but of a world that was not broken
        _headline(
            report, f"inconclusive: {why}; without a fault, the test fails: {call.excinfo.exconly(tryshort=True)}"
        )
    if TAPED in item.stash and (problems := item.stash[TAPED].problems()):
        add_section(report, "flakestorm tape", item.stash[TAPED].told(problems))
    for number, run in enumerate(runs, 1):
        add_section(report, f"flakestorm run {number} of {len(runs)}", "\n".join(_lines(run)))


def properties(runs: Sequence[Run]) -> list[tuple[str, object]]:
    """What JUnit reports say of these runs."""
    if not runs:
        return []
    return [
        ("flakestorm.runs", len(runs)),
        ("flakestorm.fired", ", ".join(dict.fromkeys(f"{f.site}={f.mode}" for run in runs for f in run.fired))),
        ("flakestorm.seed", runs[0].seed),
        ("flakestorm.reproduce", runs[-1].reproduce),
    ]


def add_section(report: pytest.TestReport, name: str, text: str) -> None:
    """Show this with the failure itself, so that it is there however little of the output is."""
    add: Any = getattr(report.longrepr, "addsection", None)
    if add is None:
        report.sections.append((name, text))
    else:
        add(name, text)


def _headline(report: pytest.TestReport, text: str) -> None:
    """What one-line summaries and JUnit say of a failure."""
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = text


def _lines(run: Run) -> Iterator[str]:
    yield f"input  {plain(run.input[:200])}"
    yield f"error  {plain(run.error[:500])}" if run.error else f"output {plain(run.output[:500])}"
    for firing in run.fired:
        yield f"fired  {plain(str(firing.site))} {firing.mode}" + (f": {plain(firing.detail)}" if firing.detail else "")
    if run.planned and not run.fired:
        yield f"fired  none of {'; '.join(run.planned)}"
    exchanges = run.tape.exchanges
    for exchange in exchanges[:_SHOWN]:
        yield from block(exchange)
    if len(exchanges) > _SHOWN:
        yield f"... and {len(exchanges) - _SHOWN} more on the tape"
    yield f"tape   {run.tape.path}"
    yield f"seed   {run.seed}"
    yield f"again  {run.reproduce}"
