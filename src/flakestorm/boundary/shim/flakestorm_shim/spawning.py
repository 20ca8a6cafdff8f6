"""Where an agent's lanes begin: threads, jobs given to a pool of threads, asyncio tasks.

Each begins two of them: what it draws from (`lanes.py`, which is imported where that is virtual), and what the gateway
is told of its calls (`descent.py`), in launched agents.
"""

from __future__ import annotations

import functools
import sys

from . import descent
from .replacing import replace

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["PATCHES", "on_anyio", "on_asyncio", "on_loop", "on_pool", "on_threads"]


_LANES = f"{__package__}.lanes"


def _virtual() -> Any:
    """What this lane's draws come from: the module `lanes`, or None where they are real."""
    lanes = sys.modules.get(_LANES)
    return None if lanes is None or lanes.here() is None else lanes


def _led(call: Any, kind: str) -> Any:
    """This call, to be made on a new lane that the caller starts now."""
    lanes = _virtual()
    if lanes is not None:
        call = lanes.after(call, kind)
    return descent.led(call, descent.child(kind)) if descent.begun() else call


def on_threads(module: Any) -> None:
    """`threading`: a thread is a lane."""

    def starting(original: Any) -> Any:
        @functools.wraps(original)
        def start(self: Any) -> None:
            own = vars(self)
            led = None if "run" in own else _led(self.run, "thread")
            if led is None or led == self.run:
                return original(self)  # type: ignore[no-any-return]

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
            led = _led(fn, "job")
            if not descent.begun():
                return original(self, led, *args, **kwargs)
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
            return descent.task_lane(lambda: _drawing(original, self, coro, kwargs), coro)

        return create_task

    replace(loop, "create_task", creating)


def _drawing(create: Any, loop: Any, coro: Any, options: dict[str, Any]) -> Any:
    """Make a task that draws on a lane of its own, where anything is virtual."""
    lanes = _virtual()
    if lanes is None:
        return create(loop, coro, **options)
    lane = lanes.here()
    child, context = lane.child("task"), options.get("context")
    if context is None:  # the task copies the context it is made in
        task = lanes.inside(child, create, loop, coro, **options)
    else:
        try:  # noqa: SIM105 - contextlib is not imported for the agent's sake
            context.run(lanes.settle, child)
        except RuntimeError:
            pass  # it is the current one: the two share a lane, as all else
        task = create(loop, coro, **options)
    task.add_done_callback(lambda _: lane.reach(child.elapsed_us))
    return task


def on_asyncio(module: Any) -> None:
    """`asyncio`: a coroutine that is given to the loop of another thread is a task of who gives it."""

    def giving(original: Any) -> Any:
        @functools.wraps(original)
        def run_coroutine_threadsafe(coro: Any, loop: Any) -> Any:
            if descent.begun() and module.iscoroutine(coro):
                descent.give(coro)
            return original(coro, loop)

        return run_coroutine_threadsafe

    replace(module, "run_coroutine_threadsafe", giving)


def on_anyio(module: Any) -> None:
    """`anyio._backends._asyncio`, whose threads are no pool of the standard library's: a job is a lane. What it draws
    is drawn on that of who awaits it, because the context goes with it."""
    backend: Any = getattr(module, "AsyncIOBackend", None)
    found = None if backend is None else vars(backend).get("run_sync_in_worker_thread")
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
