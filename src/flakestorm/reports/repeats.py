"""What repeated trials say, in words that every form of report shares."""

from __future__ import annotations

from collections.abc import Iterator

from flakestorm.engine.events import Report
from flakestorm.engine.repeats import reliability, repeated
from flakestorm.reports.text import counted

__all__ = ["repeats_lines"]

_SHOWN = 4
"""pass^1 to this one are shown, and the last there is; the JSON report has all of them."""


def repeats_lines(report: Report) -> Iterator[str]:
    """pass^k, each with its interval and its tasks, and the flake rate; nothing where nothing was repeated. Runs
    that were repeated to put load on the agent are left out."""
    found = reliability(repeated(report), saved=report.saved)
    if found is None:
        return
    for each in (k for k in found.pass_k if k.k <= _SHOWN or k.k == len(found.pass_k)):
        yield (
            f"pass^{each.k}  {each.value:.3f} [{each.low:.3f}, {each.high:.3f}]  ({counted(each.tasks, 'task')}"
            + (f", {each.left_out} with fewer conclusive runs left out" if each.left_out else "")
            + ")"
        )
    if found.flakes is not None:
        flakes = found.flakes
        yield (
            f"flake rate  {flakes.rate:.3f} [{flakes.low:.3f}, {flakes.high:.3f}]  "
            f"({flakes.flaky} of {counted(flakes.cells, 'cell')} both passed and failed)"
        )
