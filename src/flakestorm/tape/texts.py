"""Where a tape's bodies are kept: each new text once, and what repeats it as references to it.

Texts of `SMALL` bytes and more are numbered as they appear in the file, from 0. One that has much in common with an
earlier one, of those that are still in the window, is stored as `{"of": number, "parts": [[start, end], "new", ...]}`:
bytes of the earlier text, and new ones. `Texts` writes them and `Shelf` reads them back; both move the same `Window`,
so no file makes a reader hold more than that.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections import OrderedDict, deque
from typing import Any

from flakestorm.tape.delta import Part, apply, common_prefix, common_suffix, parts_of

__all__ = ["SMALL", "Shelf", "Text", "Texts", "from_json", "to_json"]

SMALL = 512
"""Shorter texts are written out wherever they occur."""

_WINDOW, _WINDOW_BYTES = 1024, 32 << 20
_DEPTH = 4096
_CACHED_BYTES = 32 << 20
_CANDIDATES = 16


class Text:
    """A text that is made from an earlier one when somebody asks for it.

    Args:
        base, parts: how; a base of None means that `data` is the text.
    """

    __slots__ = ("_cache", "_data", "_parts", "base", "depth", "length", "new", "weight")

    def __init__(self, data: bytes | None, base: Text | None, parts: list[Part], cache: _Cache) -> None:
        self._data, self.base, self._parts, self._cache = data, base, parts, cache
        if base is None:
            self.length = self.new = self.weight = len(data or b"")
            self.depth = 0
        else:
            self.new = sum(len(part) for part in parts if isinstance(part, bytes))
            self.length = self.new + sum(part[1] - part[0] for part in parts if isinstance(part, tuple))
            self.depth, self.weight = base.depth + 1, base.weight + self.new

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
            made = apply(made, each._parts)
        self._data = made
        self._cache.keep(self)
        return made

    def forget(self) -> None:
        """Make it again when it is asked for the next time."""
        if self.base is not None:
            self._data = None


class _Cache:
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


class _Window:
    """The numbered texts that may be referred to."""

    def __init__(self) -> None:
        self.count = 0
        self._in: OrderedDict[int, Text] = OrderedDict()
        self._bytes = 0

    def add(self, text: Text) -> int:
        number = self.count
        self.count += 1
        self._in[number] = text
        self._bytes += text.new
        while len(self._in) > _WINDOW or (self._bytes > _WINDOW_BYTES and len(self._in) > 1):
            _, gone = self._in.popitem(last=False)
            self._bytes -= gone.new
        return number

    def get(self, number: int) -> Text | None:
        return self._in.get(number)


class _Last:
    """A text that the next one of its place may continue.

    `head` is what the next one will probably begin with, and `state` its hash so far.
    """

    __slots__ = ("data", "head", "number", "state")

    def __init__(self, data: bytes, number: int, head: bytes, state: Any) -> None:
        self.data, self.number, self.head, self.state = data, number, head, state


class Texts:
    """The writing side."""

    def __init__(self) -> None:
        self._window, self._cache = _Window(), _Cache()
        self._places: dict[str, list[_Last]] = {}
        self._held = 0

    def put(self, place: str, data: bytes, *, grows: bool = False) -> tuple[Any, Text | None, bytes]:
        """A text as the JSON value that a line holds, as one to be kept in memory, and its SHA-256.

        Args:
            place: texts of the same place are likely to be alike.
            grows: it probably continues one of the same place, so its hash is made from that one's.
        """
        if len(data) < SMALL:
            return to_json(data), None, hashlib.sha256(data).digest() if grows else b""
        candidates = self._places.setdefault(place, [])
        last = next((last for last in candidates if last.head and data.startswith(last.head)), None)
        follows = last is not None
        if last is None and candidates:
            last = candidates[0]
        value, text, suffix = self._stored(last, data, follows)
        number = self._window.add(text)
        head, state, digest = b"", None, b""
        if grows:
            kept = len(data) - suffix
            state = last.state.copy() if follows and last is not None else hashlib.sha256()
            state.update(memoryview(data)[len(last.head) if follows and last is not None else 0 : kept])
            whole = state.copy()
            whole.update(memoryview(data)[kept:])
            head, digest = data[:kept], whole.digest()
        self._follow(place, candidates, last if follows else None, _Last(data, number, head, state))
        return value, text if text.base is not None else None, digest

    def _stored(self, last: _Last | None, data: bytes, follows: bool) -> tuple[Any, Text, int]:
        base = None if last is None else self._window.get(last.number)
        if last is None or base is None:
            return to_json(data), Text(data, None, [], self._cache), 0
        if data == last.data and base.depth < _DEPTH:
            whole: list[Part] = [(0, len(data))]
            return {"of": last.number, "parts": [[0, len(data)]]}, Text(None, base, whole, self._cache), 0
        prefix = common_prefix(last.data, data, len(last.head) if follows else 0)
        suffix = common_suffix(last.data, data, min(len(last.data), len(data)) - prefix)
        if base.depth >= _DEPTH:
            return to_json(data), Text(data, None, [], self._cache), suffix
        parts = parts_of(last.data, data, prefix, suffix)
        text = Text(None, base, parts, self._cache)
        if text.new + 16 * len(parts) > len(data) * 3 // 4 or text.weight > 4 * len(data) + 65536:
            return to_json(data), Text(data, None, [], self._cache), suffix
        return {"of": last.number, "parts": [_part(part) for part in parts]}, text, suffix

    def _follow(self, place: str, candidates: list[_Last], gone: _Last | None, last: _Last) -> None:
        if gone is not None:
            candidates.remove(gone)
            self._held -= len(gone.data)
        candidates.insert(0, last)
        self._held += len(last.data)
        if len(candidates) > _CANDIDATES:
            self._held -= len(candidates.pop().data)
        if self._held > _CACHED_BYTES:  # everything starts anew: rare, and cheap enough
            self._places = {place: [last]}
            self._held = len(last.data)


class Shelf:
    """The reading side: gives the texts of one file, asked in the order they stand in it."""

    def __init__(self) -> None:
        self._window, self._cache = _Window(), _Cache()

    def get(self, value: Any) -> Text | bytes:
        """The text that this JSON value stands for.

        Raises:
            ValueError: it stands for none.
        """
        if isinstance(value, dict) and "of" in value:
            text = self._made(value)
        else:
            data = from_json(value)
            if len(data) < SMALL:
                return data
            text = Text(data, None, [], self._cache)
        if text.length >= SMALL:
            self._window.add(text)
        return text

    def _made(self, value: dict[str, Any]) -> Text:
        number, listed = value["of"], value.get("parts")
        base = self._window.get(number) if isinstance(number, int) else None
        if base is None or not isinstance(listed, list) or base.depth >= _DEPTH:
            raise ValueError(f"a body refers to text {number!r}, which is not there")
        parts: list[Part] = []
        reached = 0
        for part in listed:
            if isinstance(part, list):
                if len(part) != 2 or not all(type(at) is int for at in part):
                    raise ValueError("a part of a body must be text or [start, end]")
                if not reached <= part[0] <= part[1] <= base.length:
                    raise ValueError(f"a body refers to bytes {part} of text {number}, which has {base.length}")
                parts.append((part[0], part[1]))
                reached = part[1]
            else:
                parts.append(from_json(part))
        return Text(None, base, parts, self._cache)


def to_json(data: bytes) -> str | dict[str, str]:
    """Bytes as a JSON string where they are UTF-8, else as `{"base64": ...}`."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def from_json(value: Any) -> bytes:
    """The inverse of `to_json`.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and isinstance(value.get("base64"), str):
        return b64decode(value["base64"], validate=True)
    raise ValueError("a body must be a string, {'base64': ...} or {'of': ..., 'parts': [...]}")


def _part(part: Part) -> Any:
    return to_json(part) if isinstance(part, bytes) else part
