"""What the store needs of a database, and which one it is: SQLite beside the config, or a Postgres server.

`Store` speaks one SQL that both understand; its parameters are `?` or `:name`. What differs (the schema, the write
lock, where the content of tapes lies) is behind `Database`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from flakestorm.errors import Misuse

__all__ = ["FILE", "VARIABLE", "Contents", "Database", "Values", "Writer", "lies_in", "open_database", "server"]

VARIABLE = "FLAKESTORM_STORE"
"""Environment variable: the address of the Postgres server that keeps reports and tapes."""

FILE = "store.sqlite3"
"""The SQLite database, in the store's folder."""

Values = tuple[Any, ...] | Mapping[str, Any]
"""The parameters of a statement: in order, or by name."""


class Contents(Protocol):
    """Tapes by the sha256 of their bytes. Whoever adds or removes holds the write lock."""

    def path(self, digest: str) -> Path:
        """Where the file with this digest lies, if it is kept and has been fetched."""
        ...

    def fetch(self, digests: Iterable[str]) -> None:
        """See that these can be read at their paths, those that are kept."""
        ...

    def add(self, file: Path, digest: str) -> int:
        """Keep a copy of the file; gives its size in bytes.

        Raises:
            OSError: it cannot be read, or not be kept.
        """
        ...

    def remove(self, digest: str) -> int:
        """Forget a file; gives its size in bytes, 0 if it was not there."""
        ...


class Writer(Protocol):
    """A transaction."""

    def execute(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Carry out a statement; gives its rows, if it has any."""
        ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Carry out a statement once for each of these."""
        ...


class Database(Protocol):
    """An open database, with the tapes that go with it."""

    @property
    def contents(self) -> Contents:
        """The tapes."""
        ...

    @property
    def place(self) -> str:
        """Where it is, in words, without a password."""
        ...

    def rows(self, query: str, values: Values) -> list[tuple[Any, ...]]:
        """What a query gives.

        Raises:
            Misuse: it cannot be read; the message says why.
        """
        ...

    def writing(self) -> AbstractContextManager[Writer]:
        """One transaction, begun with the write lock, so that it never has to be given up half-way.

        Raises:
            Misuse: it cannot be written; the message says why.
        """
        ...

    def close(self) -> None:
        """Close it; more than once does no harm."""
        ...


def server() -> str:
    """The address of the Postgres server that keeps what is saved; empty where SQLite does.

    Raises:
        Misuse: `FLAKESTORM_STORE` is no such address.
    """
    found = os.environ.get(VARIABLE, "")
    if found and not found.startswith(("postgresql://", "postgres://")):
        raise Misuse(
            f"{VARIABLE} must be the address of a Postgres database, as postgresql://USER@HOST/NAME; without it, "
            "what is saved lies beside the config"
        )
    return found


def lies_in(folder: Path) -> bool:
    """Whether there is something to read: on the server, if there is one, else in this folder.

    Of a server that cannot be asked this is True, so that whoever then opens it is told why.
    """
    if address := server():
        from flakestorm.store.postgres import anything_at

        return anything_at(address)
    return (folder / FILE).is_file()


def open_database(folder: Path, *, write: bool) -> Database:
    """Open the store's database.

    Args:
        folder: the `.flakestorm` folder; made when writing. With a server, tapes are fetched into it.
        write: whether anything will be written.

    Raises:
        Misuse: it cannot be opened; the message says why.
        MissingExtra: there is a server, and its client is not installed.
    """
    if address := server():
        from flakestorm.store.postgres import Postgres  # only where there is a server

        return Postgres(address, folder, write=write)
    from flakestorm.store.schema import Sqlite

    return Sqlite(folder, write=write)
