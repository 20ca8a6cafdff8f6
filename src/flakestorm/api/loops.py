"""Event loops for callers that have none, and for those that do."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["in_a_loop", "in_trio", "loop_factory", "under_way"]

T = TypeVar("T")


def in_a_loop(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Do this on an event loop of its own; in a thread where the caller's thread has one already."""

    def run() -> T:
        found: list[T] = []

        async def keep() -> None:  # a task's result is spelled out, twice, when its runner ends: that grows with a plan
            asyncio.get_running_loop().set_exception_handler(_told)
            found.append(await work())

        with asyncio.Runner(loop_factory=loop_factory()) as loop:
            loop.run(keep())
        return found[0]

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    from concurrent.futures import ThreadPoolExecutor  # no command comes here

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


def _told(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Tell what no task's owner asked for, as asyncio does, but for what an agent of an earlier loop left open.

    SDKs' clients that nobody closes close themselves when they are collected, on whatever loop runs then: after the
    agent's own has ended they cannot, and that is no news to whoever runs it again and again.
    """
    error, closing = context.get("exception"), getattr(context.get("future"), "get_coro", None)
    if isinstance(error, RuntimeError) and str(error) == "Event loop is closed" and closing is not None:
        name: str = getattr(closing(), "__qualname__", "")
        if name.endswith("close"):
            return
    loop.default_exception_handler(context)


def under_way() -> bool:
    """Whether the caller is async code of asyncio (uvloop's too) or trio, which must not be kept waiting."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return in_trio()
    return True


def in_trio() -> bool:
    """Whether the caller is a task of trio's."""
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where there is one."""
    try:
        import uvloop
    except ImportError:  # pragma: no cover -- platforms without uvloop
        return asyncio.new_event_loop
    return uvloop.new_event_loop
