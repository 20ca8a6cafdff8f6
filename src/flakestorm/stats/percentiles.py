"""Percentiles and their 95% intervals, honest for few measurements.

An interval goes from one measured value to another: from order statistics, with the binomial distribution saying which
(H. A. David, H. N. Nagaraja, "Order Statistics", 3rd edition, 2003, section 7.1; G. J. Hahn, W. Q. Meeker, "Statistical
Intervals", 1991, section 5.2). Nothing is assumed of how values are distributed, so it holds for latencies, whose tails
are long. Where there are too few values for both ends, there is no interval and no percentile is given: the largest of
20 values says next to nothing of a 99th percentile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, lgamma, log, log1p

__all__ = ["Percentile", "least_for", "percentile"]

_MISSED = 0.05


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile, in the unit of the values.

    Args:
        percent: which, above 0 and below 100.
        value: the smallest measured value that at least so many percent of the values do not exceed (nearest rank).
        low, high: measured values; the interval from one to the other holds the true percentile in at least 95% of
            samples of independent values.
        n: how many values there were.
    """

    percent: float
    value: float
    low: float
    high: float
    n: int


def percentile(values: Sequence[float], percent: float) -> Percentile | None:
    """The percentile of these values.

    Args:
        values: in any order; infinite ones are larger than all others, as for something that never came.
        percent: above 0 and below 100.

    Returns:
        None when there are fewer than `least_for(percent)` values.

    Raises:
        ValueError: `percent` is out of bounds.
    """
    least, n = least_for(percent), len(values)
    if n < least:
        return None
    share, ordered = percent / 100, sorted(values)
    below = 0.0  # P[Bin(n, share) <= k]
    low = high = None
    for k in range(n):
        below += _binomial(k, n, share)
        if below <= _MISSED / 2:
            low = k + 1  # chance puts at most k values below the percentile rarely enough: this rank is below it
        if high is None and below >= 1 - _MISSED / 2:
            high = k
    if low is None or high is None:  # pragma: no cover -- rounding at the very edge of `least_for`
        return None
    return Percentile(percent, ordered[ceil(round(share * n, 9)) - 1], ordered[low - 1], ordered[high], n)


def least_for(percent: float) -> int:
    """The fewest values whose smallest and largest enclose this percentile with 97.5% certainty at each end.

    Raises:
        ValueError: `percent` is not above 0 and below 100.
    """
    if not 0 < percent < 100:
        raise ValueError(f"a percentile is above 0 and below 100, not {percent:g}")
    rarer = min(percent, 100 - percent) / 100
    return ceil(round(log(_MISSED / 2) / log1p(-rarer), 9))


def _binomial(k: int, n: int, share: float) -> float:
    """P[Bin(n, share) = k], by logarithms, because n may be large."""
    ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return exp(ways + k * log(share) + (n - k) * log1p(-share))
