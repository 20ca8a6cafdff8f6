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
from itertools import count
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
        "_opened",
        "_stages",
        "_started",
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
        self._opened = count(1)
        self._started: dict[str, Iterator[int]] = {}

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

    def led(self, call: Callable[P, T], kind: str, *, draws: bool = True) -> Callable[P, T]:
        """This call, to be made in a `thread`, or as a `job`, that the agent starts now: on a lane of its own.

        Args:
            call: what is to be called, once.
            kind: names the lane, with the number of those of its kind that this lane has started.
            draws: whether what it draws is its own, too.
        """
        lane, threads = self._child(self._here(), kind), self._threads
        if draws and self.draws is not None:
            from importlib import import_module

            call = import_module("flakestorm.boundary.shim.flakestorm_shim.lanes").after(call, kind)

        def led(*args: P.args, **kwargs: P.kwargs) -> T:
            before = vars(threads).get("lane")  # of who takes it, which is mostly a pool's thread without one
            threads.lane = lane
            try:
                return call(*args, **kwargs)
            finally:
                if before is None:
                    del threads.lane
                else:
                    threads.lane = before

        return led

    def here(self, call: Callable[P, T]) -> Callable[P, T]:
        """This call, to be made in another thread on the lane of the caller, who does nothing but wait for it."""
        lane, threads = self._here(), self._threads

        def here(*args: P.args, **kwargs: P.kwargs) -> T:
            threads.lane = lane
            return call(*args, **kwargs)

        return here

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

        A job of a pool is a lane whichever thread takes it, named by who submitted it: `1.job2` is the second one of
        lane 1; so is a thread that the agent starts (`1.thread1`), and a task of an event loop in either one
        (`1.job2.task1`).

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
                return self._open(None)
        known = self._tasks.get(task)
        return self._open(task) if known is None else known

    def _here(self) -> str:
        """The caller's lane; the caller need not be the agent."""
        task = None if asyncio._get_running_loop() is None else asyncio.current_task()
        lane: str | None = getattr(self._threads, "lane", None) if task is None else self._tasks.get(task)
        return self._open(task) if lane is None else lane

    def _open(self, task: object | None) -> str:
        """The lane of a thread or task that asks for the first time."""
        within: str = getattr(self._threads, "lane", None) or ""
        lane = self._child(within, "task") if "." in within else str(next(self._opened))
        if task is not None:
            return self._tasks.setdefault(task, lane)
        self._threads.lane = lane
        return lane

    def _child(self, lane: str, kind: str) -> str:
        """The lane of what this one starts now. `next` of a count is one step for the interpreter: no lock."""
        name = f"{lane}.{kind}"
        started = self._started.get(name)
        if started is None:
            started = self._started.setdefault(name, count(1))
        return f"{name}{next(started)}"

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
