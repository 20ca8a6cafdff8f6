"""Verdicts: `pass`, `fail` or `inconclusive`. Truth has three values, and inconclusive is never a pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from flakestorm.core.record import Record

__all__ = ["Outcome", "Verdict", "failed", "inconclusive", "passed"]

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


def passed(reason: str = "") -> Verdict:
    """The promise was kept."""
    return Verdict("pass", reason)


def failed(reason: str) -> Verdict:
    """The promise was broken."""
    return Verdict("fail", reason)


def inconclusive(reason: str) -> Verdict:
    """It could not be judged; the reason says what was missing."""
    return Verdict("inconclusive", reason)
