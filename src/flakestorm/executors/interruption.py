"""Ctrl-C, so that what had finished is kept."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

__all__ = ["SAME_INTERRUPTION_S", "ending", "interruptible"]

SAME_INTERRUPTION_S = 1.0
"""Keys are pressed twice, and wrappers pass on what the terminal has sent already: so long it is one interruption."""


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """While entered, the first SIGINT or SIGTERM cancels the current task and is noted.

    More of them within `SAME_INTERRUPTION_S` are ignored, even after this was left, so that the report of what had
    finished can be written. A later one is obeyed at once. One that is ignored when this is entered (a background job
    of a script, whose Ctrl-C is not meant for it) stays so, as Python itself leaves it. Only the main thread gets
    signals; in any other one nothing is changed.
    """
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    loop, cancel = asyncio.get_running_loop(), cast("asyncio.Task[object]", asyncio.current_task()).cancel
    caught = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
    before: dict[int, Any] = {number: signal.getsignal(number) for number in caught}
    obeyed: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    patient_until_s = 0.0

    def interrupt(number: int) -> None:
        nonlocal patient_until_s
        patient_until_s = time.monotonic() + SAME_INTERRUPTION_S
        seen.append(number)
        for each in caught:
            loop.remove_signal_handler(each)
            signal.signal(each, again)  # works when the loop does not
        cancel()

    def again(number: int, _: object) -> None:
        if time.monotonic() >= patient_until_s:
            signal.signal(number, obeyed[number])
            signal.raise_signal(number)

    for number in caught:
        loop.add_signal_handler(number, interrupt, number)
    try:
        yield seen
    finally:
        obeyed.update(before)
        for number in () if seen else caught:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


def ending(*numbers: int) -> asyncio.Future[int]:
    """The first of these signals that comes; a SIGHUP that `nohup` ignores is left so. For the main thread's loop."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def end(number: int) -> None:
        if not ended.done():
            ended.set_result(number)

    for number in numbers:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, end, number)
    return ended
