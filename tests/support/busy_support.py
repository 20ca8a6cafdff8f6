"""What tests of pools of threads share: threads in each other's way, and a service that tells no two the same."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from upstream import Canned, Request, document


@contextmanager
def busy() -> Iterator[None]:
    """Threads take turns as often as they can, and one always has something to do."""
    over, before = threading.Event(), sys.getswitchinterval()

    def work() -> None:
        while not over.is_set():
            pass

    thread = threading.Thread(target=work)
    sys.setswitchinterval(1e-4)
    try:
        thread.start()
        yield
    finally:
        sys.setswitchinterval(before)
        over.set()
        thread.join()


def numbers() -> Callable[[Request], Canned]:
    """Answers with the next number, from 0, whatever is asked."""
    number, lock = itertools.count(), threading.Lock()

    def numbered(_: Request) -> Canned:
        with lock:
            return document({"number": next(number)})

    return numbered
