"""The store on a Postgres server (extra `postgres`), for several machines that save and read the same reports.

Everything lies in a schema of its own, `flakestorm`; the content of tapes lies there too, and is fetched into the local
folder when somebody wants to read it. Writers take turns by an advisory lock that ends with their transaction.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flakestorm.errors import MissingExtra, Misuse
from flakestorm.store.content import Content
from flakestorm.store.database import VARIABLE, Values

try:
    import psycopg
except ImportError as error:
    raise MissingExtra(VARIABLE, "postgres") from error

__all__ = ["MIGRATIONS", "Postgres", "anything_at"]

LOCK_MS = 10_000
"""How long one process waits for another that is writing, in milliseconds."""

CONNECT_S = 10
"""How long is waited for the server, in seconds."""

_LOCK = 0x666C616B65  # "flake": any number that nobody else in this database locks
_AT_ONCE = 100
_MARK = re.compile(r"\?|(?<!:):([a-z_]+)")

Step = tuple[str, ...]

_first: Step = (
    'CREATE TABLE reports (id TEXT COLLATE "C" PRIMARY KEY, command TEXT NOT NULL, config TEXT NOT NULL,'
    ' started_at TEXT COLLATE "C" NOT NULL, state TEXT NOT NULL, verdict TEXT NOT NULL, exit_code INTEGER NOT NULL,'
    " scores TEXT NOT NULL, head TEXT NOT NULL)",
    'CREATE TABLE tapes (digest TEXT COLLATE "C" PRIMARY KEY, bytes BIGINT NOT NULL)',
    'CREATE TABLE contents (digest TEXT COLLATE "C" PRIMARY KEY, content BYTEA NOT NULL)',
    'CREATE TABLE runs (report TEXT COLLATE "C" NOT NULL REFERENCES reports(id) ON DELETE CASCADE, id TEXT COLLATE "C"'
    ' NOT NULL, position BIGINT NOT NULL, document TEXT NOT NULL, tape TEXT COLLATE "C" REFERENCES tapes(digest),'
    " PRIMARY KEY (report, id))",
    "CREATE INDEX runs_by_tape ON runs (tape)",
    'CREATE TABLE cells (report TEXT COLLATE "C" NOT NULL REFERENCES reports(id) ON DELETE CASCADE, position BIGINT'
    " NOT NULL, scenario TEXT NOT NULL, invariant TEXT NOT NULL, prompt INTEGER NOT NULL, trial INTEGER NOT NULL,"
    " verdict TEXT NOT NULL, document TEXT NOT NULL, PRIMARY KEY (report, position))",
)

MIGRATIONS: tuple[Step, ...] = (_first,)
"""Step n takes the schema from version n to version n + 1."""


def anything_at(address: str) -> bool:
    """Whether anything was saved at this address; True where that cannot be found out."""
    try:
        with psycopg.connect(address, autocommit=True, connect_timeout=CONNECT_S) as connection:
            found = connection.execute("SELECT to_regclass('flakestorm.version')").fetchone()
    except psycopg.Error:
        return True
    return found is not None and found[0] is not None


class Postgres:
    """Fulfils `store.database.Database` on a server.

    Args:
        address: `postgresql://...`, as libpq takes it.
        folder: where tapes are fetched to.
        write: whether anything will be written; the schema is then made, or brought to the newest version.
        migrations: the steps; their number is the newest version.

    Raises:
        Misuse: it cannot be used; the message says why.
    """

    def __init__(self, address: str, folder: Path, *, write: bool, migrations: Sequence[Step] = MIGRATIONS) -> None:
        self.place = _shown(address)
        with self._explaining():
            self.connection = psycopg.connect(
                address,
                autocommit=True,
                connect_timeout=CONNECT_S,
                application_name="flakestorm",
                options=f"-c search_path=flakestorm -c lock_timeout={LOCK_MS}",
            )
        self.contents = _Contents(self, Content(folder / "content"))
        try:
            self._settle(write, migrations)
        except BaseException:
            self.close()
            raise

    def rows(self, query: str, values: Values) -> list[tuple[Any, ...]]:
        with self._explaining():
            return _Statements(self.connection).execute(query, values)

    @contextmanager
    def writing(self) -> Iterator[_Statements]:
        with self._explaining(), self.connection.transaction():
            statements = _Statements(self.connection)
            statements.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
            yield statements

    def close(self) -> None:
        self.connection.close()

    def _settle(self, write: bool, migrations: Sequence[Step]) -> None:
        version = self._version()
        if version > len(migrations):
            raise Misuse(
                f"the store {self.place}: made by a newer flakestorm (its format is {version}, this one knows "
                f"{len(migrations)})"
            )
        if version == len(migrations):
            return
        if not write:
            raise Misuse(
                f"there is no store in {self.place}: nothing was saved yet"
                if version == 0
                else f"the store {self.place}: made by an older flakestorm; run any judging command to bring it up to "
                "date"
            )
        with self.writing() as db:  # the version is read again under the lock: another process may just have done it
            db.execute("CREATE SCHEMA IF NOT EXISTS flakestorm")
            db.execute("CREATE TABLE IF NOT EXISTS version (number INTEGER NOT NULL)")
            for step in migrations[self._version() :]:
                for statement in step:
                    db.execute(statement)
            db.execute("DELETE FROM version")
            db.execute("INSERT INTO version VALUES (?)", (len(migrations),))

    def _version(self) -> int:
        """The schema's version; 0 where there is none."""
        if self.rows("SELECT to_regclass('flakestorm.version')", ())[0][0] is None:
            return 0
        found = self.rows("SELECT number FROM version", ())
        return int(found[0][0]) if found else 0

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise Misuse(f"the store {self.place}: {_explained(error)}") from error
        except OSError as error:
            raise Misuse(f"the store {self.place}: {error.strerror or error}") from error


class _Statements:
    """Statements as the store writes them, on a connection to Postgres."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(_own(statement), _cleaned(values))
        return cursor.fetchall() if cursor.description else []

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_own(statement), [_cleaned(tuple(row)) for row in rows])


class _Contents:
    """The content of tapes, in the database; a copy of what somebody reads is in the local folder."""

    def __init__(self, database: Postgres, local: Content) -> None:
        self._database, self._local = database, local

    def path(self, digest: str) -> Path:
        return self._local.path(digest)

    def fetch(self, digests: Iterable[str]) -> None:
        missing = sorted({digest for digest in digests if not self._local.path(digest).exists()})
        for begin in range(0, len(missing), _AT_ONCE):
            some = missing[begin : begin + _AT_ONCE]
            query = "SELECT digest, content FROM contents WHERE digest = ANY(?)"
            for digest, content in self._database.rows(query, (some,)):
                self._keep(digest, content)

    def add(self, file: Path, digest: str) -> int:
        db = _Statements(self._database.connection)
        known = db.execute("SELECT length(content) FROM contents WHERE digest = ?", (digest,))
        if known:
            return int(known[0][0])
        content = file.read_bytes()
        db.execute("INSERT INTO contents VALUES (?, ?)", (digest, content))
        return len(content)

    def remove(self, digest: str) -> int:
        self._local.remove(digest)
        db = _Statements(self._database.connection)
        gone = db.execute("DELETE FROM contents WHERE digest = ? RETURNING length(content)", (digest,))
        return int(gone[0][0]) if gone else 0

    def _keep(self, digest: str, content: bytes) -> None:
        target = self._local.path(digest)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f".{digest}.{os.getpid()}")
            part.write_bytes(content)
            part.replace(target)
        except OSError as error:
            raise Misuse(f"{target}: a tape cannot be fetched there: {error.strerror or error}") from error


def _own(statement: str) -> bytes:
    """The statement with Postgres' own marks for parameters."""
    replace: Callable[[re.Match[str]], str] = lambda found: f"%({found[1]})s" if found[1] else "%s"  # noqa: E731
    return _MARK.sub(replace, statement.replace("%", "%%")).encode()


def _cleaned(values: Values) -> Values:
    """Without NUL characters, which Postgres' text cannot hold; in documents they are written as `\\u0000`."""
    if isinstance(values, Mapping):
        return {name: _whole(value) for name, value in values.items()}
    return tuple(_whole(value) for value in values)


def _whole(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def _shown(address: str) -> str:
    """The address without its password."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(address)
    except psycopg.Error:
        return "that FLAKESTORM_STORE names"
    user, host, port = (str(parts.get(name) or "") for name in ("user", "host", "port"))
    return f"postgresql://{f'{user}@' if user else ''}{host}{f':{port}' if port else ''}/{parts.get('dbname') or ''}"


def _explained(error: psycopg.Error) -> str:
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return f"another process has kept it locked for {LOCK_MS // 1000} s"
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return f"{_line(error)}; it must be allowed to create a schema, or have one called flakestorm"
    if isinstance(error, psycopg.errors.DiskFull):
        return "the disk is full; make room, or remove old reports with `flakestorm tapes prune`"
    return _line(error)


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split()) or type(error).__name__
