"""Where an agent's lanes begin: threads, jobs given to a pool of threads, asyncio tasks."""

from __future__ import annotations

import functools
from contextlib import suppress

from .lanes import after, here, inside, settle
from .replacing import replace

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from typing import Any

__all__ = ["on_loop", "on_pool", "on_threads"]


def on_threads(module: Any) -> None:
    """`threading`: a thread is a lane."""

    def starting(original: Any) -> Any:
        @functools.wraps(original)
        def start(self: Any) -> None:
            own = vars(self)
            if here() is None or "run" in own:
                return original(self)  # type: ignore[no-any-return]
            led = after(self.run, "thread")

            def run() -> None:
                del self.run  # or the thread would keep itself alive
                led()

            self.run = run
            try:
                original(self)
            except BaseException:
                own.pop("run", None)
                raise
            return None

        return start

    replace(module.Thread, "start", starting)


def on_pool(module: Any) -> None:
    """`concurrent.futures.thread`: a job is a lane, whichever thread takes it."""

    def submitting(original: Any) -> Any:
        @functools.wraps(original)
        def submit(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            return original(self, after(fn, "job"), *args, **kwargs)

        return submit

    replace(module.ThreadPoolExecutor, "submit", submitting)


def on_loop(loop: Any) -> None:
    """The class of an event loop: a task is a lane."""

    def creating(original: Any) -> Any:
        @functools.wraps(original)
        def create_task(self: Any, coro: Any, **kwargs: Any) -> Any:
            lane = here()
            if lane is None:
                return original(self, coro, **kwargs)
            child, context = lane.child("task"), kwargs.get("context")
            if context is None:  # the task copies the context it is made in
                task = inside(child, original, self, coro, **kwargs)
            else:
                with suppress(RuntimeError):  # where it is the current one, the two share a lane, as all else
                    context.run(settle, child)
                task = original(self, coro, **kwargs)
            task.add_done_callback(lambda _: lane.reach(child.elapsed_us))
            return task

        return create_task

    replace(loop, "create_task", creating)
