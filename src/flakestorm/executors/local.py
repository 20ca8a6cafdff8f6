"""Runs in this process: asyncio, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

__all__ = ["LocalExecutor"]

R = TypeVar("R")
T = TypeVar("T")

TURNS = 4
"""How often the event loop goes round until what begins in its next turn has a connection and has sent its request."""


class LocalExecutor:
    """Fulfils `engine.ports.Executor` with one asyncio task per job, so jobs do not see each other's context."""

    async def execute(
        self,
        items: Iterable[T],
        work: Callable[[T, Callable[[], Awaitable[None]]], Awaitable[R]],
        done: Callable[[int, R], None],
        concurrency: int,
    ) -> None:
        """Do the work on every item, at most `concurrency` at a time, starting them in order.

        Args:
            items: one is taken when work on it can be started.
            work: is called once with each item, and with what makes room for the next one before this work has ended:
                awaited, it returns when the next one is on its way. Work that has made room is as good as done: it is
                not cancelled with the rest, but waited for and reported.
            done: is called with an item's index and result as it finishes, those that finish together in order.
            concurrency: at least 1.

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

        def start() -> bool:
            begun = False
            while not ending and len(places) < concurrency and (item := next(waiting, None)) is not None:
                places.add(item[0])
                running[asyncio.create_task(_await(work, item[1], partial(make_room, item[0])))] = item[0]
                begun = True
            return begun

        async def make_room(index: int) -> None:
            if concurrency == 1:  # one at a time: what is under way is disturbed by nothing
                return
            places.discard(index)
            if start():
                for _ in range(TURNS):
                    await asyncio.sleep(0)

        try:
            while True:
                start()
                if not running:
                    return
                finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
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
