"""The seam in anyio's threads (`anyio.to_thread.run_sync`), which are no pool of the standard library's.

The context goes with each of their jobs, and with it the run. What is left to do is that a job is a lane, whichever
thread takes it. Its draws stay those of who awaits it, as they always were.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from types import ModuleType
from typing import Any

from flakestorm.boundary.seams.patches import Patch
from flakestorm.boundary.session import current

__all__ = ["patches"]


def patches(lib: ModuleType) -> list[Patch]:
    """What to change in `anyio._backends._asyncio`: names of `run_sync` that were taken over earlier lead there too.
    Nothing in a version that is made otherwise."""
    backend = getattr(lib, "AsyncIOBackend", None)
    found = None if backend is None else vars(backend).get("run_sync_in_worker_thread")
    return [Patch(backend, "run_sync_in_worker_thread", _run)] if backend and isinstance(found, classmethod) else []


def _run(original: Any) -> Any:
    run: Callable[..., Awaitable[Any]] = original.__func__

    @functools.wraps(run)
    async def run_sync_in_worker_thread(
        cls: type, func: Callable[..., Any], args: Sequence[Any], *more: Any, **options: Any
    ) -> Any:
        crossing = current()
        if crossing is not None:
            func = crossing.led(func, "job", draws=False)
        return await run(cls, func, args, *more, **options)

    return classmethod(run_sync_in_worker_thread)
