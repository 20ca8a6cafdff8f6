"""Saving while a command is under way: a listener that hands what has finished to a thread of its own.

The command never waits for the disk; what came in while one transaction was written is written by the next one, so the
cost of a run does not grow with the runs before it. A store that fails costs the saved report, never the command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event as Signal
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from flakestorm.core.record import Record
from flakestorm.engine.events import Event, Finished, Planned, Report, RunFinished
from flakestorm.errors import Misuse

if TYPE_CHECKING:
    from flakestorm.store.sqlite import Store

__all__ = ["Saving"]

Encode = Callable[[Report], Mapping[str, Any]]
BATCH = 500
"""Runs written by one transaction at most, so that other processes get their turn."""

GIVE_WAY_S = 0.02
"""How long the thread waits before it opens the store, so that the first runs are on their way first; and before it
writes what has begun to come in, because runs that end together let the next ones begin."""

TURN_S = 0.001
"""How long a thread has its turn while the end of a command is written (Python's own default is 0.005)."""


class _Item(Record, frozen=True):
    """Something to write: the outline first, then parts (a run with its cells), then the whole."""

    kind: Literal["outline", "part", "whole"]
    report: Report


class Saving:
    """A listener of engine events that saves the report they make up; a context that waits for the last of it.

    Args:
        folder: the store's.
        encode: gives the document of a report, with absolute paths of tapes.

    `id` is the saved report's, once the command is finished and this closed; `problem` says in words why there is none.
    """

    def __init__(self, folder: Path, encode: Encode) -> None:
        self.id: str | None = None
        self.problem: str | None = None
        self._folder, self._encode = folder, encode
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._outline: Report | None = None
        self._bare: Report | None = None
        self._thread: Thread | None = None
        self._ending = Signal()
        self._turns_s: float | None = None

    def __enter__(self) -> Saving:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Planned) and event.outline is not None:
            known, self._outline = self._outline, event.outline
            # A part is encoded with its run alone: what a run costs must not grow with the plan.
            self._bare = replace(event.outline, scenarios=(), invariants=(), prompts=(), notes=(), phases=())
            if known is not None:  # the plan was extended
                return
            self._thread = Thread(target=self._work, name="flakestorm-store", daemon=True)
            self._thread.start()
            self._queue.put(_Item("outline", event.outline))
        elif self._outline is None or self._bare is None:
            return
        elif isinstance(event, RunFinished):
            self._queue.put(_Item("part", replace(self._bare, runs=(event.run,), cells=event.cells)))
        elif isinstance(event, Finished):
            self._queue.put(_Item("whole", event.report))  # written while reports are
            self._take_turns()
            self._end()

    def close(self) -> None:
        """Wait until everything that was handed over is written. More than once does no harm."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._end()
            thread.join()
        if self._turns_s is not None:
            sys.setswitchinterval(self._turns_s)
            self._turns_s = None

    def _take_turns(self) -> None:
        """From here on both threads have work to do. This one often waits for the disk, and would have to wait for its
        turn after each time."""
        if self._turns_s is None and self._thread is not None:
            self._turns_s = sys.getswitchinterval()
            sys.setswitchinterval(TURN_S)

    def _end(self) -> None:
        self._queue.put(None)
        self._ending.set()

    def _work(self) -> None:
        self._ending.wait(GIVE_WAY_S)
        try:
            from flakestorm.store.sqlite import Store  # in this thread, so that the command waits for no import

            with Store(self._folder, write=True) as store:
                self._write(store)
        except Misuse as error:
            self.problem = str(error)
        except Exception as error:  # a defect here must not cost the command its report
            self.problem = f"the store {self._folder}: {type(error).__name__}: {error}"

    def _write(self, store: Store) -> None:
        outline = self._queue.get()
        if outline is None:
            return
        id_ = store.begin(self._encode(outline.report))
        end = False
        while not end:
            batch = self._batch()
            parts = [self._encode(item.report) for item in batch if item is not None and item.kind == "part"]
            if parts:
                store.add(id_, parts)
            for item in batch:
                if item is not None and item.kind == "whole":
                    store.finish(id_, self._encode(item.report))
                    self.id = id_
            end = None in batch

    def _batch(self) -> list[_Item | None]:
        """What has come in, at least one; nothing after the end."""
        batch = [self._queue.get()]
        self._ending.wait(GIVE_WAY_S)
        while batch[-1] is not None and len(batch) < BATCH:
            try:
                batch.append(self._queue.get_nowait())
            except Empty:
                break
        return batch
