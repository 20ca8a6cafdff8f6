"""A run's crossing, and which one the current context belongs to.

Whatever seam a call comes in by, it ends up on a `Crossing`: the pipeline of one run. In-process calls find theirs
through a context variable, so concurrent runs in one process never mix.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from flakestorm.core.call import Call
from flakestorm.core.clock import Clock
from flakestorm.core.pipeline import Flow, Interceptor

if TYPE_CHECKING:  # few runs have virtual draws
    from flakestorm.boundary.draws import Drawing

__all__ = ["Crossing", "carry", "crossing_in", "current", "outside", "step_in", "step_out"]

P = ParamSpec("P")
T = TypeVar("T")

_current: ContextVar[Crossing | None] = ContextVar("flakestorm_crossing", default=None)


class Crossing:
    """One run's pipeline (the engine's `Line`).

    Args:
        run: the run's id.
        pipeline: the chained stages every call of this run passes, outermost first.
        clock: the run's time; one of its own where none is given.
        draws: the agent's clock and random draws, where they are virtual.
    """

    __slots__ = (
        "__weakref__",
        "_lock",
        "_opened",
        "_stages",
        "_tasks",
        "_threads",
        "calls",
        "clock",
        "draws",
        "loop",
        "places",
        "remarks",
        "run",
        "seams",
    )

    def __init__(
        self, run: str, pipeline: Interceptor, clock: Clock | None = None, *, draws: Drawing | None = None
    ) -> None:
        self.run, self._stages, self.draws = run, pipeline, draws
        self.clock = Clock(time.monotonic) if clock is None else clock
        self.calls = 0
        """How many calls have crossed so far (at least; two threads may count as one)."""
        self.seams: dict[str, int] = {}
        """How many calls came in by each in-process seam; as `calls`."""
        self.remarks: list[str] = []
        """What a reader of the run's tape should know about how its calls came in."""
        self.places: dict[Any, Any] = {}
        """What seams keep in mind of the addresses that the agent calls, until the run is over."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop that the agent was last seen on, if it ever was."""
        self._threads = threading.local()
        self._tasks: WeakKeyDictionary[object, str] = WeakKeyDictionary()
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

    def pipeline(self, call: Call, /) -> Flow | Call:
        """The stages, entered by one more call."""
        self.calls += 1
        return self._stages(call)

    def reach(self, at_ms: float) -> None:
        """A reply begins, or fails to come, at this time of the run: a virtual clock goes on to there."""
        if self.draws is not None:
            self.draws.reach(at_ms)

    def led(self, call: Callable[P, T], kind: str) -> Callable[P, T]:
        """This call, to be made in a `thread`, or as a `job`, that the agent starts now: its draws are its own."""
        if self.draws is None:
            return call
        from importlib import import_module

        led: Any = import_module("flakestorm.boundary.shim.flakestorm_shim.lanes").after(call, kind)
        return led  # type: ignore[no-any-return]

    def seen(self) -> None:
        """The agent is at work here: notes the event loop, if there is one."""
        loop = asyncio._get_running_loop()
        if loop is not None:
            self.loop = loop

    def saw(self, seam: str) -> None:
        """A call came in by this seam."""
        self.seams[seam] = self.seams.get(seam, 0) + 1

    def lane(self, seam: str = "") -> str:
        """Which of the agent's concurrent threads or tasks is asking: `1` for the first that ever did, then `2`, ...

        Args:
            seam: the one by which a call comes in with this question.
        """
        if seam:
            self.seams[seam] = self.seams.get(seam, 0) + 1
        loop = asyncio._get_running_loop()  # None where there is none; the public form raises, at twice the price
        task = None
        if loop is not None:
            self.loop, task = loop, asyncio.current_task(loop)
        if task is None:
            try:
                return self._threads.lane  # type: ignore[no-any-return]
            except AttributeError:
                lane = self._threads.lane = self._open()
        else:
            known = self._tasks.get(task)
            lane = known if known is not None else self._tasks.setdefault(task, self._open())
        return lane

    def _open(self) -> str:
        with self._lock:
            self._opened += 1
            return str(self._opened)

    def __repr__(self) -> str:
        return f"<crossing of {self.run}>"


current: Callable[[], Crossing | None] = _current.get
"""The crossing of the current context, or None: calls then pass untouched."""


def crossing_in(context: Context) -> Crossing | None:
    """The crossing of another context, or None."""
    return context.get(_current)


step_out = _current.set
"""`step_in(step_out(None))` is `outside`, in the words of a `try` and `finally`, at half the price."""
step_in = _current.reset


class _Outside:
    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = step_out(None)

    def __exit__(self, *_: object) -> None:
        step_in(self._token)


def outside() -> AbstractContextManager[None]:
    """While entered, calls of this context belong to no run. Seams ask the world in here, so that no call, however many
    wrappers and clients it is made of, crosses twice."""
    return _Outside()


def carry(crossing: Crossing, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call this, in whatever thread or context, as part of the crossing's run."""
    with crossing.active():
        return call(*args, **kwargs)
