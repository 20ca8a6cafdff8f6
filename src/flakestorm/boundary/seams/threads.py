"""The seam in threads: an agent's threads belong to the run that started them.

Context variables do not follow into a new thread, so the crossing is carried there by hand, and nothing else: the
agent's other context variables behave as they always did. A pool's workers outlive the run that happened to start
them, so they belong to nobody and take up the crossing of each job instead.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from flakestorm.boundary.seams.patches import Patch
from flakestorm.boundary.session import carry, current, outside

__all__ = ["patches"]

_AWAITED = "flakestorm-call"  # the thread in which a blocking agent is asked (`agents/threads.py`)


def patches() -> list[Patch]:
    """What to change in the standard library's threads."""
    return [Patch(threading.Thread, "start", _start), Patch(ThreadPoolExecutor, "submit", _submit)]


def _start(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def start(self: threading.Thread) -> None:
        crossing = current()
        if crossing is not None and "run" not in vars(self):
            call = crossing.here(self.run) if self.name == _AWAITED else self.run
            run = crossing.led(call, "thread")

            def carried() -> None:
                del self.run  # or the thread would keep itself alive
                carry(crossing, run)

            self.run = carried  # type: ignore[method-assign]  # what `start` calls in the new thread, subclass or not
            try:
                original(self)
            except BaseException:
                vars(self).pop("run", None)
                raise
        else:
            original(self)

    return start


def _submit(original: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
    @functools.wraps(original)
    def submit(self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        crossing = current()
        if crossing is None:
            return original(self, fn, *args, **kwargs)
        crossing.seen()
        fn = crossing.led(fn, "job")
        with outside():  # a worker started here is nobody's
            return original(self, carry, crossing, fn, *args, **kwargs)

    return submit
