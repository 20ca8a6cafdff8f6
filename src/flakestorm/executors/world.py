"""Time and places on this machine."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from flakestorm.errors import FlakestormError, Misuse

__all__ = ["REAL_TIME", "LocalWorld"]

REAL_TIME = "FLAKESTORM_REAL_TIME"
"""Environment variable: with 1, delays that faults make take their real time."""


class LocalWorld:
    """Fulfils `engine.ports.World` on this machine.

    Args:
        tapes: the folder tapes are written to; it is made here. A relative one is taken from where we are now, because
            an agent in this process may go elsewhere.

    Raises:
        Misuse: it cannot be made.
    """

    def __init__(self, tapes: Path) -> None:
        self._tapes = tapes.absolute()
        self._made = [folder for folder in (self._tapes, *self._tapes.parents) if not folder.exists()]
        try:
            self._tapes.mkdir(parents=True, exist_ok=True)  # before anything is run: a run without its tape is lost
        except OSError as error:
            raise Misuse(f"tapes cannot be written to {tapes}: {error.strerror}; choose another -o") from error

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """While entered: where an error ends it, folders that were made for tapes go again if nothing is in them."""
        try:
            yield
        except FlakestormError:
            if self._made:
                for folder, _, _ in os.walk(self._tapes, topdown=False):
                    with suppress(OSError):  # something is in it
                        Path(folder).rmdir()
            with suppress(OSError):  # likewise, e.g. the folder of another command beside this one's
                for made in self._made[1:]:
                    made.rmdir()
            raise

    @property
    def skips(self) -> bool:
        return os.environ.get(REAL_TIME, "") in ("", "0")

    def monotonic(self) -> float:
        return time.perf_counter()

    def now(self) -> str:
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """By an alarm, which only the main thread of a POSIX system can set; elsewhere there is no limit."""
        if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
            yield
            return

        def ring(*_: object) -> None:
            raise TimeoutError(f"took longer than {seconds:g} s")

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def tape_path(self, run: str) -> Path:
        return self._tapes / f"{run}.tape"
