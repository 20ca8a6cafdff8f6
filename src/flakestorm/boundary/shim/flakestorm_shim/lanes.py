"""What an agent draws: one run's seed and clock, and its lanes.

A lane is one concurrent thread or task of the agent. Each has streams of its own, so that what it draws depends on
nothing but the seed and on where it was started: the second task of the first thread draws the same values however the
others are scheduled. Lanes are therefore named by descent (`0`, `0.thread1`, `0.thread1.task2`), when they are started
and not when they first draw, and each kind is counted by itself: it is chance whether a pool starts one more thread.

The clock stands still between boundary events: two reads with no event between them give the same moment, in every
run. Only who reads it some hundred times at one standstill is waiting for it, and sees it creep. Each lane has a clock
of its own, which begins at that of who started it and, when it ends, sets that one on: so what happens on other lanes
meanwhile, in whatever order, is seen only by who has waited for it.

This module serves launched agents and, imported by flakestorm itself, agents in its own process.
"""

from __future__ import annotations

from _thread import _local
from contextvars import ContextVar
from itertools import count

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "CREEP_US",
    "FORM",
    "PATIENT_READS",
    "Lane",
    "Run",
    "after",
    "here",
    "inside",
    "lane_in",
    "settle",
    "take_from",
]

PATIENT_READS = 300
"""How often the clock can be read at one standstill before it creeps."""

CREEP_US = 1000
"""How far it then creeps with each read, in microseconds."""

FORM = 2
"""How draws are made now. In the first form, a job that enters a copy of its submitter's context drew on that one's
lane, as all such jobs did at once; recordings of that time are played again in their own form."""


class Run:
    """One run of the agent: what its draws follow from, and where its clock stands.

    Args:
        seed: any integer.
        epoch_ms: where the clock stands at first, in milliseconds since 1970.
        place: gives microseconds from there to the last boundary event on any lane, where those of one are not known.
        process: which of the run's processes this is.
        form: how its draws are made; see `FORM`.
    """

    __slots__ = ("_adopted", "epoch_us", "form", "key", "place", "root", "seeded")

    def __init__(self, seed: int, epoch_ms: int, place: Callable[[], int], process: int = 0, form: int = FORM) -> None:
        self.form = form
        self.key = blake2b(f"{seed}/{process}".encode()).digest()
        self.epoch_us, self.place = epoch_ms * 1000, place
        self._adopted = count(1)
        self.seeded: Any = None
        """The agent's own generator, once it has seeded the global one: it asked for one stream, and gets it."""
        self.root = Lane(self, "0")

    def adopt(self, lane: Lane | None) -> Lane:
        """The lane of this run for who is in none, or still in one of a run before."""
        if lane is None or lane is lane.run.root:
            return self.root
        if lane.heir is None or lane.heir.run is not self:
            lane.heir = Lane(self, f"a{next(self._adopted)}")
        return lane.heir


class Lane:
    """One concurrent thread or task.

    Args:
        run: the run it belongs to.
        label: its name, by descent.
        elapsed_us: how far its clock has come.
        parent: the one that started it.
    """

    __slots__ = ("_random", "_reads", "_turns", "elapsed_us", "heir", "label", "parent", "run")

    def __init__(self, run: Run, label: str, elapsed_us: int = 0, parent: Lane | None = None) -> None:
        self.run, self.label, self.elapsed_us, self.parent = run, label, elapsed_us, parent
        self._reads = 0
        self.heir: Lane | None = None
        self._turns: dict[str, Any] = {}
        self._random: Any = None

    def child(self, kind: str) -> Lane:
        """The lane of a `thread`, `job` or `task` that this one starts now."""
        return Lane(self.run, f"{self.label}.{kind}{self.turn(kind) + 1}", self.elapsed_us, self)

    def now_us(self) -> int:
        """The moment it is, in microseconds since 1970."""
        at = self.run.place()
        if at > self.elapsed_us:
            self.elapsed_us, self._reads = at, 0
        else:
            self._reads += 1
            if self._reads > PATIENT_READS:
                self.elapsed_us += CREEP_US
        return self.run.epoch_us + self.elapsed_us

    def reach(self, elapsed_us: int) -> None:
        """Its clock has come so far: something happened on it, it has slept, or one that it started has ended."""
        if elapsed_us > self.elapsed_us:
            self.elapsed_us, self._reads = elapsed_us, 0

    def take(self, kind: str, size: int) -> bytes:
        """The next bytes of a stream of this lane.

        Args:
            kind: the stream.
            size: how many bytes.
        """
        purpose = f"{self.label}/{kind}/{self.turn(kind)}/"
        blocks = range((size + 63) // 64)
        found = b"".join([blake2b(f"{purpose}{block}".encode(), key=self.run.key).digest() for block in blocks])
        return found[:size]

    def number(self, kind: str, bits: int) -> int:
        """The next number of so many bits of a stream of this lane."""
        return int.from_bytes(self.take(kind, (bits + 7) // 8), "big") >> (-bits % 8)

    def turn(self, kind: str) -> int:
        """How often this kind was drawn on this lane before."""
        turns = self._turns.get(kind)
        if turns is None:
            turns = self._turns.setdefault(kind, count())
        return next(turns)  # type: ignore[no-any-return]

    def random(self, make: Callable[[int], Any]) -> Any:
        """What stands for the global generator of `random` on this lane.

        Args:
            make: makes a generator of a seed.
        """
        if self.run.seeded is not None:
            return self.run.seeded
        if self._random is None:
            self._random = make(self.number("random", 256))
        return self._random


def _nobody() -> Run | None:
    return None


_source: Callable[[], Run | None] = _nobody
_lane: ContextVar[Lane | None] = ContextVar("flakestorm_lane", default=None)
_at = _local()  # `job`: what this thread is at, whatever context it enters


def take_from(source: Callable[[], Run | None]) -> None:
    """From now on, this says which run the caller belongs to; None: to none, and what it draws is real."""
    global _source
    _source = source


def here() -> Lane | None:
    """The caller's lane."""
    run = _source()
    return None if run is None else lane_in(run)


def lane_in(run: Run) -> Lane:
    """The caller's lane in a run that it is known to belong to."""
    lane = _lane.get()
    if lane is None or lane.run is not run:
        lane = run.adopt(lane)
    job = getattr(_at, "job", None)
    if job is None or job.parent is not lane or run.form < 2:
        return lane
    return job  # type: ignore[no-any-return]  # in a copy of its submitter's context


def inside(lane: Lane, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call this on a lane."""
    token = _lane.set(lane)
    try:
        return call(*args, **kwargs)
    finally:
        _lane.reset(token)


def settle(lane: Lane) -> None:
    """From now on, the current context is on this lane."""
    _lane.set(lane)


def after(call: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """This call, to be made on a new lane that the caller starts now; the call itself where nothing is virtual.

    Args:
        call: the call.
        kind: `thread` or `job`.
    """
    lane = here()
    if lane is None:
        return call
    child = lane.child(kind)

    def led(*args: Any, **kwargs: Any) -> Any:
        before, _at.job = getattr(_at, "job", None), child
        try:
            return inside(child, call, *args, **kwargs)
        finally:
            _at.job = before
            lane.reach(child.elapsed_us)

    return led
