"""Saving while a command is under way: a listener that hands what has finished to a thread of its own.

The command never waits for the disk; what came in while one transaction was written is written by the next one, so the
cost of a run does not grow with the runs before it. A store that fails costs the saved report, never the command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from flakestorm.core.record import Record
from flakestorm.core.turns import short_turns
from flakestorm.engine.events import Event, Finished, Planned, Report, RunFinished
from flakestorm.errors import Misuse
from flakestorm.store.lull import Lull

if TYPE_CHECKING:
    from flakestorm.store.sqlite import Store

__all__ = ["Saving"]

Encode = Callable[[Report], Mapping[str, Any]]
BATCH = 500
"""Runs written by one transaction at most, so that other processes get their turn."""


class _Item(Record, frozen=True):
    """Something to write: the outline first, then parts (a run with its cells), then the whole; or that it is none."""

    kind: Literal["outline", "part", "whole", "withdrawn"]
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
        self._lull = Lull()
        self._turns = ExitStack()
        self._ended = False
        self._made = False

    def __enter__(self) -> Saving:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Wait as `close` does. A command that was refused before any run was made leaves no report."""
        if isinstance(error, Misuse) and self._outline is not None and not self._made:
            self._queue.put(_Item("withdrawn", self._outline))
        self.close()

    def __call__(self, event: Event) -> None:
        self._lull(event)
        if isinstance(event, Planned) and event.outline is not None:
            known, self._outline = self._outline, event.outline
            # A part is encoded with its run alone: what a run costs must not grow with the plan.
            self._bare = replace(event.outline, scenarios=(), invariants=(), prompts=(), notes=(), phases=())
            if known is not None:  # the plan was extended
                return
            self._thread = Thread(target=self._work, name="flakestorm-store", daemon=True)
            self._thread.start()
            self._made = bool(event.outline.runs)
            self._queue.put(_Item("outline", event.outline))
        elif self._outline is None or self._bare is None:
            return
        elif isinstance(event, RunFinished):
            self._made = True
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
        self._turns.close()

    def _take_turns(self) -> None:
        """From here on both threads have work to do. The other one often waits for the disk, and would have to wait for
        its turn after each time."""
        if self._thread is not None and not self._ended:
            self._ended = True
            self._turns.enter_context(short_turns())

    def _end(self) -> None:
        self._queue.put(None)
        self._lull.end()

    def _work(self) -> None:
        try:
            with self._lull.step():
                from flakestorm.store.sqlite import Store  # in this thread, so that the command waits for no import

                store = Store(self._folder, write=True)
            with store:
                self._write(store)
        except Misuse as error:
            self.problem = str(error)
        except Exception as error:  # a defect here must not cost the command its report
            self.problem = f"the store {self._folder}: {type(error).__name__}: {error}"

    def _write(self, store: Store) -> None:
        outline = self._queue.get()
        if outline is None:
            return
        with self._lull.step():
            id_ = store.begin(self._encode(outline.report))
        end = False
        while not end:
            first = self._queue.get()
            with self._lull.step():  # runs that end together let the next ones begin, and are written together
                batch = self._batch(first)
                whole = next((item.report for item in batch if item is not None and item.kind == "whole"), None)
                parts = [item.report for item in batch if item is not None and item.kind == "part"]
                if parts and whole is None:
                    store.add(id_, [*map(self._encode, parts)])
            if whole is not None:  # it holds what was to be added, too
                store.finish(id_, self._encode(whole))
                self.id = id_
            elif any(item is not None and item.kind == "withdrawn" for item in batch):
                store.forget(id_)
            end = None in batch

    def _batch(self, first: _Item | None) -> list[_Item | None]:
        """This and what has come in after it; nothing after the end."""
        batch = [first]
        while batch[-1] is not None and len(batch) < BATCH:
            try:
                batch.append(self._queue.get_nowait())
            except Empty:
                break
        return batch
