"""How much of one reply a tape keeps.

A reply has no end that anybody could rely on: a download, a stream that an upstream never ends. The agent gets all of
it; what is noted is bounded, so that no upstream fills the memory, and every line of a tape can be read back.
"""

from __future__ import annotations

__all__ = ["CUT", "ROOM_BYTES", "Room"]

ROOM_BYTES = 64 * 2**20
"""Of a reply so much is kept, each chunk counted with what it takes to remember it."""

CUT = f"only the beginning of the reply is on the tape: it was longer than {ROOM_BYTES >> 20} MB"
"""What the exchange's note then says."""

_CHUNK_BYTES = 128


class Room:
    """The room for one body."""

    __slots__ = ("_left", "cut")

    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._left = room_bytes
        self.cut = False
        """Whether something was left out."""

    def take(self, chunk: bytes) -> bytes:
        """As much of this chunk as is kept; nothing once something was left out."""
        if self.cut:
            return b""
        left = self._left
        self._left = left - len(chunk) - _CHUNK_BYTES
        if self._left >= 0:
            return chunk
        self.cut = True
        return chunk[: max(left - _CHUNK_BYTES, 0)]
