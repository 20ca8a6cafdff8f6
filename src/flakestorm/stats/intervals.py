"""Rates and their 95% intervals, honest for few runs and at 0% and 100%.

The interval is Wilson's (E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
JASA 22, 1927): it never leaves 0..1 and never has zero width, so "4 of 4 passed" does not claim certainty.

Scores add two complications. Outcomes carry weights, so they count as fewer equal ones: Kish's effective sample size
(L. Kish, "Survey Sampling", 1965). And outcomes judged on the same run tend to stand or fall together: an agent that
crashed breaks four promises at once, which is one observation and not four. The spread of the score between runs shows
how much of that there is (the effective sample size of E. L. Korn and B. I. Graubard, "Confidence intervals for
proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24, 1998).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from math import sqrt

from flakestorm.core.record import Record

__all__ = ["Z95", "Rate", "Weighed", "in_places", "weighted_rate", "wilson"]

Z95 = 1.959963984540054
"""The 97.5% point of the normal distribution: 95% two-sided."""


def wilson(passed: float, n: float, z: float = Z95) -> tuple[float, float] | None:
    """The Wilson score interval of a proportion.

    Args:
        passed: how many of the `n` passed; fractions are meaningful for effective sample sizes.
        n: number of trials.
        z: normal quantile of the confidence wanted.

    Returns:
        `(low, high)` with 0 <= low <= passed/n <= high <= 1 and low < high; None when `n` is 0.

    Raises:
        ValueError: `passed` is not in 0..n.
    """
    if not 0 <= passed <= n:
        raise ValueError(f"cannot have {passed} passed of {n}")
    return _wilson(passed, n, z) if n else None


def _wilson(passed: float, n: float, z: float) -> tuple[float, float]:
    rate = passed / n
    scale = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / scale
    half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / scale
    low = 0.0 if passed == 0 else max(0.0, centre - half)
    high = 1.0 if passed == n else min(1.0, centre + half)
    return low, high


def in_places(value: float, places: int, *, full: float = 1.0) -> float:
    """A score to so many decimal places, where only full marks become full marks: 0.99997 is 0.9999 and not 1, since
    something failed.

    Args:
        value: the score, at most `full`.
        places: decimal places kept.
        full: the score where nothing failed.
    """
    rounded = round(value, places)
    return round(full - 10.0**-places, places) if value < full <= rounded else rounded


class Weighed(Record, frozen=True):
    """One judged pass or fail.

    Args:
        passed: which of the two.
        weight: how much it counts, above 0.
        run: what it was judged on; outcomes of one run are not independent of one another.
    """

    passed: bool
    weight: float
    run: Hashable


class Rate(Record, frozen=True):
    """A weighted rate, 0..1, with its 95% interval and the number of equal, independent outcomes it is worth."""

    value: float
    low: float
    high: float
    effective_n: float


def weighted_rate(outcomes: Iterable[Weighed], z: float = Z95) -> Rate | None:
    """sum(weight of passed) / sum(weight), with a Wilson interval over the effective sample size.

    The effective sample size lies between two bounds: Kish's over runs (outcomes of one run always agree) and Kish's
    over outcomes (they have nothing to do with one another). In between, the spread of the rate between runs decides.
    When everything passed or everything failed there is no spread to learn from, and the run counts as one
    observation. With one outcome per run and equal weights this is the plain Wilson interval.

    Returns:
        None when there are no outcomes.

    Raises:
        ValueError: a weight is not above 0.
    """
    judged = list(outcomes)
    if not judged:
        return None
    if any(not o.weight > 0 for o in judged):
        raise ValueError("every weight must be above 0")
    total = sum(o.weight for o in judged)
    runs: dict[Hashable, float] = defaultdict(float)
    good: dict[Hashable, float] = defaultdict(float)
    for o in judged:
        runs[o.run] += o.weight
        good[o.run] += o.weight if o.passed else 0.0
    value = 1.0 if all(o.passed for o in judged) else sum(good.values()) / total  # never 0.9999... for "all passed"
    n = _effective_n(
        value,
        total=total,
        between=sum((good[run] - value * weight) ** 2 for run, weight in runs.items()),
        runs=len(runs),
        fewest=total * total / sum(w * w for w in runs.values()),
        most=total * total / sum(o.weight**2 for o in judged),
    )
    low, high = _wilson(value * n, n, z)
    return Rate(value, low, high, effective_n=n)


def _effective_n(value: float, *, total: float, between: float, runs: int, fewest: float, most: float) -> float:
    """Korn and Graubard's p(1-p)/variance, the variance being that of a ratio over runs, held within its bounds."""
    if value in (0.0, 1.0) or runs < 2:
        return fewest
    variance = between / (total * total) * runs / (runs - 1)
    return most if variance == 0 else min(most, max(fewest, value * (1 - value) / variance))
