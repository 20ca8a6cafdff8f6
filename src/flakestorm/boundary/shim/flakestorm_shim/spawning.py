"""Where an agent's lanes begin: threads, jobs given to a pool of threads, asyncio tasks.

Each begins two of them: what it draws from (`lanes.py`), where that is virtual, and what the gateway is told of its
calls (`descent.py`), in launched agents.
"""

from __future__ import annotations

import functools
from contextlib import suppress

from . import descent
from .lanes import after, here, inside, settle
from .replacing import replace

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["PATCHES", "on_anyio", "on_asyncio", "on_loop", "on_pool", "on_threads"]


def on_threads(module: Any) -> None:
    """`threading`: a thread is a lane."""

    def starting(original: Any) -> Any:
        @functools.wraps(original)
        def start(self: Any) -> None:
            own = vars(self)
            if "run" in own or not (descent.begun() or here() is not None):
                return original(self)  # type: ignore[no-any-return]
            led = after(self.run, "thread")
            if descent.begun():
                led = descent.led(led, descent.child("thread"))

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
            if not descent.begun():
                return original(self, after(fn, "job"), *args, **kwargs)
            led = descent.led(after(fn, "job"), descent.child("job"))
            with descent.busy():  # a worker that is started here is nobody's
                return original(self, led, *args, **kwargs)

        return submit

    replace(module.ThreadPoolExecutor, "submit", submitting)


def on_loop(loop: Any) -> None:
    """The class of an event loop: a task is a lane."""

    def creating(original: Any) -> Any:
        @functools.wraps(original)
        def create_task(self: Any, coro: Any, **kwargs: Any) -> Any:
            if not descent.begun():
                return _drawing(original, self, coro, kwargs)
            return descent.task_lane(lambda: _drawing(original, self, coro, kwargs))

        return create_task

    replace(loop, "create_task", creating)


def _drawing(create: Any, loop: Any, coro: Any, options: dict[str, Any]) -> Any:
    """Make a task that draws on a lane of its own, where anything is virtual."""
    lane = here()
    if lane is None:
        return create(loop, coro, **options)
    child, context = lane.child("task"), options.get("context")
    if context is None:  # the task copies the context it is made in
        task = inside(child, create, loop, coro, **options)
    else:
        with suppress(RuntimeError):  # where it is the current one, the two share a lane, as all else
            context.run(settle, child)
        task = create(loop, coro, **options)
    task.add_done_callback(lambda _: lane.reach(child.elapsed_us))
    return task


def on_asyncio(module: Any) -> None:
    """`asyncio`: a coroutine that is given to the loop of another thread is a task of who gives it."""

    def giving(original: Any) -> Any:
        @functools.wraps(original)
        def run_coroutine_threadsafe(coro: Any, loop: Any) -> Any:
            if not (descent.begun() and module.iscoroutine(coro)):
                return original(coro, loop)
            return descent.given_to(original, coro, loop)

        return run_coroutine_threadsafe

    replace(module, "run_coroutine_threadsafe", giving)


def on_anyio(module: Any) -> None:
    """`anyio._backends._asyncio`, whose threads are no pool of the standard library's: a job is a lane. What it draws
    is drawn on that of who awaits it, because the context goes with it."""
    backend = getattr(module, "AsyncIOBackend", None)
    found = vars(backend).get("run_sync_in_worker_thread") if backend is not None else None
    if not isinstance(found, classmethod):  # a version that is made otherwise
        return
    run = found.__func__

    @functools.wraps(run)
    async def run_sync_in_worker_thread(cls: Any, func: Any, args: Any, *more: Any, **options: Any) -> Any:
        if not descent.begun():
            return await run(cls, func, args, *more, **options)
        func = descent.led(func, descent.child("job"))
        with descent.busy():  # a worker that is started here is nobody's
            return await run(cls, func, args, *more, **options)

    backend.run_sync_in_worker_thread = classmethod(run_sync_in_worker_thread)


def _base_loop(module: Any) -> None:
    descent.on_asyncio(module)
    on_loop(module.BaseEventLoop)


def _uvloop(module: Any) -> None:
    on_loop(module.Loop)


PATCHES: dict[str, Callable[[Any], None]] = {
    "threading": on_threads,
    "concurrent.futures.thread": on_pool,
    "asyncio.base_events": _base_loop,
    "asyncio": on_asyncio,
    "uvloop": _uvloop,
    "anyio._backends._asyncio": on_anyio,
}
"""Library to what makes lanes of what it starts."""
