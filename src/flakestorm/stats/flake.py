"""Flakiness: how often the same cell, run again, gives another verdict."""

from __future__ import annotations

from collections.abc import Iterable

from flakestorm.core.record import Record
from flakestorm.stats.intervals import wilson

__all__ = ["Flakes", "flake_rate"]


class Flakes(Record, frozen=True):
    """How flaky the cells of a run are.

    Args:
        rate: the share of cells that both passed and failed; low, high: its 95% interval (Wilson's).
        flaky: how many cells did; cells: how many were run at least twice.
        disagreement: the mean chance that two runs of one cell disagree, estimated per cell without bias.
    """

    rate: float
    low: float
    high: float
    flaky: int
    cells: int
    disagreement: float


def flake_rate(cells: Iterable[tuple[int, int]]) -> Flakes | None:
    """The flake rate over cells, each `(passed, conclusive runs)`; cells run fewer than twice cannot say.

    Returns:
        None when no cell was run twice.

    Raises:
        ValueError: a cell has more passes than runs.
    """
    judged = list(cells)
    for passed, runs in judged:
        if not 0 <= passed <= runs:
            raise ValueError(f"cannot have {passed} passed of {runs}")
    known = [(passed, runs) for passed, runs in judged if runs >= 2]
    if not known:
        return None
    flaky = sum(0 < passed < runs for passed, runs in known)
    low, high = wilson(flaky, len(known)) or (0.0, 1.0)
    chances = [2 * passed * (runs - passed) / (runs * (runs - 1)) for passed, runs in known]
    return Flakes(flaky / len(known), low, high, flaky, len(known), sum(chances) / len(known))
