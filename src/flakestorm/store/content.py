"""Tapes by content: a file is kept once under the hash of its bytes, however many reports have it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
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
        if target.exists():
            return target.stat().st_size
        if not target.parent.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{digest}.{os.getpid()}")
        try:
            shutil.copyfile(file, part)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return target.stat().st_size

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
