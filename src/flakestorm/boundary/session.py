"""A run's crossing, and which one the current context belongs to.

Whatever seam a call comes in by, it ends up on a `Crossing`: the pipeline of one run. In-process calls find theirs
through a context variable, so concurrent runs in one process never mix.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from flakestorm.core.call import Call
from flakestorm.core.pipeline import Flow, Interceptor

__all__ = ["Crossing", "carry", "current", "outside"]

P = ParamSpec("P")
T = TypeVar("T")

_current: ContextVar[Crossing | None] = ContextVar("flakestorm_crossing", default=None)


class Crossing:
    """One run's pipeline (the engine's `Line`).

    Args:
        run: the run's id.
        pipeline: the chained stages every call of this run passes, outermost first.
    """

    __slots__ = ("_lanes", "_lock", "_opened", "_stages", "calls", "run")

    def __init__(self, run: str, pipeline: Interceptor) -> None:
        self.run, self._stages = run, pipeline
        self.calls = 0
        """How many calls have crossed so far (at least; two threads may count as one)."""
        self._lanes: WeakKeyDictionary[object, str] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._opened = 0

    @contextmanager
    def active(self) -> Iterator[None]:
        """While entered, in-process calls of this context cross here."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def pipeline(self, call: Call, /) -> Flow:
        """The stages, entered by one more call."""
        self.calls += 1
        return self._stages(call)

    def lane(self) -> str:
        """Which of the agent's concurrent threads or tasks is asking: `1` for the first that ever did, then `2`, ..."""
        loop = asyncio._get_running_loop()  # None where there is none; the public form raises, at twice the price
        here: object = (asyncio.current_task(loop) if loop is not None else None) or threading.current_thread()
        lane = self._lanes.get(here)
        if lane is None:
            with self._lock:
                self._opened += 1
                lane = self._lanes[here] = str(self._opened)
        return lane

    def __repr__(self) -> str:
        return f"<crossing of {self.run}>"


current: Callable[[], Crossing | None] = _current.get
"""The crossing of the current context, or None: calls then pass untouched."""


class _Outside:
    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _current.set(None)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


def outside() -> AbstractContextManager[None]:
    """While entered, calls of this context belong to no run. Seams ask the world in here, so that no call, however many
    wrappers and clients it is made of, crosses twice."""
    return _Outside()


def carry(crossing: Crossing, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call this, in whatever thread or context, as part of the crossing's run."""
    with crossing.active():
        return call(*args, **kwargs)
