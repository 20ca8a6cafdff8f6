"""How long an agent's client waits, and how time passes while it does.

A delay ends where the client would have given up, and, as the run's clock says, most of it need not really pass. Who
is kept waiting must notice it all the same:

- a client whose time-out is known is told at that moment of the run's time, in its own words, that its time is up;
- timers that an agent has set on an asyncio loop are brought forward (`timers.py`), so that `asyncio.timeout` around a
  call ends it when it should;
- where neither is known, the delay is held for `HOLD_S` of real time, and the agent may hang up.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from contextvars import Context

from flakestorm.boundary.timers import timers_here
from flakestorm.core.clock import HOLD_S, Clock, Timers, shortened
from flakestorm.errors import CallFailed

__all__ = ["Patience", "rest"]

_GRACE_S = 1.0  # for a client that is to run into its own time-out


async def rest(seconds: float) -> None:
    """Let real time pass, on asyncio or (by way of anyio) on trio, unseen among the timers of a run."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        await importlib.import_module("anyio").sleep(seconds)
        return
    over = asyncio.Event()
    timer = loop.call_later(seconds, over.set, context=Context())
    try:
        await over.wait()
    finally:
        timer.cancel()


class Patience:
    """How long the agent's client still waits for bytes.

    A client waits at most `read_s` for the next bytes and, where it knows such a limit, `total_s` for everything.
    Passing time beyond that is waiting for nobody: the sleep ends at the client's time-out, with `CallFailed`.

    Args:
        clock: the run's.
        read_s: the client's read time-out in seconds, counted from the call and again from each read; None: endless.
        total_s: its time-out for the whole exchange in seconds, counted from the call; None: endless.
        known: False where the client may wait for less than is said here.
        timers: of the agent's loop, for a client in another thread.
        wait: blocks for some seconds.
        await_: the same for asyncio.
    """

    __slots__ = (
        "_await",
        "_known",
        "_read_at",
        "_silent",
        "_slept_s",
        "_timers",
        "_wait",
        "clock",
        "read_s",
        "total_at",
    )

    def __init__(
        self,
        clock: Clock,
        read_s: float | None = None,
        *,
        total_s: float | None = None,
        known: bool = True,
        timers: Timers | None = None,
        wait: Callable[[float], None] = time.sleep,
        await_: Callable[[float], Awaitable[None]] = rest,
    ) -> None:
        self.clock, self._known, self._timers, self._wait, self._await = clock, known, timers, wait, await_
        self.read_s = read_s
        self._slept_s, self._silent = 0.0, False
        now = clock.now()
        self._read_at = None if read_s is None else now + read_s
        self.total_at = None if total_s is None else now + total_s

    def restart(self) -> None:
        """The client has bytes and waits for the next ones."""
        if self.read_s is not None:
            self._read_at = self.clock.now() + self.read_s

    def fall_silent(self) -> None:
        """From now on the client cannot be told that its time is up: within `HOLD_S`, it is left to find out."""
        self._silent = True

    @property
    def total_left_s(self) -> float | None:
        """Seconds left for the whole exchange; None where there is no such limit."""
        return None if self.total_at is None else max(0.0, self.total_at - self.clock.now())

    @property
    def spent(self) -> bool:
        """Whether the whole exchange has had its time."""
        return self.total_at is not None and self.clock.now() >= self.total_at

    def sleep(self, seconds: float) -> None:
        """Let time pass, as far as the client waits.

        Raises:
            CallFailed: it waits no longer.
        """
        left_s = self._left()
        with closing(self._passing(min(seconds, left_s), self._timers)) as pauses:
            for pause_s in pauses:
                self._wait(pause_s)
        if seconds >= left_s:
            raise _no_longer()

    async def asleep(self, seconds: float) -> None:
        """As `sleep`, for asyncio."""
        left_s = self._left()
        if self._silent and seconds >= left_s and left_s <= HOLD_S:
            await self._await(left_s + _GRACE_S)
            raise _no_longer()
        with closing(self._passing(min(seconds, left_s), timers_here())) as pauses:
            for pause_s in pauses:
                await self._await(pause_s)
        if seconds >= left_s:
            raise _no_longer()

    def _passing(self, seconds: float, timers: Timers | None) -> Generator[float, None, None]:
        if not self._known and timers is None:
            return self.clock.passing(seconds, min(seconds, HOLD_S))
        before = self._slept_s  # many short delays are as long as one long one
        self._slept_s += seconds
        return self.clock.passing(seconds, shortened(self._slept_s) - shortened(before), timers)

    def _left(self) -> float:
        ends = [at for at in (self._read_at, self.total_at) if at is not None]
        return max(0.0, min(ends) - self.clock.now()) if ends else float("inf")


def _no_longer() -> CallFailed:
    return CallFailed("timeout", "the client waited no longer", injected=True)
