"""What a program printed, in bounded memory."""

from __future__ import annotations

__all__ = ["TAIL_BYTES", "Capture"]

TAIL_BYTES = 64 * 1024
"""How much output is kept for messages."""


class Capture:
    """Output of a program, in bounded memory.

    Args:
        limit: how many bytes are kept.
        keep_first: keep the first bytes instead of the last.

    `overflowed` says that there were more.
    """

    def __init__(self, limit: int = TAIL_BYTES, *, keep_first: bool = False) -> None:
        self._data, self._limit, self._first = bytearray(), limit, keep_first
        self.overflowed = False

    def add(self, chunk: bytes) -> None:
        """More output."""
        if self._first:
            room = self._limit - len(self._data)
            self.overflowed = self.overflowed or len(chunk) > room
            self._data += chunk[:room]
            return
        self._data += chunk
        self.overflowed = self.overflowed or len(self._data) > self._limit
        if len(self._data) > 2 * self._limit:  # cut now and then: cheap, and bounded all the same
            del self._data[: -self._limit]

    @property
    def data(self) -> bytes:
        return bytes(self._data if self._first else self._data[-self._limit :])
