"""Which recorded lane a lane of the replay stands for, and whether an order was broken.

A lane is one concurrent thread of the agent. Lanes are numbered by first arrival, so two runs may number the same ones
differently: a lane of the replay is bound to a recorded one by the first call that is matched on it.

A job of a pool, and a thread, is named by who started it and its number among those (`1.job2`). That is the same in
every run, whoever comes first, so these stand for those of their name, as far as nothing says otherwise.

Order is judged within a pair of lanes, if a lane is a thread. Seen from outside the agent it is a connection, unless it
has a name, and a pool lends one connection to many threads: then an order within it means nothing once two calls were
under way at once.
Where neither run ever had two calls under way at once, and no recorded lane was come back to (a client that opens a
connection for each call makes a lane of each), there is one thread whatever the lanes say, and its whole order counts.
Jobs may only happen not to overlap. Which of them comes first is then chance, unless the one that was started first is
the one that comes first: so it counts between jobs of one lane that come in the order in which they were started.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["CONNECTIONS", "Lanes", "Placed", "single"]

CONNECTIONS = "connections"
"""What the first line of a tape says under `lanes` where those without a name are connections."""


_DIGITS = "0123456789"


class Placed(Protocol):
    """What is known of a recorded exchange's place."""

    n: int
    lane: str
    t_ms: float
    end_ms: float


class Lanes:
    """The lanes of one replay.

    Args:
        entries: what was recorded, in order of arrival.
        threads: whether a lane is a thread or task of the agent; else it is a connection.
    """

    def __init__(self, entries: Sequence[Placed], *, threads: bool = True) -> None:
        self._threads = threads
        self._single = single(entries)
        self._named = {entry.lane for entry in entries if "." in entry.lane}
        self._bound: dict[str, str] = {}
        self.taken: set[str] = set()
        """The recorded lanes that a lane of the replay stands for."""
        self._last: dict[tuple[str, str], int] = {}
        self._latest, self._latest_by = -1, ""
        self._open = 0

    def bound(self, lane: str) -> str | None:
        """The recorded lane that this one stands for, if it is known yet."""
        known = self._bound.get(lane)
        return self._by_name(lane) if known is None and self._named and "." in lane else known

    def _by_name(self, lane: str) -> str | None:
        """The recorded lane of this name, as far as nobody stands for it."""
        who, _, which = lane.rpartition(".")
        name = f"{self.bound(who) or who}.{which}"
        return name if name in self._named and name not in self.taken else None

    def begin(self) -> None:
        """A call of the replay is under way, until `end`."""
        self._open += 1
        if self._open > 1:
            self._single = False

    def end(self) -> None:
        self._open -= 1

    def served(self, lane: str, entry: Placed) -> bool:
        """This entry answers a call on this lane; gives whether that breaks the recorded order."""
        if lane not in self._bound and entry.lane not in self.taken:
            self._bound[lane] = entry.lane
            self.taken.add(entry.lane)
        pair = lane, entry.lane
        before = self._last.get(pair, -1)
        broken = entry.n < before and (self._threads or ("." in lane and "." in entry.lane))
        self._last[pair] = max(before, entry.n)
        if entry.n > self._latest:
            self._latest, self._latest_by = entry.n, lane
        elif self._single and not broken:
            broken = _in_turn(self._latest_by, lane)
        return broken


def _in_turn(one: str, two: str) -> bool:
    """Whether what comes on this lane and then on the other one comes in turn, and not by chance of who was free."""
    if one == two or not ("." in one or "." in two):
        return True
    (who, _, which), (other, _, then) = one.rpartition("."), two.rpartition(".")
    kind = which.rstrip(_DIGITS)
    if who != other or kind != then.rstrip(_DIGITS):
        return False
    return (len(which), which) < (len(then), then)


def single(entries: Sequence[Placed]) -> bool:
    """Whether one thread made all of these."""
    left: set[str] = set()
    lane, end_ms = None, 0.0
    for entry in entries:
        if entry.t_ms < end_ms or entry.lane in left:
            return False
        if lane is not None and entry.lane != lane:
            left.add(lane)
        lane, end_ms = entry.lane, max(end_ms, entry.end_ms)
    return True
