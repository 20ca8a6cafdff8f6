"""The store: reports with their runs and cells in SQLite, their tapes by content beside it; or all on a server.

It holds documents (`flakestorm-report/1`) and knows nothing of what is in them but the few keys it is asked for, so a
report of a later version comes back with every key it had. Writers are short transactions, so several processes may
work at once; a process that is killed leaves behind what it had committed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from flakestorm.core.choices import entropy_seed
from flakestorm.core.record import Record
from flakestorm.errors import Misuse
from flakestorm.store.content import digest_of
from flakestorm.store.database import FILE, Values, Writer, lies_in, open_database

__all__ = ["FILE", "ID", "Entry", "Kept", "Pruned", "Store"]

ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")
"""What the id of a saved report looks like: when its command began (UTC), and four digits of chance."""


class Entry(Record, frozen=True):
    """A saved report in one line.

    Args:
        id: e.g. `20261122-073645-ab12`.
        command, config, started_at, verdict, exit_code, scores: as in the report.
        done: False while its command is under way, and for ever if that was killed.
        runs: how many of its runs are kept.
    """

    id: str
    command: str
    config: str
    started_at: str
    verdict: str
    exit_code: int
    scores: Mapping[str, Mapping[str, Any]]
    done: bool
    runs: int

    def value(self, score: str) -> float | None:
        """The value of this score, None if there is none."""
        found = self.scores.get(score, {}).get("value")
        return float(found) if isinstance(found, int | float) else None


class Kept(Record, frozen=True):
    """A tape in the store.

    Args:
        path: where its content lies; digest: the sha256 of it.
        report, run: a run it is the tape of; original: where that run had written it.
    """

    path: Path
    digest: str
    report: str
    run: str
    original: Path


class Pruned(Record, frozen=True):
    """What `prune` removed."""

    reports: tuple[str, ...]
    tapes: int
    bytes: int


class _Next(Record, frozen=True):
    """Where the next run and the next cell of a report stand."""

    run: int = 0
    cell: int = 0


_ALL = 2**62
_COUNTS = "SELECT (SELECT count(*) FROM runs WHERE report = ?), (SELECT count(*) FROM cells WHERE report = ?)"


class Store:
    """An open store; close it, or use it as a context. For one thread.

    Args:
        folder: the `.flakestorm` folder; made when writing.
        write: whether anything will be written.

    Raises:
        Misuse: it cannot be opened; the message says why.
    """

    def __init__(self, folder: Path, *, write: bool = False) -> None:
        self.folder = folder
        self._db = open_database(folder, write=write)
        self.place, self.content = self._db.place, self._db.contents
        self._at: dict[str, _Next] = {}

    @staticmethod
    def lies_in(folder: Path) -> bool:
        """Whether something was saved there, or a server keeps what is saved."""
        return lies_in(folder)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; more than once does no harm."""
        self._db.close()

    # --- writing -------------------------------------------------------------------------------------------------

    def begin(self, document: Mapping[str, Any]) -> str:
        """Keep the outline of a report whose command has begun; gives its id."""
        started = re.sub(r"\D", "", str(document.get("started_at", "")))[:14]
        if len(started) < 14:
            started = datetime.now(UTC).strftime("%Y%m%d%H%M%S")
        digests = _digests([document])
        with self._db.writing() as db:
            while True:
                id_ = f"{started[:8]}-{started[8:]}-{entropy_seed() & 0xFFFF:04x}"
                if db.execute("SELECT 1 FROM reports WHERE id = ?", (id_,)) == []:
                    break
            self._open(db, id_, document)
            self._at[id_] = self._add(db, id_, document, digests, _Next())
        return id_

    def add(self, id_: str, documents: Sequence[Mapping[str, Any]]) -> None:
        """Keep runs that have finished, with their cells: documents that hold nothing else that is new.

        What it costs depends on these runs alone, not on how many are kept already.
        """
        digests = _digests(documents)
        at = self._at.get(id_) or _Next(*self.rows(_COUNTS, (id_, id_))[0])
        with self._db.writing() as db:
            for document in documents[:1]:  # what the others say of the report is the same
                self._open(db, id_, document)
            for document in documents:
                at = self._add(db, id_, document, digests, at)
        self._at[id_] = at

    def finish(self, id_: str, document: Mapping[str, Any]) -> None:
        """Keep the whole report, in its final form."""
        order = [(at, id_, run["id"]) for at, run in enumerate(document["runs"])]
        known, fresh = self._unknown(id_, document)
        digests = _digests([fresh])
        with self._db.writing() as db:
            self._open(db, id_, document)
            now, fresh = self._unknown(id_, document)
            if now != known:  # it was pruned meanwhile
                digests = _digests([fresh])
            db.execute(
                "UPDATE reports SET state = 'done', command = ?, config = ?, started_at = ?, verdict = ?,"
                " exit_code = ?, scores = ?, head = ? WHERE id = ?",
                (*_columns(document), id_),
            )
            db.execute("DELETE FROM cells WHERE report = ?", (id_,))  # the whole scenario may have changed some
            self._add(db, id_, fresh, digests, _Next(len(now), 0))
            db.executemany("UPDATE runs SET position = ? WHERE report = ? AND id = ?", order)

    def save(self, document: Mapping[str, Any]) -> str:
        """Keep a finished report; gives its id."""
        id_ = self.begin(document)
        self.finish(id_, document)
        return id_

    def forget(self, id_: str) -> None:
        """Remove a report that holds no run yet; with runs it stays (`prune` removes it, with its tapes)."""
        with self._db.writing() as db:
            if not db.execute("SELECT 1 FROM runs WHERE report = ? LIMIT 1", (id_,)):
                db.execute("DELETE FROM reports WHERE id = ?", (id_,))

    def prune(self, *, keep: int | None = None, before: datetime | None = None) -> Pruned:
        """Remove reports, and the tapes that no report is left for.

        Args:
            keep: so many of the newest stay.
            before: those begun at this time or later stay.
        """
        with self._db.writing() as db:
            ids = [id_ for (id_,) in db.execute("SELECT id FROM reports ORDER BY started_at DESC, id DESC")]
            old = ids[keep:] if keep is not None else ids
            if before is not None:
                limit = before.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
                late = {i for (i,) in db.execute("SELECT id FROM reports WHERE started_at >= ?", (limit,))}
                old = [id_ for id_ in old if id_ not in late]
            db.executemany("DELETE FROM reports WHERE id = ?", ((id_,) for id_ in old))
            orphans = "SELECT digest FROM tapes WHERE digest NOT IN (SELECT tape FROM runs WHERE tape IS NOT NULL)"
            digests = [digest for (digest,) in db.execute(orphans)]
            db.executemany("DELETE FROM tapes WHERE digest = ?", ((digest,) for digest in digests))
            freed = sum(map(self.content.remove, digests))  # under the lock: nobody adds one of them meanwhile
        return Pruned(tuple(old), len(digests), freed)

    def _open(self, db: Writer, id_: str, document: Mapping[str, Any]) -> None:
        """Have a report of this id, also where another process has pruned it while its command was at work."""
        row = (id_, *_columns(document))
        db.execute("INSERT INTO reports VALUES (?, ?, ?, ?, 'open', ?, ?, ?, ?) ON CONFLICT DO NOTHING", row)

    def _unknown(self, id_: str, document: Mapping[str, Any]) -> tuple[set[str], dict[str, Any]]:
        """The runs that are kept, and the document without them."""
        known = {run for (run,) in self.rows("SELECT id FROM runs WHERE report = ?", (id_,))}
        return known, {**document, "runs": [run for run in document["runs"] if run["id"] not in known]}

    def _add(
        self,
        db: Writer,
        id_: str,
        document: Mapping[str, Any],
        digests: Mapping[str, str],
        at: _Next,
    ) -> _Next:
        """Keep a document's runs with their tapes, and its cells; `digests` may be those of other documents too."""
        runs, cells = document["runs"], document["cells"]
        tapes = {run["tape"]: digests[run["tape"]] for run in runs if run.get("tape") in digests}
        for path, digest in tapes.items():  # under the lock: nobody removes one of them meanwhile
            size = self.content.add(Path(path), digest)
            db.execute("INSERT INTO tapes VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, size))
        db.executemany(
            "INSERT INTO runs VALUES (?, ?, ?, ?, ?) ON CONFLICT (report, id) DO UPDATE SET"
            " position = excluded.position, document = excluded.document, tape = excluded.tape",
            (
                (id_, _text(run["id"]), position, _json(run), digests.get(run.get("tape", "")))
                for position, run in enumerate(runs, at.run)
            ),
        )
        db.executemany(
            "INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (id_, position, _text(c["scenario"]), _text(c["invariant"]), c["prompt"], c["trial"], c["verdict"],
                 _json(c))
                for position, c in enumerate(cells, at.cell)
            ),
        )  # fmt: skip
        return _Next(at.run + len(runs), at.cell + len(cells))

    # --- reading -------------------------------------------------------------------------------------------------

    def entries(self, *, command: str | None = None, limit: int = -1) -> list[Entry]:
        """The saved reports, the newest first.

        Args:
            command: of this command only.
            limit: at most so many; all when negative.
        """
        rows = self.rows(
            "SELECT id, command, config, started_at, verdict, exit_code, scores, state,"
            " (SELECT count(*) FROM runs WHERE report = reports.id)"
            " FROM reports WHERE CAST(:command AS TEXT) IS NULL OR command = :command"
            " ORDER BY started_at DESC, id DESC LIMIT :limit",
            {"command": command, "limit": limit if limit >= 0 else _ALL},
        )
        return [
            Entry(id_, of, config, at, verdict, code, json.loads(scores), state == "done", runs)
            for id_, of, config, at, verdict, code, scores, state, runs in rows
        ]

    def find(self, name: str) -> str:
        """The id that is meant: `latest`, an id, or the beginning or the last four digits of exactly one.

        Raises:
            Misuse: there is none, or more than one.
        """
        ids = [id_ for (id_,) in self.rows("SELECT id FROM reports ORDER BY started_at DESC, id DESC", ())]
        if name == "latest" and ids:
            return str(ids[0])
        found = [id_ for id_ in ids if id_ == name] or [
            id_ for id_ in ids if name and (id_.startswith(name) or id_.endswith(f"-{name}"))
        ]
        if len(found) == 1:
            return str(found[0])
        if found:
            raise Misuse(f"{name!r} could be {', '.join(found[:5])}{' ...' if len(found) > 5 else ''}; give more of it")
        raise Misuse(f"no report {name!r} in the store {self.place}; `flakestorm report` lists those that are there")

    def document(self, id_: str) -> dict[str, Any]:
        """The report with this id; its tapes are those the store keeps.

        A report whose command never came to its end holds what had finished, and is interrupted.

        Raises:
            Misuse: there is none.
        """
        rows = self.rows("SELECT head, state FROM reports WHERE id = ?", (id_,))
        if not rows:
            raise Misuse(f"no report {id_!r} in the store {self.place}")
        document: dict[str, Any] = json.loads(rows[0][0])
        cells = self.rows("SELECT document FROM cells WHERE report = ? ORDER BY position", (id_,))
        runs = self.rows("SELECT document, tape FROM runs WHERE report = ? ORDER BY position, id", (id_,))
        self.content.fetch(tape for _, tape in runs if tape is not None)
        document["cells"] = [json.loads(cell) for (cell,) in cells]
        document["runs"] = [self._run(*row) for row in runs]
        if rows[0][1] != "done":
            document["headline"] = f"its command never came to its end; {len(runs)} of its runs were kept"
        return document

    def tapes(self, report: str | None = None) -> list[Kept]:
        """The tapes the store keeps, with the runs they are of, the newest report first."""
        rows = self.rows(
            "SELECT runs.tape, runs.report, runs.id, runs.document FROM runs JOIN reports ON reports.id = runs.report"
            " WHERE runs.tape IS NOT NULL AND (CAST(:report AS TEXT) IS NULL OR report = :report)"
            " ORDER BY reports.started_at DESC, report DESC, position, runs.id",
            {"report": report},
        )
        self.content.fetch(digest for digest, *_ in rows)
        return [
            Kept(self.content.path(digest), digest, of, run, Path(json.loads(document)["tape"]))
            for digest, of, run, document in rows
        ]

    def _run(self, document: str, tape: str | None) -> dict[str, Any]:
        run: dict[str, Any] = json.loads(document)
        return run if tape is None else {**run, "tape": str(self.content.path(tape).absolute())}

    def rows(self, query: str, values: Values) -> list[tuple[Any, ...]]:
        """What a query gives.

        Raises:
            Misuse: the store cannot be read; the message says why.
        """
        return self._db.rows(query, values)


def _digests(documents: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The tapes there are, by path, each with the digest of its content."""
    named = {run["tape"] for document in documents for run in document["runs"] if run.get("tape")}
    return {tape: digest_of(Path(tape)) for tape in sorted(named) if "\0" not in tape and Path(tape).is_file()}


def _columns(document: Mapping[str, Any]) -> tuple[str, str, str, str, int, str, str]:
    """What a report can be looked up by, and the rest of it."""
    head = {key: value for key, value in document.items() if key not in ("runs", "cells")}
    return (
        _text(document["command"]),
        _text(document.get("config", "")),
        _text(document["started_at"]),
        document["verdict"],
        document["exit_code"],
        _json(document["scores"]),
        _json(head),
    )


def _text(value: object) -> str:
    return str(value).encode("utf-8", "replace").decode()


def _json(value: Any) -> str:
    """As JSON; half an emoji, which UTF-8 cannot hold, becomes a question mark."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, or an integer beyond 64 bits
        return _text(json.dumps(value, ensure_ascii=False))
