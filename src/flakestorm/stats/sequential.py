"""Tests that may be looked at after every run, and stopped at any of them.

Two versions are compared pair by pair (same task, same seed). A pair is *lost* when only the old version passed, *won*
when only the new one did, and *tied* otherwise. Both questions asked of the pairs are answered by an e-value: a number
whose expectation is at most 1 while the hypothesis holds, so that by Ville's inequality it ever reaches `1 / alpha`
with probability at most `alpha`, whenever one looks (G. Shafer, "Testing by betting", JRSS A 184, 2021; P. Grunwald,
R. de Heide, W. Koolen, "Safe testing", JRSS B 86, 2024).

`Sprt` is A. Wald's sequential probability ratio test ("Sequential tests of statistical hypotheses", 1945), for a coin
that is one of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, log1p
from typing import Literal

__all__ = ["Sprt", "pairs_needed", "regression_evidence", "sameness_evidence"]

_BETS = 40
"""How many bets `sameness_evidence` spreads its capital over; more changes the result by less than a pair."""

_FAR = 1_000_000
"""More pairs than this nobody will run."""


def regression_evidence(lost: int, won: int) -> float:
    """The e-value against "the new version loses no more often than it wins".

    Of the pairs that differ, each is lost with some probability p; the hypothesis is p <= 1/2. The alternative is p
    uniform on 1/2..1, which gives ``2^(N+1) B(L+1, W+1) P[Bin(N+1, 1/2) >= W+1]`` for N = L + W: the sum of C(N+1, i)
    over i > W, divided by (N+1) C(N, W). Its first term is 1/(W+1), and each is a plain ratio of the one before, so
    nothing is lost to huge or tiny factors. Ties say nothing about p.

    Raises:
        ValueError: a count is negative.
    """
    if lost < 0 or won < 0:
        raise ValueError(f"cannot have {lost} lost and {won} won pairs")
    n = lost + won
    term = total = 1 / (won + 1)
    for i in range(won + 1, n + 1):
        term *= (n + 1 - i) / (i + 1)
        total += term
    return total


def sameness_evidence(lost: int, won: int, tied: int, *, margin: float) -> float:
    """The e-value against "the new version's pass rate is lower by `margin` or more".

    Each pair pays 1 + b (x + margin), where x is -1, 0 or 1 for lost, tied and won: a fair bet at worst while the
    hypothesis holds, for any stake b in 0..1/(1 - margin). The capital is spread evenly over stakes, since the best one
    depends on how often pairs differ (I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by
    betting", JRSS B 86, 2024).

    Args:
        margin: how much worse is still acceptable, as a difference of rates, in 0..1 exclusive.

    Raises:
        ValueError: a count is negative, or the margin is not strictly between 0 and 1.
    """
    if min(lost, won, tied) < 0:
        raise ValueError(f"cannot have {lost} lost, {won} won and {tied} tied pairs")
    return _exp(_log_sameness(lost, won, tied, margin))


def _log_sameness(lost: float, won: float, tied: float, margin: float) -> float:
    if not 0 < margin < 1:
        raise ValueError(f"the margin is a difference of rates between 0 and 1, not {margin}")
    most = 1 / (1 - margin)
    stakes = [most * (i + 0.5) / _BETS for i in range(_BETS)]
    capitals = [
        won * log1p(b * (1 + margin)) + tied * log1p(b * margin) + lost * log1p(-b * (1 - margin)) for b in stakes
    ]
    best = max(capitals)
    return best + log(sum(exp(c - best) for c in capitals) / _BETS)


def pairs_needed(lost: int, won: int, tied: int, *, margin: float, alpha: float) -> int | None:
    """How many more pairs would show that nothing got worse by `margin`, if they go on as they went so far.

    Every outcome is counted half a time more than it was seen, so that a few equal pairs promise nothing for ever.

    Returns:
        0 if they are enough already; None if pairs like these would never show it.

    Raises:
        ValueError: as `sameness_evidence`; alpha is not strictly between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is a probability strictly between 0 and 1, not {alpha}")
    goal, n = -log(alpha), lost + won + tied
    if _log_sameness(lost, won, tied, margin) >= goal:
        return 0
    shares = [(count + 0.5) / (n + 1.5) for count in (lost, won, tied)]

    def enough(more: int) -> bool:
        a, b, c = (count + more * share for count, share in zip((lost, won, tied), shares, strict=True))
        return _log_sameness(a, b, c, margin) >= goal

    high = 1
    while not enough(high):
        high *= 2
        if high > _FAR:
            return None
    low = high // 2  # not enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class Sprt:
    """Which of two rates a coin has, in as few throws as can be.

    Args:
        p0, p1: the two rates, p0 < p1, both strictly between 0 and 1.
        alpha: the chance of deciding for p1 where p0 holds; beta: the other way round.

    Raises:
        ValueError: the rates or the error chances are not in order.
    """

    p0: float
    p1: float
    alpha: float = 0.02
    beta: float = 0.02

    def __post_init__(self) -> None:
        if not 0 < self.p0 < self.p1 < 1:
            raise ValueError(f"two rates with 0 < p0 < p1 < 1 are needed, not {self.p0} and {self.p1}")
        if not (0 < self.alpha < 0.5 and 0 < self.beta < 0.5):
            raise ValueError(f"alpha and beta are chances between 0 and 0.5, not {self.alpha} and {self.beta}")

    def evidence(self, hits: int, misses: int) -> float:
        """The logarithm of how much likelier the throws are under p1 than under p0."""
        return hits * log(self.p1 / self.p0) + misses * log((1 - self.p1) / (1 - self.p0))

    def decide(self, hits: int, misses: int) -> Literal["p0", "p1"] | None:
        """The rate that is decided for; None to throw again."""
        evidence = self.evidence(hits, misses)
        if evidence >= log((1 - self.beta) / self.alpha):
            return "p1"
        return "p0" if evidence <= log(self.beta / (1 - self.alpha)) else None


def _exp(value: float) -> float:
    try:
        return exp(value)
    except OverflowError:
        return inf
