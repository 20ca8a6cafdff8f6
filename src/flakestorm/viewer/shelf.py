"""What the viewer can show: the store's reports, their runs, and tapes, found by what a page's address says.

A report of ten thousand runs is read once, without its runs; those are fetched some at a time. Nothing is written.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import monotonic_ns
from typing import Any, TypeVar

from flakestorm.engine.events import Report
from flakestorm.errors import Misuse
from flakestorm.reports.comparison import is_comparison
from flakestorm.reports.document import from_document
from flakestorm.reports.grid import Grid, grid_of
from flakestorm.store import parts
from flakestorm.store.database import server
from flakestorm.store.sqlite import FILE, Entry, Store
from flakestorm.tape.shelf import find
from flakestorm.viewer.recording import Recording

__all__ = ["Saved", "Shelf"]

T = TypeVar("T")

REPORTS, TAPES = 4, 6
"""How many of the last used are held in memory."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved report without its runs.

    Args:
        id: in the store; done: whether its command came to its end.
        head: its document, without runs and cells.
        report: the report, without runs; None where the document is not one (a comparison).
        grid: its heat map.
        runs: ids of its runs, in plan order.
        cells_of: run id -> the cells judged on it, as documents.
    """

    id: str
    done: bool
    head: dict[str, Any]
    report: Report | None
    grid: Grid | None
    runs: tuple[str, ...]
    cells_of: dict[str, list[dict[str, Any]]]


@dataclass(slots=True)
class Shelf:
    """The store of one project, read only. For several threads.

    Args:
        folder: the project's `.flakestorm` folder; it need not exist yet.
    """

    folder: Path
    _lists: OrderedDict[Hashable, list[Entry]] = field(default_factory=OrderedDict)
    _reports: OrderedDict[Hashable, Saved] = field(default_factory=OrderedDict)
    _tapes: OrderedDict[Hashable, Recording] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def entries(self) -> list[Entry]:
        """The saved reports, the newest first; none where nothing was saved yet.

        Raises:
            Misuse: the store cannot be read.
        """
        if not Store.lies_in(self.folder):
            return []
        return self._held(self._lists, _state(self.folder), 1, self._listed)

    def _listed(self) -> list[Entry]:
        with Store(self.folder) as store:
            return store.entries()

    def saved(self, id_: str) -> Saved:
        """A saved report.

        Raises:
            Misuse: there is none with this id, or it cannot be read.
        """
        with Store(self.folder) as store:
            head, done = parts.head(store, id_)
            runs = tuple(parts.run_ids(store, id_))
            key = (id_, done, len(runs))
            return self._held(self._reports, key, REPORTS, lambda: _read(store, id_, head, done, runs))

    def runs(self, id_: str, wanted: Sequence[str]) -> list[dict[str, Any]]:
        """Some runs of a report, as documents, in the order asked for; those there are."""
        with Store(self.folder) as store:
            found = parts.runs(store, id_, wanted)
        return [found[run] for run in wanted if run in found]

    def recording(self, of: str) -> Recording:
        """A tape.

        Args:
            of: `REPORT/RUN`, or `tape:PATH` for one that lies in the folder.

        Raises:
            Misuse: there is no such tape.
            TapeDamaged: it cannot be read.
        """
        path = self._tape(of)
        try:
            state = path.stat()
        except OSError as error:
            raise Misuse(f"the tape of {of} is gone: {error.strerror}") from error
        key = (path, state.st_mtime_ns, state.st_size)
        return self._held(self._tapes, key, TAPES, lambda: Recording.read(path))

    def taped(self, report: str, run: str) -> bool:
        """Whether the store keeps this run's tape."""
        with Store(self.folder) as store:
            path = parts.kept_tape(store, report, run)
        return path is not None and path.is_file()

    def loose_tapes(self) -> list[tuple[str, int]]:
        """Tapes that belong to no report (what `record` and `gateway` wrote): path in the folder, and size in bytes."""
        if not self.folder.is_dir():
            return []
        content = self.folder / "content"
        found = [path for path in find([self.folder]) if content not in path.parents]
        newest = sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)
        return [(path.relative_to(self.folder).as_posix(), path.stat().st_size) for path in newest]

    def _tape(self, of: str) -> Path:
        kind, _, name = of.partition(":")
        if kind == "tape":
            if name in {path for path, _ in self.loose_tapes()}:
                return self.folder / name
            raise Misuse(f"there is no tape {name!r} in {self.folder}")
        report, _, run = of.partition("/")
        with Store(self.folder) as store:
            path = parts.kept_tape(store, report, run)
        if path is None:
            raise Misuse(f"no tape was kept of the run {run!r} of {report!r}")
        return path

    def _held(self, held: OrderedDict[Hashable, T], key: Hashable, most: int, make: Callable[[], T]) -> T:
        """What is held under this key, else what is made now: by one thread, for all that wait."""
        with self._lock:
            if key not in held:
                held[key] = make()
                while len(held) > most:
                    held.popitem(last=False)
            held.move_to_end(key)
            return held[key]


def _state(folder: Path) -> tuple[tuple[int, int], ...]:
    """What changes whenever something is written: time and size of the database and of its write-ahead log. Of a server
    nobody knows, so it changes all the time."""
    if server():
        return ((monotonic_ns(), 0),)
    found = []
    for path in (folder / FILE, folder / f"{FILE}-wal"):
        try:
            state = path.stat()
        except OSError:
            continue
        found.append((state.st_mtime_ns, state.st_size))
    return tuple(found)


def _read(store: Store, id_: str, head: dict[str, Any], done: bool, runs: tuple[str, ...]) -> Saved:
    cells = parts.cells(store, id_)
    cells_of: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        cells_of.setdefault(str(cell.get("run", "")), []).append(cell)
    if is_comparison(head):
        return Saved(id_, done, head, None, None, runs, cells_of)
    report = from_document({**head, "cells": cells, "runs": []})
    return Saved(id_, done, head, report, grid_of(report), runs, cells_of)
