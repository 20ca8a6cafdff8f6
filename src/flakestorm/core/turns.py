"""How long a thread may go on while others wait for their turn.

Python lets a thread that computes go on for 5 ms before another one gets its turn. What waits for a reply, or for the
disk, needs next to no time after each wait, and would spend most of it waiting again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["TURN_S", "short_turns"]

TURN_S = 0.0005

_lock = Lock()
_before: list[float] = []  # what it was, once for each that is entered


@contextmanager
def short_turns() -> Iterator[None]:
    """While entered, all threads take turns of `TURN_S`. It may be entered by several at once, and left in any order:
    when the last one has left, turns are as long as they were before the first."""
    with _lock:
        _before.append(_before[0] if _before else sys.getswitchinterval())
        sys.setswitchinterval(min(TURN_S, _before[0]))
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before:
                sys.setswitchinterval(before)
