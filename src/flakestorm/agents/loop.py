"""The event loop that async agents live on: not flakestorm's own, which must stay free whatever an agent does.

All runs of an agent share one loop, because an agent may: clients and locks that it made once belong to the loop they
were first used on. A coroutine that blocks (a `requests` call, a tight computation) therefore holds up the others, as
it would in a server of its own; their time limit starts only when they do. One that blocks beyond its limit is left
behind with its loop, and those that had not begun yet are moved to a fresh one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context
from typing import Any, Generic, TypeVar

__all__ = ["GRACE_S", "AgentLoop", "Overdue"]

T = TypeVar("T")

GRACE_S = 0.5
"""How long is waited for a cancelled coroutine to clean up, and for the loop itself to end."""


class Overdue(Exception):
    """A coroutine took longer than it was given; it has been told to stop."""


class AgentLoop:
    """An event loop in a daemon thread, started by the first coroutine. All methods are called from one other loop."""

    def __init__(self) -> None:
        self._places: list[_Place] = []

    async def run(self, call: Callable[[], Awaitable[T]], *, limit_s: float) -> T:
        """Call this on the agents' loop, with the caller's context variables, and await what it returns.

        Cancelling this cancels the coroutine. Either way it is waited for briefly, so that it can clean up.

        Args:
            call: is called on the agents' loop.
            limit_s: how long it may take from the moment it begins.

        Raises:
            Overdue: it took longer.
            BaseException: whatever it raised.
        """
        while True:
            place = self._place()
            visit = _Visit(place, call)
            try:
                if not await self._begun(visit, limit_s):
                    continue
                await asyncio.wait({visit.done}, timeout=limit_s)
            except asyncio.CancelledError:
                await self._leave(visit)
                raise
            if not visit.done.done():
                await self._leave(visit)
                raise Overdue
            match visit.done.result():
                case (_, BaseException() as error):
                    raise error
                case (result, _):
                    return result

    async def close(self) -> None:
        """Cancel what is left on the loop and end it. One that is blocked is left to die with the process."""
        places, self._places = self._places, []
        if ends := {asyncio.wrap_future(place.ended) for place in places if place.stop() and not place.blocked}:
            _, blocked = await asyncio.wait(ends, timeout=GRACE_S)
            for end in blocked:
                end.cancel()

    def _place(self) -> _Place:
        if not self._places or self._places[-1].blocked:
            self._places.append(_Place())
        return self._places[-1]

    async def _begun(self, visit: _Visit[Any], limit_s: float) -> bool:
        """Wait until it begins; False when it was taken off a blocked loop before it did."""
        place = visit.place
        while not visit.begun.done():
            moves = place.moves
            await asyncio.wait({visit.begun}, timeout=limit_s)
            if place.moves == moves and not visit.begun.done():  # what blocks is not a run: a task one left behind
                place.abandon()
        return visit.begun.result()

    async def _leave(self, visit: _Visit[Any]) -> None:
        if visit.withdraw():
            return
        awake = visit.cancel()
        waited_for: set[asyncio.Future[Any]] = {visit.done, awake}
        await asyncio.wait(waited_for, timeout=GRACE_S)
        if not awake.done():
            visit.place.abandon()


class _Place:
    """One loop and its thread.

    `moves` counts the beginnings and ends of visits; as long as it grows, the loop is not stuck.
    """

    def __init__(self) -> None:
        self.ended: Future[None] = Future()
        self.ended.set_running_or_notify_cancel()  # nobody can cancel it
        self.waiting: set[_Visit[Any]] = set()
        self.moves = 0
        self.blocked = False
        started: Future[asyncio.AbstractEventLoop] = Future()
        self._stop = asyncio.Event()
        thread = threading.Thread(target=self._serve, args=(started,), name="flakestorm-agents", daemon=True)
        Context().run(thread.start)  # it belongs to no run
        self.loop = started.result()

    def stop(self) -> bool:
        """Tell the loop to end."""
        with suppress(RuntimeError):  # it has
            self.loop.call_soon_threadsafe(self._stop.set)
        return not self.ended.done()

    def abandon(self) -> None:
        """Nothing new comes here, and what has not begun goes elsewhere."""
        self.blocked = True
        for visit in list(self.waiting):
            if visit.withdraw():
                visit.move()

    def _serve(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        try:
            with asyncio.Runner() as runner:
                started.set_result(runner.get_loop())
                while not self._stop.is_set():
                    with suppress(SystemExit, KeyboardInterrupt):  # of one agent's own task, which ends no other's
                        runner.run(self._stop_called())
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
        finally:
            self.ended.set_result(None)

    async def _stop_called(self) -> None:
        await self._stop.wait()


class _Visit(Generic[T]):
    """One coroutine on a place's loop. Exactly one side takes the ticket: the loop to begin, or `withdraw`."""

    def __init__(self, place: _Place, call: Callable[[], Awaitable[T]]) -> None:
        self.place, self._call = place, call
        self._home = asyncio.get_running_loop()
        self._ticket = threading.Lock()
        self._task: asyncio.Task[None] | None = None
        self.begun: asyncio.Future[bool] = self._home.create_future()
        self.done: asyncio.Future[tuple[T, None] | tuple[None, BaseException]] = self._home.create_future()
        place.waiting.add(self)
        place.loop.call_soon_threadsafe(self._start)

    def withdraw(self) -> bool:
        """Keep it from beginning; False when it has begun."""
        self.place.waiting.discard(self)
        return self._ticket.acquire(blocking=False)

    def move(self) -> None:
        """It was withdrawn and is to be begun elsewhere."""
        if not self.begun.done():
            self.begun.set_result(False)

    def cancel(self) -> asyncio.Future[None]:
        """Cancel it; the result is set as soon as the loop is awake to hear of it."""
        awake: asyncio.Future[None] = self._home.create_future()

        def wake() -> None:
            if self._task is not None:
                self._task.cancel()
            self._tell(awake, lambda: awake.set_result(None))

        with suppress(RuntimeError):  # the loop has ended
            self.place.loop.call_soon_threadsafe(wake)
        return awake

    def _start(self) -> None:
        self._task = self.place.loop.create_task(self._work())

    async def _work(self) -> None:
        if not self._ticket.acquire(blocking=False):
            return
        self._tell(self.begun, self._begin)
        outcome: tuple[T, None] | tuple[None, BaseException]
        try:
            outcome = (await self._call(), None)
        except BaseException as error:  # SystemExit too: it is the coroutine's, and would end the loop
            outcome = (None, error)
        self._tell(self.done, lambda: self.done.set_result(outcome))

    def _begin(self) -> None:
        self.place.waiting.discard(self)
        self.begun.set_result(True)

    def _tell(self, future: asyncio.Future[Any], settle: Callable[[], None]) -> None:
        def tell() -> None:
            self.place.moves += 1
            if not future.done():
                settle()

        with suppress(RuntimeError):  # nobody is there any more
            self._home.call_soon_threadsafe(tell)
