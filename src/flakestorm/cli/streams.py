"""Standard streams as they come: closed, broken or full, they change nothing about a verdict.

A command that has been at work for an hour may not end in another exit code because `head` had read enough, nor abort
because whoever started it gave it no standard input.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TYPE_CHECKING

from flakestorm.errors import Misuse

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["given", "stand", "unread"]


_FULL = frozenset({"ENOSPC", "EDQUOT", "EFBIG", "EIO"})


class _Patient(io.FileIO):
    """A file descriptor whose reader may leave: what it did not want to read is thrown away."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            unread(self.fileno())
            return super().write(data)
        except OSError as error:
            if errno.errorcode.get(error.errno or 0) not in _FULL:
                raise
            unread(self.fileno())  # said once
            raise Misuse(
                f"standard output cannot be written: {error.strerror}; write to where there is room, "
                "or have the report written to a file with -o"
            ) from error


def stand() -> None:
    """Make the three standard streams of this process safe to use.

    Those that are closed lead nowhere, so that no file that is opened later gets their number: native code takes it
    that numbers 0 to 2 are not its own. Standard output goes on when its reader is gone.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # what Python makes of a closed one
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
    out = sys.stdout
    if out is not sys.__stdout__ or not isinstance(out, io.TextIOWrapper) or out.isatty():
        return
    out.flush()
    raw = _Patient(1, "wb", closefd=False)
    sys.stdout = io.TextIOWrapper(
        raw if out.write_through else io.BufferedWriter(raw),  # type: ignore[type-var,unused-ignore]
        encoding=out.encoding,
        errors=out.errors,
        line_buffering=out.line_buffering,
        write_through=out.write_through,
    )


def given(limit_bytes: int) -> bytes:
    """What stands on standard input, to its end.

    Args:
        limit_bytes: how much is taken at most; the byte after it is read too, to tell that there is more.

    Raises:
        Misuse: nothing can be read there.
    """
    parts: list[bytes] = []
    left = limit_bytes + 1
    try:
        while left > 0 and (part := os.read(0, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    except OSError as error:
        raise Misuse(f"standard input cannot be read: {error.strerror}") from error
    return b"".join(parts)


def unread(number: int = 1) -> None:
    """Have what is written to this descriptor go nowhere from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
