"""What a command may spend, and what it has spent.

A budget is asked before each run is started, so the number of runs is kept exactly. Tokens, cost and time are known
when a run ends: runs that are under way when the budget is reached are still finished, and nothing more is started.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from flakestorm.core.record import Record
from flakestorm.engine.events import RunResult

__all__ = ["Budget", "Limits"]


class Limits(Record, frozen=True):
    """The most a command may spend; None is no limit.

    Args:
        runs: agent runs, baselines and controls included.
        tokens: of the agent's model calls; cost: of them, in US dollars.
        time_s: wall time, in seconds.
    """

    runs: int | None = None
    tokens: int | None = None
    cost: float | None = None
    time_s: float | None = None

    @property
    def any(self) -> bool:
        """Whether there is a limit at all."""
        return any(limit is not None for limit in (self.runs, self.tokens, self.cost, self.time_s))


class Budget:
    """Limits with what has been spent of them; shared by the phases of a command.

    Args:
        limits: the most that may be spent.
        monotonic: a clock in seconds; the time counts from now.
    """

    def __init__(self, limits: Limits, monotonic: Callable[[], float]) -> None:
        self._limits, self._monotonic = limits, monotonic
        self._began_s = monotonic()
        self._runs = self._tokens = 0
        self._cost = 0.0
        self._unknown: set[str] = set()
        self._silent = 0
        self.reached = ""
        """The limit that a run was refused for, in words; empty while there was none."""

    def claim(self) -> bool:
        """Whether one more run may be started; it counts as started then."""
        over = self._over()
        if over:
            self.reached = self.reached or over
            return False
        self._runs += 1
        return True

    def spend(self, run: RunResult) -> None:
        """Count what a finished run has used."""
        self._tokens += run.tokens or 0
        self._cost += run.cost or 0.0
        wanted = {"tokens": (self._limits.tokens, run.tokens), "cost": (self._limits.cost, run.cost)}
        missing = {name for name, (limit, used) in wanted.items() if limit is not None and used is None}
        self._unknown |= missing
        self._silent += bool(missing)

    @property
    def left(self) -> int | None:
        """How many runs may still be started; None where their number has no limit."""
        return None if self._limits.runs is None else self._limits.runs - self._runs

    @property
    def left_s(self) -> float:
        """Seconds of wall time that are left; infinity where it has no limit."""
        time_s = self._limits.time_s
        return inf if time_s is None else max(0.0, self._began_s + time_s - self._monotonic())

    @property
    def doubt(self) -> str:
        """What keeps the budget from being kept exactly, in words; empty where nothing does."""
        if not self._unknown:
            return ""
        what = " and ".join(sorted(self._unknown))
        return f"the {what} of {self._silent} runs is not known, so the budget does not count them"

    def _over(self) -> str:
        limits = self._limits
        if limits.runs is not None and self._runs >= limits.runs:
            return f"--max-runs {limits.runs}"
        if limits.tokens is not None and self._tokens >= limits.tokens:
            return f"--max-tokens {limits.tokens}"
        if limits.cost is not None and self._cost >= limits.cost:
            return f"--max-cost {limits.cost:g}"
        if limits.time_s is not None and self._monotonic() - self._began_s >= limits.time_s:
            return f"--max-time {limits.time_s:g}"
        return ""
