"""The database's shape, version by version, and how it is opened.

`PRAGMA user_version` says which version a file has. Every step from one version to the next is a function of its own;
opening a file for writing takes the steps that are missing, in one transaction.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flakestorm.errors import Misuse
from flakestorm.store.content import Content
from flakestorm.store.database import FILE, Values
from flakestorm.tape.shelf import keep_from_git

__all__ = ["BUSY_S", "MIGRATIONS", "Sqlite", "connect", "explained"]

BUSY_S = 10.0
"""How long one process waits for another that is writing. Transactions are short, so this is never reached in peace."""

_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def _first(db: sqlite3.Connection) -> None:
    """Reports with their runs and cells, and the tapes they share."""
    for statement in (
        "CREATE TABLE reports (id TEXT PRIMARY KEY, command TEXT NOT NULL, config TEXT NOT NULL, started_at TEXT"
        " NOT NULL, state TEXT NOT NULL, verdict TEXT NOT NULL, exit_code INTEGER NOT NULL, scores TEXT NOT NULL,"
        " head TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE tapes (digest TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE runs (report TEXT NOT NULL REFERENCES reports(id) ON DELETE CASCADE, id TEXT NOT NULL,"
        " position INTEGER NOT NULL, document TEXT NOT NULL, tape TEXT REFERENCES tapes(digest),"
        " PRIMARY KEY (report, id)) WITHOUT ROWID",
        "CREATE INDEX runs_by_tape ON runs (tape)",
        "CREATE TABLE cells (report TEXT NOT NULL REFERENCES reports(id) ON DELETE CASCADE, position INTEGER NOT NULL,"
        " scenario TEXT NOT NULL, invariant TEXT NOT NULL, prompt INTEGER NOT NULL, trial INTEGER NOT NULL,"
        " verdict TEXT NOT NULL, document TEXT NOT NULL, PRIMARY KEY (report, position)) WITHOUT ROWID",
    ):
        db.execute(statement)


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_first,)
"""Step n takes a database from version n to version n + 1."""


def connect(
    file: Path, *, write: bool, migrations: Sequence[Callable[[sqlite3.Connection], None]] = MIGRATIONS
) -> sqlite3.Connection:
    """Open the database; for writing, it is made or brought to the newest version first.

    Args:
        file: where it lies.
        write: whether anything will be written.
        migrations: the steps; their number is the newest version.

    Raises:
        Misuse: it cannot be opened, is damaged, or was made by a newer version.
    """
    try:
        db = _open(file, write=write)
    except sqlite3.Error as error:
        raise explained(error, file) from error
    try:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version > len(migrations):
            raise Misuse(
                f"{file}: made by a newer flakestorm (its format is {version}, this one knows {len(migrations)})"
            )
        if version < len(migrations):
            if not write:
                raise Misuse(f"{file}: made by an older flakestorm; run any judging command to bring it up to date")
            _migrate(db, migrations)
    except sqlite3.Error as error:
        db.close()
        raise explained(error, file) from error
    except BaseException:
        db.close()
        raise
    return db


def _open(file: Path, *, write: bool) -> sqlite3.Connection:
    """A connection that commits when told; a reader does without the files that a write-ahead log needs if it must."""
    if not write:
        try:
            return _checked(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S))
        except sqlite3.OperationalError:  # in a folder where nothing may be written
            return _checked(sqlite3.connect(f"{file.absolute().as_uri()}?immutable=1", uri=True, timeout=BUSY_S))
    db = sqlite3.connect(file, timeout=BUSY_S, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing; a power cut may, the last seconds
    db.execute("PRAGMA foreign_keys = ON")
    return db


def _checked(db: sqlite3.Connection) -> sqlite3.Connection:
    try:
        db.execute("PRAGMA user_version")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _migrate(db: sqlite3.Connection, migrations: Sequence[Callable[[sqlite3.Connection], None]]) -> None:
    """Take the missing steps. The version is read again under the lock: another process may just have done it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        for step in migrations[version:]:
            step(db)
        db.execute(f"PRAGMA user_version = {len(migrations)}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def explained(error: sqlite3.Error | OSError, file: Path) -> Misuse:
    """What went wrong with the store, in words, with what can be done."""
    said = str(error)
    if isinstance(error, OSError) and error.strerror:
        said = error.strerror  # and no file's name, whatever words are in that
    if "readonly" in said or "unable to open" in said:
        said = "it cannot be opened or written there; make the folder writable"
    elif "full" in said or (isinstance(error, OSError) and error.errno in _FULL):
        said = "the disk is full; make room, or remove old reports with `flakestorm tapes prune`"
    elif "locked" in said:
        said = f"another process has kept it locked for {BUSY_S:g} s"
    elif "not a database" in said or "malformed" in said:
        said = "it is damaged or no database; move it away, a new one is made then"
    return Misuse(f"the store {file}: {said}")


class Sqlite:
    """Fulfils `store.database.Database` in a folder.

    Args:
        folder: made when writing.
        write: whether anything will be written.

    Raises:
        Misuse: it cannot be opened; the message says why.
    """

    def __init__(self, folder: Path, *, write: bool) -> None:
        self.file, self.place = folder / FILE, str(folder)
        if write:
            try:
                keep_from_git(folder)
            except OSError as error:
                raise explained(error, folder) from error
        elif not self.file.is_file():
            raise Misuse(f"there is no store in {folder}: nothing was saved yet")
        self.contents = Content(folder / "content")
        self.connection = connect(self.file, write=write)

    def rows(self, query: str, values: Values) -> list[tuple[Any, ...]]:
        try:
            return self.connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise explained(error, self.file) from error

    @contextmanager
    def writing(self) -> Iterator[_Statements]:
        db = self.connection
        try:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield _Statements(db)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        except (sqlite3.Error, OSError) as error:
            raise explained(error, self.file) from error

    def close(self) -> None:
        self.connection.close()


class _Statements:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def execute(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        return self._db.execute(statement, values).fetchall()

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._db.executemany(statement, rows)
