"""A run's time: what has really passed, and what was skipped, because nobody need wait for a delay that we made up.

A tool that is twenty seconds slow makes a run twenty seconds longer, on its tape and in its latency, and the test a
fraction of a second. The rule that keeps this honest: a run ends as it would have ended in real time. So time is
skipped from event to event, as in a discrete-event simulation: never past the end of another delay of the same run,
never past a timer of the agent's that is known, and not at all while a call of the run is really under way.

How long a skipped delay really takes is `shortened`; where it cannot be known how long the agent waits, the delay
really takes up to `HOLD_S`, so that an agent which loses its patience before that is seen to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Protocol

__all__ = ["FACTOR", "HOLD_S", "LONGEST_S", "UNHURRIED_S", "Clock", "Timers", "shortened"]

UNHURRIED_S = 0.1
"""Delays up to this take their time."""

FACTOR = 100
"""How many times faster the rest of a longer one passes."""

LONGEST_S = 1.0
"""No delay takes longer than this."""

HOLD_S = 10.0
"""How much of a delay really passes where it is not known how long the agent waits."""

_BREATH_S = 0.005  # real time for what is due to happen
_LATE_BREATHS = 200  # for a timer that is due and not noticed yet: a loaded machine takes its time
_STEPS = 100  # a delay is skipped in at most about so many steps, however many timers the agent has


def shortened(seconds: float) -> float:
    """How much real time a delay takes when it is skipped: 20 s take 0.3 s, two minutes and more take one second."""
    return seconds if seconds <= UNHURRIED_S else min(UNHURRIED_S + (seconds - UNHURRIED_S) / FACTOR, LONGEST_S)


class Timers(Protocol):
    """The timers that an agent has set in a run, where they can be seen and brought forward."""

    def due_s(self) -> float | None:
        """Seconds until the next one is due, 0 or less if it is; None where there is none."""
        ...

    def passed(self, seconds: float) -> None:
        """So much time was skipped."""
        ...


class Clock:
    """The time of one run, shared by its threads.

    Args:
        real: seconds on a clock that never goes back.
        skips: False lets every delay take its real time.
    """

    __slots__ = ("_at_work", "_lock", "_real", "_skipped_s", "_wakes", "skips")

    def __init__(self, real: Callable[[], float], *, skips: bool = True) -> None:
        self._real, self.skips = real, skips
        self._lock = threading.Lock()
        self._skipped_s = 0.0
        self._at_work: list[None] = []  # one for each; a list grows and shrinks in single steps, which need no lock
        self._wakes: dict[object, float] = {}

    def now(self) -> float:
        """Seconds of the run's time; only differences mean something."""
        return self._real() + self._skipped_s

    @property
    def skipped_s(self) -> float:
        """How much of the run's time never really passed."""
        return self._skipped_s

    def begin(self) -> None:
        """A call of the run is really under way: no time is skipped until `end`."""
        self._at_work.append(None)

    def end(self) -> None:
        """It is not any more."""
        self._at_work.pop()

    def passing(self, seconds: float, pause_s: float, timers: Timers | None = None) -> Generator[float, None, None]:
        """Let this much of the run's time pass; yields the real pauses, in seconds, that the caller is to make.

        Close it to give up early; the time that has passed by then has passed.

        Args:
            seconds: of the run's time.
            pause_s: what of it really passes first.
            timers: the agent's, where they are known.
        """
        if not self.skips or pause_s >= seconds:
            yield seconds
            return
        me, wake = object(), self.now() + seconds
        with self._lock:
            self._wakes[me] = wake
        try:
            yield pause_s
            late = 0
            while True:
                # A timer that is due gets the time to be noticed, unless whoever should notice it waits for this delay.
                due_s = None if timers is None else timers.due_s()
                late = late + 1 if due_s is not None and due_s <= 0 else 0
                if not 0 < late <= _LATE_BREATHS and self._skip(me, wake, seconds / _STEPS, timers) <= 0:
                    return
                yield _BREATH_S
        finally:
            with self._lock:
                del self._wakes[me]

    def _skip(self, me: object, wake: float, least_s: float, timers: Timers | None) -> float:
        """Go on to the next event, if that may be done now; gives what is then left until `wake`."""
        due_s = None if timers is None else timers.due_s()
        with self._lock:
            now = self.now()
            ends = [wake, *(at for other, at in self._wakes.items() if other is not me)]
            step = min(ends) - now
            if due_s is not None:
                step = min(step, max(due_s, least_s))
            if self._at_work or step <= 0:
                return wake - now
            self._skipped_s += step
        if timers is not None:
            timers.passed(step)
        return wake - now - step
