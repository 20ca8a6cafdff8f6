"""Where a tape's bodies are kept: each new text once, and what repeats it as references to it.

Texts of `SMALL` bytes and more are numbered as they appear in the file, from 0. One that has much in common with an
earlier one, of those that are still in the window, is stored as `{"of": number, "parts": [[start, end], "new", ...]}`:
bytes of the earlier text, and new ones. A request also quotes what was replied to the ones before, as
`[start, end, number]`: bytes of the text of that number, which itself quotes nothing. `{"once": text}` is a text that
gets no number. `Texts` writes them and `Shelf` reads them back; both move the same `Window`, so no file makes a reader
hold more than that.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections import OrderedDict, deque
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from flakestorm.tape.copied import Cache, Piece, Text
from flakestorm.tape.delta import Cut, Part, common_prefix, common_suffix, parts_of, quoted

__all__ = ["SMALL", "Ends", "Shelf", "Text", "Texts", "from_json", "to_json"]

SMALL = 384
"""Shorter texts are written out wherever they occur."""

_WINDOW, _WINDOW_BYTES = 1024, 32 << 20
_DEPTH = 4096
_HELD_BYTES = 32 << 20  # of texts that later ones may continue
_CANDIDATES = 16
_QUOTED, _QUOTED_BYTES = 8, 64 << 10  # of how many replies, and how much of them, a request may quote
_CUT_BYTES = 16 << 10  # a reply of at most so many is compared with the one before piece by piece
_LONGEST = 256 << 20


class _Mark(Struct, gc=False):
    """What the writing side has to know of a numbered text, so that later ones may refer to it. A run makes two of them
    with each exchange and keeps them long, so the collector of garbage is spared them: they are in no cycle.

    Args:
        new, weight, depth: as a `Text` of it has them when it is read back.
        text: as one to be kept in memory; None for a reply, which is kept as it came.
    """

    new: int
    weight: int
    depth: int
    text: Text | None


_Kept = TypeVar("_Kept", Text, _Mark)


class _Window(Generic[_Kept]):
    """The numbered texts that may be referred to."""

    def __init__(self) -> None:
        self.count = 0
        self._in: OrderedDict[int, _Kept] = OrderedDict()
        self._bytes = 0

    def add(self, text: _Kept) -> int:
        number = self.count
        self.count += 1
        self._in[number] = text
        self._bytes += text.new
        while len(self._in) > _WINDOW or (self._bytes > _WINDOW_BYTES and len(self._in) > 1):
            _, gone = self._in.popitem(last=False)
            self._bytes -= gone.new
        return number

    def get(self, number: int) -> _Kept | None:
        return self._in.get(number)


class Ends(NamedTuple):
    """What a text was found to have in common with an earlier one.

    Args:
        before: the earlier one.
        prefix, suffix: how many bytes both begin and end with; together no longer than either.
    """

    before: bytes
    prefix: int
    suffix: int


class _Last:
    """A text that the next one of its place may continue.

    With its first `kept` bytes the next one will probably begin; `state` is their hash. A reply has been `cut`.
    """

    __slots__ = ("cut", "data", "kept", "number", "state")

    def __init__(self, data: bytes, number: int, kept: int, state: Any, cut: Cut | None) -> None:
        self.data, self.number, self.kept, self.state, self.cut = data, number, kept, state, cut

    def goes_on_in(self, data: bytes, ends: Ends | None) -> bool:
        """Whether the other text begins so."""
        kept = self.kept
        if ends is not None and ends.before is self.data and ends.prefix >= kept:
            return kept > 0
        return kept > 0 and data.startswith(memoryview(self.data)[:kept])


class Texts:
    """The writing side."""

    def __init__(self) -> None:
        self._window, self._cache = _Window[_Mark](), Cache()
        self._places: dict[str, list[_Last]] = {}
        self._held = 0
        self._said: deque[tuple[int, _Mark, bytes]] = deque()
        self._said_bytes = 0

    def put(
        self, place: str, data: bytes, *, grows: bool = False, reply: bool = False, ends: Ends | None = None
    ) -> tuple[Any, Text | None, bytes]:
        """A text as the JSON value that a line holds; of one that grows, also as one to be kept in memory, where that
        saves any, and its SHA-256.

        Args:
            place: texts of the same place are likely to be alike.
            grows: it probably continues one of the same place, so its hash is made from that one's.
            reply: later requests may quote it.
            ends: what was found out when it was compared with an earlier one, of whatever place.
        """
        if len(data) < SMALL:
            return to_json(data), None, hashlib.sha256(data).digest() if grows else b""
        candidates = self._places.setdefault(place, [])
        last, cut, suffix = None, None, 0
        if grows:
            last = next((last for last in candidates if last.goes_on_in(data, ends)), None)
        elif len(data) <= _CUT_BYTES:
            cut = Cut(data)
        follows = last is not None
        before = last if last is not None else candidates[0] if candidates else None
        base = None if before is None else self._window.get(before.number)
        value: Any = None
        mark = None
        if before is not None and base is not None:
            parts, suffix = _compared(before, data, follows, cut, ends)
            if base.depth < _DEPTH:
                value, mark = self._referring(before, base, data, parts, follows, grows)
        if mark is None:
            value = to_json(data)
            text = Text(data, None, [], self._cache) if grows else None
            mark = _Mark(len(data), len(data), 0, text)
        number = self._window.add(mark)
        if reply:
            self._quotable(number, mark, data)
        kept, state, digest = 0, None, b""
        if grows:
            kept, done, view = len(data) - suffix, 0, memoryview(data)
            if last is not None:
                done, state = last.kept, last.state.copy()
            else:
                state = hashlib.sha256()
            state.update(view[done:kept])
            whole = state.copy()
            whole.update(view[kept:])
            digest = whole.digest()
        self._follow(place, candidates, last if grows else before, _Last(data, number, kept, state, cut))
        return value, None if mark.depth == 0 else mark.text, digest

    def _referring(
        self, last: _Last, base: _Mark, data: bytes, parts: list[Part], follows: bool, grows: bool
    ) -> tuple[Any, _Mark | None]:
        """The JSON value of a text that is told by an earlier one; no mark where that saves too little."""
        told: list[Any] = []
        pieces: list[Piece] = []
        new = said = 0
        for part in parts:
            if isinstance(part, bytes):
                if follows and self._said:
                    quotes = self._quoting(part, _QUOTED_BYTES - said, told, pieces)
                    said += quotes
                    new += len(part) - quotes
                else:
                    new += len(part)
                    told.append(to_json(part))
                    pieces.append(part)
            else:
                told.append(part)
                pieces.append(part)
        weight = base.weight + new + said
        if new + 16 * len(told) > len(data) * 3 // 4 or weight > 4 * len(data) + 65536:
            return None, None
        depth, text = base.depth + 1, None
        if grows:
            length = len(data)
            text = Text.told(base.text, pieces, self._cache, new=new, weight=weight, depth=depth, length=length)
        return {"of": last.number, "parts": told}, _Mark(new, weight, depth, text)

    def _quoting(self, part: bytes, most: int, told: list[Any], pieces: list[Piece]) -> int:
        """Tell what is new, with what was replied before as bytes of that reply; gives how many bytes are, at most
        `most`."""
        said, done, quotes = self._said, 0, 0
        for start, end, which, begin in quoted(part, [data for _, _, data in said]):
            if quotes + end - start > most:
                break
            number, mark, data = said[which]
            if self._window.get(number) is not mark:
                continue
            if done < start:
                told.append(to_json(part[done:start]))
                pieces.append(part[done:start])
            told.append((begin, begin + end - start, number))
            pieces.append((begin, begin + end - start, data))
            quotes += end - start
            done = end
        if done < len(part):
            told.append(to_json(part[done:]))
            pieces.append(part[done:])
        return quotes

    def _quotable(self, number: int, mark: _Mark, data: bytes) -> None:
        if len(data) > _QUOTED_BYTES:
            return
        self._said.appendleft((number, mark, data))
        self._said_bytes += len(data)
        while len(self._said) > _QUOTED or self._said_bytes > _QUOTED_BYTES:
            self._said_bytes -= len(self._said.pop()[2])

    def _follow(self, place: str, candidates: list[_Last], gone: _Last | None, last: _Last) -> None:
        if gone is not None:
            candidates.remove(gone)
            self._held -= len(gone.data)
        candidates.insert(0, last)
        self._held += len(last.data)
        if len(candidates) > _CANDIDATES:
            self._held -= len(candidates.pop().data)
        if self._held > _HELD_BYTES:  # everything starts anew: rare, and cheap enough
            self._places = {place: [last]}
            self._held = len(last.data)


def _compared(last: _Last, data: bytes, follows: bool, cut: Cut | None, ends: Ends | None) -> tuple[list[Part], int]:
    """A text as parts of an earlier one, and how many bytes both end with, if that was found out."""
    if len(data) == len(last.data) and data == last.data:
        return [(0, len(data))], 0
    if cut is not None and last.cut is not None and (parts := last.cut.parts_of(cut)) is not None:
        return parts, 0
    if ends is None or ends.before is not last.data:
        prefix = common_prefix(last.data, data, last.kept if follows else 0)
        suffix = common_suffix(last.data, data, min(len(last.data), len(data)) - prefix)
    else:
        _, prefix, suffix = ends
    return parts_of(last.data, data, prefix, suffix), suffix


class Shelf:
    """The reading side: gives the texts of one file, asked in the order they stand in it."""

    def __init__(self) -> None:
        self._window, self._cache = _Window[Text](), Cache()

    def get(self, value: Any) -> Text | bytes:
        """The text that this JSON value stands for.

        Raises:
            ValueError: it stands for none.
        """
        if isinstance(value, dict) and len(value) == 1 and "once" in value:
            once = value["once"]
            return self._made(once) if isinstance(once, dict) and "of" in once else from_json(once)
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
        parts: list[Piece] = []
        reached = quoted = 0
        for part in listed:
            if not isinstance(part, list):
                parts.append(from_json(part))
                continue
            if len(part) not in (2, 3) or not all(type(at) is int for at in part):
                raise ValueError("a part of a body must be text, [start, end] or [start, end, number]")
            start, end = part[0], part[1]
            if len(part) == 2:
                if not reached <= start <= end <= base.length:
                    raise ValueError(f"a body refers to bytes {part} of text {number}, which has {base.length}")
                parts.append((start, end))
                reached = end
                continue
            other = self._window.get(part[2])
            if other is None or other.quotes or not 0 <= start <= end <= other.length:
                raise ValueError(f"a body quotes bytes {part}, which are not there to be quoted")
            parts.append((start, end, other))
            quoted += end - start
        text = Text(None, base, parts, self._cache)
        if quoted > _QUOTED_BYTES or text.length > _LONGEST:
            raise ValueError(f"a body of {text.length} bytes, {quoted} of them quoted, is more than a tape may hold")
        return text


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
