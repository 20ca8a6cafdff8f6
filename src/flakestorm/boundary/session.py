"""A run's crossing, and which one the current context belongs to.

Whatever seam a call comes in by, it ends up on a `Crossing`: the pipeline of one run. In-process calls find theirs
through a context variable, so concurrent runs in one process never mix.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from flakestorm.core.pipeline import Interceptor

__all__ = ["Crossing", "current"]

_current: ContextVar[Crossing | None] = ContextVar("flakestorm_crossing", default=None)


class Crossing:
    """One run's pipeline (the engine's `Line`).

    Args:
        run: the run's id.
        pipeline: the chained stages every call of this run passes, outermost first.
    """

    __slots__ = ("pipeline", "run")

    def __init__(self, run: str, pipeline: Interceptor) -> None:
        self.run, self.pipeline = run, pipeline

    @contextmanager
    def active(self) -> Iterator[None]:
        """While entered, in-process calls of this context cross here."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def __repr__(self) -> str:
        return f"<crossing of {self.run}>"


def current() -> Crossing | None:
    """The crossing of the current context, or None: calls then pass untouched."""
    return _current.get()
