"""Verdicts: `pass`, `fail` or `inconclusive`. Truth has three values, and inconclusive is never a pass. Scores are
what many verdicts add up to."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from flakestorm.core.record import Record

__all__ = ["Outcome", "Score", "Verdict", "failed", "inconclusive", "passed"]

Outcome = Literal["pass", "fail", "inconclusive"]


class Verdict(Record, frozen=True):
    """What a check says about one run.

    Args:
        outcome: `pass`, `fail` or `inconclusive`.
        reason: why, in words a reader of the report understands without the code; quotes the evidence.
    """

    outcome: Outcome
    reason: str = ""

    @property
    def conclusive(self) -> bool:
        return self.outcome != "inconclusive"

    def negated(self) -> Verdict:
        """Pass and fail swapped; inconclusive stays inconclusive."""
        if self.outcome == "inconclusive":
            return self
        return replace(self, outcome="fail" if self.outcome == "pass" else "pass", reason=f"negated: {self.reason}")


class Score(Record, frozen=True):
    """A rate with the evidence behind it.

    Args:
        value: 0..1 for robustness and chaos, 0..100 for contract resilience; None where nothing was conclusive.
        low, high: 95% interval on the same scale; None where nothing was conclusive.
        passed, conclusive, inconclusive: how many judged cells (one per run) it rests on.
        critical_failed: whether a critical invariant failed.
    """

    value: float | None
    low: float | None
    high: float | None
    passed: int
    conclusive: int
    inconclusive: int
    critical_failed: bool = False


def passed(reason: str = "") -> Verdict:
    """The promise was kept."""
    return Verdict("pass", reason)


def failed(reason: str) -> Verdict:
    """The promise was broken."""
    return Verdict("fail", reason)


def inconclusive(reason: str) -> Verdict:
    """It could not be judged; the reason says what was missing."""
    return Verdict("inconclusive", reason)
