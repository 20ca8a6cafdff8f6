"""Tapes by content: a file is kept once under the hash of its bytes, however many reports have it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["Content", "digest_of"]

CHUNK_BYTES = 1 << 20


def digest_of(path: Path) -> str:
    """The sha256 of a file, as 64 hexadecimal digits.

    Raises:
        OSError: it cannot be read.
    """
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            found.update(chunk)
    return found.hexdigest()


def _copy(file: Path, to: Path) -> int:
    """In few system calls, for there are many small ones; gives the size in bytes."""
    size = 0
    with file.open("rb", buffering=0) as source, to.open("wb", buffering=0) as target:
        while chunk := source.read(CHUNK_BYTES):
            left = memoryview(chunk)
            while left:
                left = left[target.write(left) :]
            size += len(chunk)
    return size


class Content:
    """The folder of kept files. Whoever adds or removes must hold the database's write lock.

    Files are copies, not links: a later command may write to the original's path again, and what is kept under a hash
    must not change with it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        """Where the file with this digest lies, if it is kept."""
        return self.folder / digest[:2] / digest

    def fetch(self, digests: Iterable[str]) -> None:
        """They are where they are kept."""

    def add(self, file: Path, digest: str) -> int:
        """Keep a copy of the file; a reader sees all of it or nothing. Gives its size in bytes.

        Raises:
            OSError: it cannot be read, or not be written here.
        """
        target = self.path(digest)
        with suppress(FileNotFoundError):
            return target.stat().st_size
        part = self.folder / f".{digest}.{os.getpid()}"
        try:
            try:
                size = _copy(file, part)
            except FileNotFoundError:
                self.folder.mkdir(parents=True, exist_ok=True)
                size = _copy(file, part)
            try:
                part.replace(target)
            except FileNotFoundError:  # the first one with these two digits
                target.parent.mkdir(exist_ok=True)
                part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return size

    def remove(self, digest: str) -> int:
        """Forget a file; gives its size in bytes, 0 if it was not there.

        Raises:
            OSError: it cannot be removed.
        """
        path = self.path(digest)
        try:
            size = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            return 0
        return size
