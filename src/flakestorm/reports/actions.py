"""What to do about a cell that did not pass, in the words of its own evidence: the call, the fault, the answer."""

from __future__ import annotations

from flakestorm.core.ledger import Firing
from flakestorm.engine.events import CellResult, RunResult
from flakestorm.reports.grid import Square
from flakestorm.reports.text import counted, one_line

__all__ = ["next_step"]

QUOTED = 160
"""Characters of an answer or an error that are quoted."""


def next_step(square: Square, cell: CellResult, run: RunResult | None) -> str:
    """One or two sentences; empty where the evidence says no more than the cell's reason does.

    Args:
        square: where the cell stands.
        cell: one that did not pass.
        run: the run it was judged on, None where that is not known.
    """
    if run is None:
        return ""
    if cell.verdict == "inconclusive":
        return _unfired(square, run) if run.planned and not run.fired else ""
    if not run.planned:
        return _ended(f"No fault was needed: on prompt {cell.prompt} {_said(run)}")
    if cell.also_fails_without_chaos:
        return _ended(
            f"Mend it without chaos first: prompt {cell.prompt} breaks this promise there too. Here {_said(run)}"
        )
    if not run.fired:
        return ""
    rest = len(run.fired) - 1
    more = f" and {counted(rest, 'more fault')}" if rest else ""
    return _ended(f"Look at what the agent does after {_firing(run.fired[0])}{more}: {_said(run)}")


def _unfired(square: Square, run: RunResult) -> str:
    """Why there is nothing to judge, and what would give something."""
    for word, firings in (("found nothing to change", run.idle), ("was kept from firing by another fault", run.masked)):
        if firings:
            return f"In run {run.id} {_firing(firings[0])} {word}; change its trigger or the fault before it."
    planned = one_line(", ".join(square.scenario.faults), QUOTED)
    called = one_line(", ".join(run.seen), QUOTED) or "nothing"
    return (
        f"Nothing fired of {planned}: on prompt {run.prompt} the agent called {called}. "
        "Aim the fault at what it calls, or use a prompt that needs the call."
    )


def _firing(firing: Firing) -> str:
    detail = f" ({one_line(firing.detail, 100)})" if firing.detail else ""
    return f"{one_line(str(firing.site), 100)} {one_line(firing.mode, 60)}{detail}"


def _said(run: RunResult) -> str:
    if run.error is not None:
        return f"it gave no answer but “{one_line(run.error, QUOTED)}”"
    return f"it answered “{one_line(run.output, QUOTED)}”" if run.output.strip() else "its answer was empty"


def _ended(sentence: str) -> str:
    """The sentence with a full stop, unless a quotation at its end has one."""
    return sentence if sentence.endswith((".”", "!”", "?”")) else f"{sentence}."
