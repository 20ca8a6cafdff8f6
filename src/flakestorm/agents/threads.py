"""Calling blocking code without waiting for it for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *args: object) -> T:
    """Call a blocking function in a daemon thread of its own, with the caller's context variables.

    `asyncio.to_thread` is not used, because its few threads are joined when the loop and the interpreter end: an agent
    that hangs would take them all and then keep flakestorm from ending. Cancelling this leaves the thread running.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[T, None] | tuple[None, BaseException]] = loop.create_future()
    context = copy_context()

    def settle(outcome: tuple[T, None] | tuple[None, BaseException]) -> None:
        if not done.done():
            done.set_result(outcome)

    def work() -> None:
        try:
            outcome: tuple[T, None] | tuple[None, BaseException] = (context.run(function, *args), None)
        except BaseException as error:  # SystemExit too: it is the function's, and a thread would swallow it
            outcome = (None, error)
        with suppress(RuntimeError):  # the loop has ended: nobody waits any more
            loop.call_soon_threadsafe(settle, outcome)

    # by its name the boundary knows that nobody else does anything meanwhile: it is no other lane than the caller's
    threading.Thread(target=work, name="flakestorm-call", daemon=True).start()
    match await done:
        case (_, BaseException() as error):
            raise error
        case (result, _):
            return result
