"""Where a rate changes along a line of points, each with so many failures of so many trials.

The line is cut into the few stretches of one rate each that explain the counts best (the segment neighbourhood search
of I. Auger and C. Lawrence, "Algorithms for the optimal identification of segment neighborhoods", 1989), each cut
having to earn its place. Where exactly a cut lies is a distribution over all positions, also those that nobody has
tried; trying its median next is probabilistic bisection (M. Horstein, 1963; R. Waeber, P. Frazier, S. Henderson, 2013):
a misleading point is outvoted by its neighbours, where plain bisection would go astray for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import NamedTuple

__all__ = ["Change", "Count", "changes"]

_EARNED = 4.0
"""The log-likelihood that one more cut must gain: its rate and its place are both chosen to fit."""


class Count(NamedTuple):
    """At position `k`, `failed` of `n`; fractions are meaningful where trials are weighed."""

    k: int
    failed: float
    n: float


@dataclass(frozen=True, slots=True)
class Change:
    """A place where the rate changes.

    Args:
        before, after: the rates on its two sides.
        first: the first position that it may be at: the first point of the new rate.
        chances: the probability of each position from `first` on.
    """

    before: float
    after: float
    first: int
    chances: tuple[float, ...]

    @property
    def rise(self) -> float:
        """By how much the rate is higher after the change; below 0 where it is lower."""
        return self.after - self.before

    @property
    def likeliest(self) -> tuple[int, float]:
        """The likeliest position, and its probability."""
        best = max(range(len(self.chances)), key=self.chances.__getitem__)
        return self.first + best, self.chances[best]

    @property
    def middle(self) -> int:
        """The point to try next: whether it has the new rate is as open as can be."""
        total, best = 0.0, (0.5, self.first)
        for at, chance in enumerate(self.chances):
            total += chance
            best = min(best, (abs(total - 0.5), self.first + at))
        return best[1]


def changes(counts: Sequence[Count], *, most: int = 3) -> list[Change]:
    """The changes of rate along these points.

    Args:
        counts: at least one, in order of position, each with `n` above 0.
        most: so many at most.
    """
    borders = _cuts(counts, most)
    ends = [0, *borders, len(counts)]
    found = []
    for at, border in enumerate(borders):
        left, right = counts[ends[at] : border], counts[border : ends[at + 2]]
        found.append(_change(left, right))
    return found


def _change(left: Sequence[Count], right: Sequence[Count]) -> Change:
    """Where between the first point of the left stretch and the last of the right one the rate changes."""
    before, after = _rate(left), _rate(right)
    points = [*left, *right]
    first, last = points[0].k + 1, points[-1].k
    weight, at = 0.0, 1  # points before `at` are of the old rate
    weights = []
    for position in range(first, last + 1):
        while points[at].k < position:
            weight += _fit(points[at], before) - _fit(points[at], after)
            at += 1
        weights.append(weight)
    top = max(weights)
    chances = [exp(each - top) for each in weights]
    total = sum(chances)
    return Change(before, after, first, tuple(each / total for each in chances))


def _cuts(counts: Sequence[Count], most: int) -> list[int]:
    """The indexes at which new stretches begin."""
    size = len(counts)
    failed, n = [0.0], [0.0]
    for count in counts:
        failed.append(failed[-1] + count.failed)
        n.append(n[-1] + count.n)

    def fit(begin: int, end: int) -> float:
        return _likelihood(failed[end] - failed[begin], n[end] - n[begin])

    best = [[fit(0, end) if end else 0.0 for end in range(size + 1)]]
    back: list[list[int]] = [[0] * (size + 1)]
    for cuts in range(1, min(most, size - 1) + 1):
        row, cut = [float("-inf")] * (size + 1), [0] * (size + 1)
        for end in range(cuts + 1, size + 1):
            row[end], cut[end] = max((best[-1][at] + fit(at, end), at) for at in range(cuts, end))
        best.append(row)
        back.append(cut)
    chosen = max(range(len(best)), key=lambda cuts: best[cuts][size] - _EARNED * cuts)
    found, end = [], size
    for cuts in range(chosen, 0, -1):
        end = back[cuts][end]
        found.append(end)
    return found[::-1]


def _likelihood(failed: float, n: float) -> float:
    """Of the counts of one stretch, by the rate that explains them best."""
    total = 0.0
    for part in (failed, n - failed):
        if part > 0:
            total += part * log(part / n)
    return total


def _rate(counts: Sequence[Count]) -> float:
    """Never 0 or 1: no number of trials shows that."""
    return (sum(count.failed for count in counts) + 0.5) / (sum(count.n for count in counts) + 1)


def _fit(count: Count, rate: float) -> float:
    return count.failed * log(rate) + (count.n - count.failed) * log(1 - rate)
