"""The lane on which this program makes a call, for the gateway to know.

From outside, an agent is a number of connections, and a pool lends one to whoever comes first. So each request says on
which lane it was made: `PID-N` for what began by itself, and what was started from there by its kind and number,
`PID-N.job2.task1`. The gateway numbers what began by itself as it comes; all else is named by who started it, which is
the same in every run, however threads and replies take turns.

A lane is a thread, a job of a pool of threads, or a task of an event loop. The one task that a thread waits for
(`asyncio.run`) is that thread's own lane. What a library starts to make a call is not counted: whether it opens one
more connection is chance. Each run of a program that serves several counts anew; FLAKESTORM_LANES names the file that
says which one it is.

`lanes.py` names what an agent draws on by descent as well, and neither name can be made of the other. Both are
recorded: these on tapes, those as the key of every value that was drawn. There the task that `asyncio.run` waits for is
a lane (`0.task1`, here `1`), a coroutine given to another thread's loop belongs to that loop (`0.task1.task2`, here
`1.job2.task1`), anyio's worker is a thread (`0.task1.thread2`, here `1.job3`), and what a library starts is counted
(here it is not, since it is chance). And there is a lane there only where draws are virtual.
"""

from __future__ import annotations

import os
import sys
from _thread import _local
from itertools import count

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "VARIABLE",
    "Lane",
    "begin",
    "begun",
    "busy",
    "child",
    "give",
    "here",
    "known",
    "led",
    "on_asyncio",
    "task_lane",
]

VARIABLE = "FLAKESTORM_LANES"
_LONG = 200  # characters of a name; what is deeper is named by a number that follows from all of it
_DEEP = 10**15


class Lane:
    """One concurrent thread of the agent.

    Args:
        turn: which of the program's runs it belongs to.
        name: what the gateway is told.

    `busy` is above 0 while a library makes a call on it; `waits` gives the task that its thread waits for.
    """

    __slots__ = ("_started", "busy", "name", "turn", "waits")

    def __init__(self, turn: int, name: str = "") -> None:
        self.turn, self.name, self.busy = turn, name or f"{os.getpid()}-{next(_opened)}", 0
        self.waits: Any = None
        self._started: dict[str, Any] = {}

    def child(self, kind: str) -> Lane:
        """The lane of a `thread`, `job` or `task` that this one starts now."""
        if self.busy:
            return Lane(self.turn)
        started = self._started.get(kind)
        if started is None:
            started = self._started.setdefault(kind, count(1))
        name = f"{self.name}.{kind}{next(started)}"
        return Lane(self.turn, name if len(name) < _LONG else _shorter(name))


def _no_loop() -> None:
    """There is none before asyncio is imported."""


_opened = count(1)
_threads = _local()
_tasks: Any = None  # lanes of tasks, from the first loop on
_given: Any = None  # lanes of coroutines that were given to the loop of another thread
_running: Callable[[], Any] = _no_loop
_current: Callable[[], Any] = _no_loop
_turns: Any = None  # which run it is, first of all


def begun() -> bool:
    """Whether lanes are told of at all."""
    return _turns is not None


def begin(path: str | None) -> None:
    """From now on, every lane has its name.

    Args:
        path: the file that says which run it is; where there is none, all is one.
    """
    global _turns
    if _turns is None:
        _turns = _mapped(path) or (0,)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forked)


def here() -> Lane:
    """The caller's lane."""
    turn = _turns[0]
    task = None if _running() is None else _current()
    if task is None:
        lane = getattr(_threads, "lane", None)
        if lane is None or lane.turn != turn:
            lane = _threads.lane = Lane(turn)
        return lane
    lane = _tasks.get(task) or getattr(_threads, "starting", None)
    if lane is None or lane.turn != turn:
        lane = Lane(turn)
        _tasks[task] = lane
    return lane


def known() -> bool:
    """Whether it can be told what the caller is. Tasks of trio and greenlets of gevent take turns within one thread."""
    if "trio" in sys.modules:
        try:
            sys.modules["trio"].lowlevel.current_task()
            return False
        except RuntimeError:
            pass
    return "gevent" not in sys.modules or sys.modules["gevent"].getcurrent().parent is None


def child(kind: str) -> Lane:
    """The lane of what the caller starts now."""
    return here().child(kind)


def led(call: Callable[..., Any], lane: Lane) -> Callable[..., Any]:
    """This call, to be made in another thread, on a lane of its own."""

    def led(*args: Any, **kwargs: Any) -> Any:
        before = getattr(_threads, "lane", None)  # of who takes it: a pool's thread
        _threads.lane = lane
        try:
            return call(*args, **kwargs)
        finally:
            _threads.lane = before

    return led


class _Busy:
    """While entered, what is started on this lane is a library's, and not counted."""

    __slots__ = ("_lane",)

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def __enter__(self) -> Lane:
        self._lane.busy += 1
        return self._lane

    def __exit__(self, *_: object) -> None:
        self._lane.busy -= 1


def busy() -> _Busy:
    """While entered, a library is at work on the caller's lane."""
    return _Busy(here())


def on_asyncio(module: Any) -> None:
    """An event loop may be running from now on.

    Args:
        module: `asyncio.base_events`.
    """
    global _tasks, _given, _running, _current
    from weakref import WeakKeyDictionary

    if _tasks is None:
        _tasks, _given = WeakKeyDictionary(), WeakKeyDictionary()
        _current, _running = module.tasks.current_task, module.events._get_running_loop


def task_lane(make: Callable[[], Any], coro: Any) -> Any:
    """Make a task, on a lane of its own.

    Args:
        make: makes it.
        coro: what it is to run.
    """
    lane, waits = _next_task(coro)
    before = getattr(_threads, "starting", None)
    _threads.starting = lane  # for one that begins before it has been made
    try:
        task = make()
    finally:
        _threads.starting = before
    try:
        _tasks[task] = lane
        if waits:
            from weakref import ref

            lane.waits = ref(task)
    except TypeError:
        pass  # it cannot be kept in mind, and is found as one that began by itself
    return task


def _next_task(coro: Any) -> tuple[Lane, bool]:
    """The lane of a task that is made now, and whether the thread is to wait for it."""
    try:
        given = _given.pop(coro, None) if _given else None
    except TypeError:
        given = None
    if given is not None:
        return given, False
    if _running() is None:
        own = here()
        waits = None if own.waits is None else own.waits()
        if waits is None or waits.done():
            return own, True
        return own.child("task"), False
    if _current() is None:  # the loop itself makes it, when something has come
        return Lane(_turns[0]), False
    return child("task"), False


def give(coro: Any) -> None:
    """A coroutine is given to the loop of another thread: the task that it becomes belongs to the caller."""
    try:
        if _given is not None:
            _given[coro] = child("task")
    except TypeError:
        pass  # of a compiler that makes what cannot be kept in mind


def _shorter(name: str) -> str:
    root, _, rest = name.partition(".")
    number = 0
    for letter in rest.encode():
        number = (number * 257 + letter) % _DEEP
    return f"{root}.deep{number}"


def _forked() -> None:
    """This is another process now, of whose threads only this one has come along."""
    global _threads
    _threads = _local()
    if _tasks is not None:
        _tasks.clear()


def _mapped(path: str | None) -> Any:
    if not path:
        return None
    try:
        import mmap

        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is not imported for the agent's sake
            return memoryview(mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)).cast("q")
    except (OSError, ValueError, ImportError):
        return None
