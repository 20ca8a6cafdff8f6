"""How long an agent's client waits, so that a delay ends where the client would have given up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from flakestorm.errors import CallFailed

__all__ = ["Patience"]


class Patience:
    """How long the agent's client still waits for bytes.

    A client waits at most `read_s` for the next bytes and, where it knows such a limit, `total_s` for everything.
    Passing time beyond that is waiting for nobody: the sleep ends at the client's time-out, with `CallFailed`.

    Args:
        read_s: the client's read time-out in seconds, counted from the call and again from each read; None: endless.
        total_s: its time-out for the whole exchange in seconds, counted from the call; None: endless.
        clock: seconds that never go back.
        wait: blocks for some seconds.
        await_: the same for asyncio.
    """

    __slots__ = ("_await", "_clock", "_read_at", "_wait", "read_s", "total_at")

    def __init__(
        self,
        read_s: float | None,
        *,
        total_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
        await_: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock, self._wait, self._await = clock, wait, await_
        self.read_s = read_s
        now = clock()
        self._read_at = None if read_s is None else now + read_s
        self.total_at = None if total_s is None else now + total_s

    def restart(self) -> None:
        """The client has bytes and waits for the next ones."""
        if self.read_s is not None:
            self._read_at = self._clock() + self.read_s

    @property
    def total_left_s(self) -> float | None:
        """Seconds left for the whole exchange; None where there is no such limit."""
        return None if self.total_at is None else max(0.0, self.total_at - self._clock())

    @property
    def spent(self) -> bool:
        """Whether the whole exchange has had its time."""
        return self.total_at is not None and self._clock() >= self.total_at

    def sleep(self, seconds: float) -> None:
        """Let time pass, as far as the client waits.

        Raises:
            CallFailed: it waits no longer.
        """
        left = self._left()
        if seconds < left:
            self._wait(seconds)
            return
        self._wait(left)
        raise CallFailed("timeout", "the client waited no longer", injected=True)

    async def asleep(self, seconds: float) -> None:
        """As `sleep`, for asyncio."""
        left = self._left()
        if seconds < left:
            await self._await(seconds)
            return
        await self._await(left)
        raise CallFailed("timeout", "the client waited no longer", injected=True)

    def _left(self) -> float:
        ends = [at for at in (self._read_at, self.total_at) if at is not None]
        return max(0.0, min(ends) - self._clock()) if ends else float("inf")
