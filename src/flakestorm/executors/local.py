"""Runs in this process: asyncio, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from math import inf
from typing import Any, TypeVar

__all__ = ["LocalExecutor", "at_once"]

R = TypeVar("R")
T = TypeVar("T")

TURNS = 4
"""How often the event loop goes round until what begins in its next turn has a connection and has sent its request."""


def at_once(_: int) -> float:
    """Nothing holds starts back."""
    return 0.0


class LocalExecutor:
    """Fulfils `engine.ports.Executor` with one asyncio task per job, so jobs do not see each other's context.

    Args:
        pause: lets so many seconds pass.
    """

    def __init__(self, pause: Callable[[float], Coroutine[Any, Any, object]] = asyncio.sleep) -> None:
        self._pause = pause

    async def execute(
        self,
        items: Iterable[T],
        work: Callable[[T, Callable[[], Awaitable[None]]], Awaitable[R]],
        done: Callable[[int, R], None],
        concurrency: int,
        hold_s: Callable[[int], float] = at_once,
    ) -> None:
        """Do the work on every item, at most `concurrency` at a time, starting them in order.

        Args:
            items: one is taken when work on it can be started.
            work: is called once with each item, and with what makes room for the next one before this work has ended:
                awaited, it returns when the next one is on its way. Work that has made room is as good as done: it is
                not cancelled with the rest, but waited for and reported.
            done: is called with an item's index and result as it finishes, those that finish together in order.
            concurrency: at least 1.
            hold_s: says how long the next start is to wait, given how many are under way: 0 where it need not, infinity
                where one of those must finish first.

        Raises:
            ValueError: `concurrency` is less than 1.
            BaseException: the first that `work` (or `done`) raised, once all others were cancelled and have ended. The
                same holds when this is cancelled from outside: no task is left behind.
        """
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {concurrency}")
        waiting = iter(enumerate(items))
        running: dict[asyncio.Task[R], int] = {}
        places: set[int] = set()  # the indexes of those that take one
        ending = False

        def start() -> float:
            """Start what may be started; how long the next one is to wait where something holds it back."""
            wait_s = 0.0
            while not ending and len(places) < concurrency and (wait_s := hold_s(len(places))) <= 0:
                if (item := next(waiting, None)) is None:
                    break
                places.add(item[0])
                running[asyncio.create_task(_await(work, item[1], partial(make_room, item[0])))] = item[0]
            return wait_s

        async def make_room(index: int) -> None:
            if concurrency == 1:  # one at a time: what is under way is disturbed by nothing
                return
            places.discard(index)
            before = len(running)
            start()
            if len(running) > before:
                for _ in range(TURNS):
                    await asyncio.sleep(0)

        try:
            while True:
                wait_s = start()
                if not running and wait_s <= 0:
                    return
                finished = await self._next(running, wait_s)
                ended = sorted((running.pop(task), task) for task in finished)
                places.difference_update(index for index, _ in ended)
                _report(ended, done)
        finally:
            ending = True
            for task, index in running.items():
                if index in places:
                    task.cancel()
            outcomes = await asyncio.gather(*running, return_exceptions=True)
            for index, outcome in zip(running.values(), outcomes, strict=True):
                if index not in places and not isinstance(outcome, BaseException):
                    done(index, outcome)

    async def _next(self, running: Iterable[asyncio.Task[R]], wait_s: float) -> Sequence[asyncio.Task[R]]:
        """Those that finish first; none where `wait_s`, if it is neither 0 nor infinity, has passed before."""
        if not 0 < wait_s < inf:
            finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            return list(finished)
        pause = asyncio.ensure_future(self._pause(wait_s))
        try:
            await asyncio.wait([*running, pause], return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
        return [task for task in running if task.done()]


def _report(ended: Sequence[tuple[int, asyncio.Task[R]]], done: Callable[[int, R], None]) -> None:
    """Results first: what finished is reported even when something else failed at the same moment."""
    broken = [task for _, task in ended if task.cancelled() or task.exception() is not None]
    for index, task in ended:
        if task not in broken:
            done(index, task.result())
    for task in broken:
        task.result()


async def _await(
    work: Callable[[T, Callable[[], Awaitable[None]]], Awaitable[R]], item: T, make_room: Callable[[], Awaitable[None]]
) -> R:
    return await work(item, make_room)
