"""Runs in this process: asyncio, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

__all__ = ["LocalExecutor"]

R = TypeVar("R")
T = TypeVar("T")


class LocalExecutor:
    """Fulfils `engine.ports.Executor` with one asyncio task per job, so jobs do not see each other's context."""

    async def execute(
        self,
        items: Iterable[T],
        work: Callable[[T], Awaitable[R]],
        done: Callable[[int, R], None],
        concurrency: int,
    ) -> None:
        """Do the work on every item, at most `concurrency` at a time, starting them in order.

        Args:
            items: one is taken when work on it can be started.
            work: is called once with each item.
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
        try:
            while True:
                while len(running) < concurrency and (item := next(waiting, None)) is not None:
                    running[asyncio.create_task(_await(work, item[1]))] = item[0]
                if not running:
                    return
                finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                ended = sorted((running.pop(task), task) for task in finished)
                _report(ended, done)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


def _report(ended: Sequence[tuple[int, asyncio.Task[R]]], done: Callable[[int, R], None]) -> None:
    """Results first: what finished is reported even when something else failed at the same moment."""
    broken = [task for _, task in ended if task.cancelled() or task.exception() is not None]
    for index, task in ended:
        if task not in broken:
            done(index, task.result())
    for task in broken:
        task.result()


async def _await(work: Callable[[T], Awaitable[R]], item: T) -> R:
    return await work(item)
