"""When threads of a command may work: while its runs wait for the agent, and not while they begin or end.

What takes the processor at such a moment is in the way of the next requests, and makes replies seem slower than they
were. A thread asks for each step of its work, so that it is out of the way again soon.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from math import inf
from threading import Event as Signal
from threading import Lock

from flakestorm.core.turns import short_turns
from flakestorm.engine.events import Event, Finished, RunFinished, RunStarted

__all__ = ["MOST_S", "QUIET_S", "Lull"]

QUIET_S = 0.006
"""How long no run must have begun or ended; those that begin together take a few milliseconds to be on their way."""

MOST_S = 0.25
"""How long a step is put off at most, where runs begin and end all the time."""

_at_work = Lock()  # two threads at once would only take longer over the step that each is at


class Lull:
    """A listener that knows when runs begin and end, and threads that wait for a lull between them."""

    def __init__(self) -> None:
        self._stirred_s = inf  # there is no lull before the first run has begun
        self._over = Signal()

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunStarted | RunFinished):
            self._stirred_s = time.monotonic()
        elif isinstance(event, Finished):
            self.end()

    def end(self) -> None:
        """No runs are under way any more: from now on, nobody waits."""
        self._over.set()

    @contextmanager
    def step(self) -> Iterator[None]:
        """One step of a thread's work: entered in a lull, by one thread at a time, and with short turns, so that the
        replies which end the lull are heard at once. Where there is none, turns are as long as ever: short ones cost
        more."""
        alone = not self._over.is_set() and _at_work.acquire()
        try:
            with short_turns() if self._came() else nullcontext():
                yield
        finally:
            if alone:
                _at_work.release()

    def _came(self) -> bool:
        """Wait for a lull; whether there is one."""
        latest_s = time.monotonic() + MOST_S
        while (left_s := self._stirred_s + QUIET_S - time.monotonic()) > 0:
            if time.monotonic() >= latest_s or self._over.wait(min(left_s, QUIET_S)):
                return False
        return True
