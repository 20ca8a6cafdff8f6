"""Virtual draws of a launched agent.

FLAKESTORM_DRAWS holds `SEED:EPOCH_MS:FILE`. The file, which the gateway keeps, holds five 64-bit numbers: which run
this is, its seed, its epoch in milliseconds, how far its clock has come, in microseconds, and in which form its draws
are made. It is mapped, so that a look at the clock costs no system call. Each process of the agent appends a byte to it
and so learns its number: two processes must not draw the same.
"""

from __future__ import annotations

import os

from . import chance, hooks, moments
from .lanes import FORM, Run, take_from
from .notes import note

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["SIZE_BYTES", "start"]

SIZE_BYTES = 40


PATCHES: dict[str, Callable[[Any], None]] = {
    "time": moments.on_time,
    "os": chance.on_os,
    "datetime": moments.on_datetime,
    "random": chance.on_random,
    "uuid": chance.on_uuid,
    "asyncio": moments.on_asyncio,
}
"""Library to what makes its draws virtual; on lanes that begin where `spawning.PATCHES` says."""


class _Source:
    """Which run it is now, by the file."""

    def __init__(self, seed: int, epoch_ms: int, path: str) -> None:
        self._path = path
        self._view: Any = _mapped(path)
        if self._view is None:
            note(f"{path} cannot be read: the agent's clock only moves when it sleeps")
            self._view = [0, seed, epoch_ms, 0, FORM]
        self._turn = -1
        self._process = _number(path)
        self.run: Run = self._begun()

    def __call__(self) -> Run:
        return self.run if self._view[0] == self._turn else self._begun()

    def _begun(self) -> Run:
        view = self._view
        turn = view[0]
        run = Run(view[1], view[2], lambda: view[3], self._process, view[4])
        if self._turn >= 0:
            run.seeded = self.run.seeded
        self.run, self._turn = run, turn
        return run

    def forked(self) -> None:
        """This is another process now."""
        self._process = _number(self._path)
        self._begun()


def start(text: str) -> None:
    """Make the draws of this process virtual.

    Args:
        text: what the variable holds.
    """
    seed, epoch_ms, path = text.split(":", 2)
    source = _Source(int(seed), int(epoch_ms), path)
    take_from(source)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=source.forked)
    hooks.watch(PATCHES, "what it draws is real")


def _mapped(path: str) -> Any:
    try:
        import mmap

        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is not imported for the agent's sake
            return memoryview(mmap.mmap(file.fileno(), SIZE_BYTES, access=mmap.ACCESS_READ)).cast("q")
    except (OSError, ValueError, ImportError):
        return None


def _number(path: str) -> int:
    """This process's number, from 0, in the order in which the agent's processes started."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
    except OSError:
        return 0
    try:
        os.write(file, b".")
        return os.lseek(file, 0, os.SEEK_CUR) - SIZE_BYTES - 1
    finally:
        os.close(file)
