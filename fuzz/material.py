"""Values out of bytes, the same for the same bytes: what a fuzzer changes byte by byte becomes another value.

A fuzzer that must first learn to write JSON spends its time on that. So half of what it gives is read as a recipe: each
byte decides what comes next, a key of the protocol's own, a number at the edge, a text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

__all__ = ["Bytes", "jsonlike"]

_EDGES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**53, 2**63, 2**64, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308, 1e-320, "", " ",
    "\0", "\r\n", "\x1b[2J", "é", "\U0001f600", "{}", "[]", '"', "\\", "null", "${HOME}", "%s", "{prompt}", "{{7*7}}",
    [], {}, [[]], [None], {"": ""},
)  # fmt: skip
_DEPTH = 12


class Bytes:
    """Bytes that are used up from the front; where there are no more, everything is 0 or empty."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def byte(self) -> int:
        at, self._at = self._at, self._at + 1
        return self._data[at] if at < len(self._data) else 0

    def below(self, limit: int) -> int:
        return self.byte() % limit

    def take(self, count: int) -> bytes:
        at, self._at = self._at, self._at + count
        return self._data[at : at + count]

    def rest(self) -> bytes:
        return self.take(max(0, len(self._data) - self._at))

    @property
    def left(self) -> int:
        return max(0, len(self._data) - self._at)

    def text(self) -> str:
        return self.take(self.below(24)).decode("utf-8", "replace")

    def value(self, words: Sequence[str], depth: int = 0) -> Any:
        """A JSON-like value.

        Args:
            words: keys and texts that mean something where the value goes.
        """
        kind = self.below(8) if self.left and depth < _DEPTH else 7
        if kind <= 2:
            return {self.word(words): self.value(words, depth + 1) for _ in range(self.below(6))}
        if kind == 3:
            return [self.value(words, depth + 1) for _ in range(self.below(5))]
        if kind == 4:
            return self.word(words)
        if kind == 5:
            return self.text()
        if kind == 6:
            return self.byte() - 100
        return _EDGES[self.below(len(_EDGES))]

    def word(self, words: Sequence[str]) -> str:
        """One of the words; seldom any text."""
        at = self.byte()
        return words[at % len(words)] if at < 250 else self.text()


def jsonlike(source: Bytes, words: Sequence[str]) -> bytes:
    """A JSON document, or the bytes as they are: the first of them decides."""
    if source.below(2):
        return source.rest()
    return json.dumps(source.value(words), ensure_ascii=bool(source.below(2))).encode("utf-8", "replace")
