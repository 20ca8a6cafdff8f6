"""A text that repeats an earlier one, made when somebody asks for it.

The requests of a growing conversation take no more memory than what is new in each.
"""

from __future__ import annotations

from collections import deque

from flakestorm.tape.delta import Part

__all__ = ["Cache", "Piece", "Text"]

_CACHED_BYTES = 4 << 20  # of texts that stay made


class Text:
    """A text that is made from an earlier one when somebody asks for it.

    Args:
        base, parts: how; a base of None means that `data` is the text.
    """

    __slots__ = ("_cache", "_data", "_parts", "base", "depth", "length", "new", "quotes", "weight")

    def __init__(self, data: bytes | None, base: Text | None, parts: list[Piece], cache: Cache) -> None:
        self._data, self.base, self._parts, self._cache = data, base, parts, cache
        if base is None:
            self.length = self.new = self.weight = len(data or b"")
            self.depth, self.quotes = 0, False
        else:
            new = copied = said = 0
            for part in parts:
                if isinstance(part, bytes):
                    new += len(part)
                elif len(part) == 2:
                    copied += part[1] - part[0]
                else:
                    said += part[1] - part[0]
            self.new, self.length, self.quotes = new, new + copied + said, said > 0 or base.quotes
            self.depth, self.weight = base.depth + 1, base.weight + new + said

    @classmethod
    def told(
        cls, base: Text | None, parts: list[Piece], cache: Cache, *, new: int, weight: int, depth: int, length: int
    ) -> Text:
        """A text that was just told by an earlier one, of which all this is known."""
        text = cls.__new__(cls)
        text._data, text.base, text._parts, text._cache = None, base, parts, cache
        text.new, text.weight, text.depth, text.length = new, weight, depth, length
        text.quotes = False  # only who reads a tape asks
        return text

    def data(self) -> bytes:
        """The bytes."""
        at: Text = self
        made = self._data  # read once: another thread may forget it meanwhile
        if made is not None:
            return made
        chain: list[Text] = []
        while made is None and at.base is not None:
            chain.append(at)
            at = at.base
            made = at._data
        made = made or b""
        for each in reversed(chain):
            made = _joined(made, each._parts)
        self._data = made
        self._cache.keep(self)
        return made

    @property
    def made(self) -> bytes | None:
        """The bytes, if they are here."""
        return self._data

    @property
    def repeats(self) -> int:
        """How many bytes of what it is made from it begins with."""
        first = self._parts[0] if self._parts else b""
        return first[1] if not isinstance(first, bytes) and len(first) == 2 and not first[0] else 0

    def forget(self) -> None:
        """Make it again when it is asked for the next time."""
        if self.base is not None:
            self._data = None


Piece = Part | tuple[int, int, Text | bytes]
"""Part of a text: of the one it is made from, or (start, end, text) of another one, which quotes nothing itself."""


class Cache:
    """The texts that were made last stay made: who reads a tape from its start to its end makes each from the last."""

    def __init__(self) -> None:
        self._kept: deque[Text] = deque()
        self._bytes = 0

    def keep(self, text: Text) -> None:
        self._kept.append(text)
        self._bytes += text.length
        while self._bytes > _CACHED_BYTES and len(self._kept) > 2:
            gone = self._kept.popleft()
            self._bytes -= gone.length
            gone.forget()


def _joined(base: bytes, parts: list[Piece]) -> bytes:
    pieces: list[bytes | memoryview] = []
    view = memoryview(base)  # most of it goes on into the text, and is copied once
    for part in parts:
        if isinstance(part, bytes):
            pieces.append(part)
        elif len(part) == 2:
            pieces.append(view[part[0] : part[1]])
        else:
            of = part[2]
            pieces.append((of if isinstance(of, bytes) else of.data())[part[0] : part[1]])
    return b"".join(pieces)
