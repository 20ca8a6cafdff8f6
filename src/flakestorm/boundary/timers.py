"""Timers that agents set on an asyncio loop, kept by the time of their run.

An agent that writes `asyncio.timeout(5)` around a tool has set a timer on its loop. When a delay of twenty seconds is
skipped, that timer has to fire before the delay is over. A loop serves several runs and calls that are really under
way, so its own clock cannot be moved; but every timer knows the context it was set in, and so the run it belongs to.
Those of one run are brought forward, and the loop tells that run a later time.

This is done to a loop when a delay is first skipped on it, and can be done to asyncio's own loops only: another one
(uvloop) does not show its timers.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any
from weakref import WeakKeyDictionary

from flakestorm.boundary.session import Crossing, crossing_in, current

__all__ = ["RunTimers", "timers_here", "timers_on"]


class RunTimers:
    """The timers of one run on one loop.

    Args:
        loop: has been made to keep them.
        crossing: the run's.
        stuck: the loop's own thread is what is kept waiting, so that no timer can fire until the delay is over.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, crossing: Crossing, *, stuck: bool) -> None:
        self._loop, self._crossing, self._stuck = loop, crossing, stuck
        self._kept: _Kept = loop.time.kept  # type: ignore[attr-defined]  # put there by `_keep`

    def due_s(self) -> float | None:
        """As `Timers.due_s`."""
        return None if self._stuck else self._kept.due_s(self._crossing)

    def passed(self, seconds: float) -> None:
        """As `Timers.passed`."""
        if asyncio._get_running_loop() is self._loop:
            self._kept.bring_forward(self._crossing, seconds)
        else:
            self._kept.announce(self._crossing, seconds)
            self._loop.call_soon_threadsafe(self._kept.bring_forward_announced, self._crossing, seconds)


def timers_here() -> RunTimers | None:
    """Those of the current run on the running loop; None where there is no such run, or they cannot be seen."""
    crossing = current()
    return None if crossing is None else timers_on(asyncio._get_running_loop(), crossing)


def timers_on(
    loop: asyncio.AbstractEventLoop | None, crossing: Crossing, *, blocking: bool = False
) -> RunTimers | None:
    """Those of a run on this loop; None where they cannot be seen.

    Args:
        loop: None where there is none.
        crossing: the run's.
        blocking: they are wanted by something that blocks its thread.
    """
    if not isinstance(loop, asyncio.BaseEventLoop) or not hasattr(loop, "_scheduled") or loop.is_closed():
        return None
    if not hasattr(loop.time, "kept"):
        _keep(loop)
    return RunTimers(loop, crossing, stuck=blocking and asyncio._get_running_loop() is loop)


class _Kept:
    """A loop's timers, and how far each run's time is ahead of the loop's."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._ahead_s: WeakKeyDictionary[Crossing, float] = WeakKeyDictionary()
        self._coming_s: WeakKeyDictionary[Crossing, float] = WeakKeyDictionary()  # of which the loop has yet to hear
        self._lock = threading.Lock()
        self._time: Callable[[], float] = loop.time

    def ahead_s(self) -> float:
        crossing = current()
        return 0.0 if crossing is None else self._ahead_s.get(crossing, 0.0)

    def due_s(self, crossing: Crossing) -> float | None:
        whens = [timer._when for timer in list(self._loop._scheduled) if self._is_of(timer, crossing)]
        return min(whens) - self._time() - self._coming_s.get(crossing, 0.0) if whens else None

    def announce(self, crossing: Crossing, seconds: float) -> None:
        """From another thread: the loop is going to bring this run's timers forward as soon as it can."""
        with self._lock:
            self._coming_s[crossing] = self._coming_s.get(crossing, 0.0) + seconds

    def bring_forward_announced(self, crossing: Crossing, seconds: float) -> None:
        """The loop has heard of it."""
        self.bring_forward(crossing, seconds)
        self.announce(crossing, -seconds)

    def bring_forward(self, crossing: Crossing, seconds: float) -> None:
        self._ahead_s[crossing] = self._ahead_s.get(crossing, 0.0) + seconds
        for timer in self._loop._scheduled:
            if self._is_of(timer, crossing):
                timer._when -= seconds
        heapq.heapify(self._loop._scheduled)

    @staticmethod
    def _is_of(timer: Any, crossing: Crossing) -> bool:
        return not timer.cancelled() and crossing_in(timer._context) is crossing


def _keep(loop: Any) -> None:
    """Have the loop tell each run its own time, and take timers by it."""
    kept, tell, set_timer = _Kept(loop), loop.time, loop.call_at

    def time() -> float:
        now: float = tell() + kept.ahead_s()
        return now

    def call_at(when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        timer: asyncio.TimerHandle = set_timer(when - kept.ahead_s(), callback, *args, context=context)
        return timer

    time.kept = kept  # type: ignore[attr-defined]
    loop.time, loop.call_at = time, call_at
