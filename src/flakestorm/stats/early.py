"""Stopping the trials of a cell once its verdict is decided.

A cell passes when at least a share of its trials pass. Two things decide it before all have been run. Arithmetic: so
many have passed, or failed, that the rest cannot matter (curtailment). And foresight: given what was seen, the verdict
of the full number of trials would differ with a chance below `RISK`. The chance is the beta-binomial's, from a uniform
prior on the cell's rate, so a handful of equal results decides a cell that is clear and not one that is close.

It is looked at after every trial, and each look may err, most of all where the true rate is what is asked for. So one
look is given a small part of the risk. Worked out exactly for 20 to 1,000 trials and rates around the one asked for,
all looks together then stay below `RISK`, whatever the true rate is.
"""

from __future__ import annotations

from math import ceil, comb
from typing import Literal

__all__ = ["RISK", "decided", "required"]

RISK = 0.001
"""How likely stopping may be to give another verdict than all trials would."""

_LOOKS = 20
"""One look's part of the risk is this fraction of it. A full part for each would err in up to 1.7% of 1,000 trials."""


def required(rate: float, trials: int) -> int:
    """How many of the trials must pass for a share of at least `rate`."""
    return max(0, ceil(rate * trials - 1e-9))  # 0.8 of 5 is 4, whatever 0.8 * 5 is in binary


def decided(
    passed: int, failed: int, *, trials: int, rate: float, risk: float = RISK
) -> Literal["pass", "fail"] | None:
    """What the cell's verdict is going to be; None while it is open.

    Args:
        passed, failed: the trials so far.
        trials: how many there are to be.
        rate: `min_pass_rate`, 0..1.
        risk: how likely another verdict may be, all looks together; 0 leaves arithmetic alone. What foresight says is
            said only where the trials so far say it too: they are what is reported.

    Raises:
        ValueError: more trials than there are to be, or a rate outside 0..1.
    """
    left = trials - passed - failed
    if passed < 0 or failed < 0 or left < 0:
        raise ValueError(f"cannot have {passed} passed and {failed} failed of {trials} trials")
    if not 0 <= rate <= 1:
        raise ValueError(f"a pass rate is in 0..1, not {rate}")
    need = required(rate, trials) - passed
    if need <= 0:
        return "pass"
    if need > left:
        return "fail"
    if not passed + failed:
        return None
    chance = _at_least(need, left, passed + 1, failed + 1)
    if passed / (passed + failed) >= rate:
        return "pass" if 1 - chance <= risk / _LOOKS else None
    return "fail" if chance <= risk / _LOOKS else None


def _at_least(need: int, left: int, a: int, b: int) -> float:
    """P[at least `need` of `left` pass] when the rate is Beta(a, b): in whole numbers, so it is exact."""
    ways = sum(comb(a - 1 + i, i) * comb(b - 1 + left - i, left - i) for i in range(need, left + 1))
    return ways / comb(a + b - 1 + left, left)
