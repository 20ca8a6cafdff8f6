"""Differences, with their intervals: of two rates, and of a quantity measured in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from flakestorm.stats.intervals import Z95
from flakestorm.stats.student import t_quantile

__all__ = ["Difference", "agresti_caffo", "mean_difference"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference (second minus first) with its interval, and how many observations of each it rests on."""

    value: float
    low: float
    high: float
    first_n: int
    second_n: int


def agresti_caffo(passed1: int, n1: int, passed2: int, n2: int, z: float = Z95) -> Difference | None:
    """rate2 - rate1 of independent samples, one pass and one fail added to each (A. Agresti, B. Caffo, "Simple and
    effective confidence intervals for proportions and differences of proportions", The American Statistician 54, 2000).

    `value` is the plain difference of rates; the interval is centred on the adjusted one, cut to -1..1, and covers well
    near 0 and 1, where Newcombe's does not.

    Returns:
        None when one of the samples is empty.

    Raises:
        ValueError: a sample has more passes than runs.
    """
    for passed, n in ((passed1, n1), (passed2, n2)):
        if not 0 <= passed <= n:
            raise ValueError(f"cannot have {passed} passed of {n}")
    if not n1 or not n2:
        return None
    rate1, rate2 = (passed1 + 1) / (n1 + 2), (passed2 + 1) / (n2 + 2)
    half = z * sqrt(rate1 * (1 - rate1) / (n1 + 2) + rate2 * (1 - rate2) / (n2 + 2))
    centre = rate2 - rate1
    return Difference(passed2 / n2 - passed1 / n1, max(-1.0, centre - half), min(1.0, centre + half), n1, n2)


def mean_difference(pairs: Sequence[tuple[float, float]], confidence: float = 0.95) -> Difference | None:
    """The mean of second - first over pairs, with Student's interval; None for fewer than two pairs.

    Equal differences have no spread, and then the interval has no width: that is what was measured, in units that say
    themselves how exactly.
    """
    n = len(pairs)
    if n < 2:
        return None
    gaps = [second - first for first, second in pairs]
    mean = sum(gaps) / n
    half = t_quantile(confidence, n - 1) * sqrt(sum((gap - mean) ** 2 for gap in gaps) / (n - 1) / n)
    return Difference(mean, mean - half, mean + half, n, n)
