"""A conversation that goes on: of a body that repeats an earlier one, only what is new is read.

A parser is in the same state after `{"a": [1, 2` as after `{"a": [2`. So a body that begins like an earlier one, up to
the last item of its longest list, and goes on with a comma or the list's end, says what it would say without those
items, and those items before the ones that it then has.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from flakestorm.core.call import Repeats, track
from flakestorm.wire.shape import Sketch, outlined

__all__ = ["LONG", "Growing", "Sketches"]

LONG = 4096
"""Bytes of a body that is worth going on from."""

_PLACES = 16  # a body is kept of each
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])


class Growing:
    """A body with a long list in it, to which a later one may add.

    Args:
        name: of the member that is the list.
        body: the body; it is kept as it is, for copying it takes as long as comparing it.
        begin, end: where in it the first item begins and the last one ends.
    """

    __slots__ = ("_quoted", "begin", "body", "end", "name", "tail")

    def __init__(self, name: str, body: bytes, begin: int, end: int) -> None:
        self.name, self.body, self.begin, self.end = name, body, begin, end
        self.tail = body[end:]
        self._quoted = b'"%b"' % name.encode("utf-8", "surrogatepass")

    @classmethod
    def of(cls, body: bytes, members: Mapping[str, msgspec.Raw], lists: Mapping[str, msgspec.Raw]) -> Growing | None:
        """The longest list of a body; None where it has no long one.

        Args:
            members: the body's.
            lists: those of them that are lists.
        """
        size, name = max(((len(memoryview(raw)), name) for name, raw in lists.items()), default=(0, ""))
        if size < LONG // 2:
            return None
        raw = bytes(lists[name])
        begin = body.find(raw) + 1
        if not _stands(name, body, begin, size - 2):
            return None
        return cls(name, body, begin, begin + len(raw[1:-1].rstrip()))

    def added_in(self, body: bytes, repeats: Repeats | None = None) -> bytes | None:
        """The list of what is added in a body that is this one but for that, as most are; None if it is not.

        Args:
            repeats: what the body is known to have in common with an earlier one.
        """
        end, tail = self.end, self.tail
        upto = len(body) - len(tail)
        if upto < end or not body.endswith(tail):
            return None
        known = repeats is not None and repeats[0] is body and repeats[1] is self.body and repeats[2] >= end
        if not known and not body.startswith(memoryview(self.body)[:end]):
            return None
        if body[end : end + 1] != b",":
            return None if body[end:upto].strip() else b"[]"
        added = b"[[%b]]" % body[end + 1 : upto]  # as deep as in the body
        try:
            return added[1:-1] if len(_items.decode(added)) == 1 and added[2:-2].strip() else None
        except (ValueError, RecursionError):
            return None

    def rest_of(self, body: bytes) -> dict[str, msgspec.Raw] | None:
        """The members of a body that goes on from this one, of the list only what is added; None if it does not."""
        if not body.startswith(memoryview(self.body)[: self.end]):
            return None
        rest = body[self.end :].lstrip()
        if rest[:1] == b",":
            rest = rest[1:].lstrip()
            if rest[:1] == b"]":
                return None
        elif rest[:1] != b"]":
            return None
        short = self.body[: self.begin] + rest
        try:
            members = _members.decode(short)
        except (ValueError, RecursionError):
            return None
        raw = bytes(members.get(self.name, b""))
        if raw[:1] != b"[" or not short.startswith(raw, self.begin - 1):
            return None
        # The list that begins there is this one: so no later member of its name, however spelled, may count instead.
        tail = short[self.begin - 1 + len(raw) :]
        alone = b"\\" not in tail and self._quoted not in tail
        return members if alone or _stands(self.name, short, self.begin, len(raw) - 2) else None

    def to(self, body: bytes, added: bytes) -> Growing:
        """The later body, for one later still.

        Args:
            added: the list of what is added, as `added_in` or `rest_of` found it.
        """
        items = added[1:-1].strip()
        end = body.index(items, self.end) + len(items) if items else self.end
        return Growing(self.name, body, self.begin, end)


class Sketches:
    """Sketches of long bodies: enough of them to tell which members there are, without reading again what was read.

    Of every address and lane (see `track`) the last body is kept; one that goes on from it, and one that goes on from
    that, cost what they add. Not to be used by two threads at once.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[bytes, Growing | None, Sketch | None]] = {}

    def of(self, lane: str, url: str, body: bytes) -> tuple[bytes, Repeats | None]:
        """The body, or a `Sketch` of it; and, if that is known, what it repeats of another, as in `Call.repeats`."""
        if len(body) < LONG:
            return body, None
        place = lane, url
        shared = track(lane), url
        begins, growing, sketch = self._last.get(place) or self._last.get(shared) or (None, None, None)
        if place not in self._last and len(self._last) >= _PLACES:
            self._last.clear()
        if growing is not None and sketch is not None and (added := growing.added_in(body)) is not None:
            self._last[place] = self._last[shared] = body, growing.to(body, added), sketch
            return sketch, (body, growing.body, growing.end)
        if growing is not None and (members := growing.rest_of(body)) is not None:
            sketch = _sketch(growing.name, members)
            self._last[place] = self._last[shared] = body, growing.to(body, bytes(members[growing.name])), sketch
            return body if sketch is None else sketch, (body, growing.body, growing.end)
        if begins is None:
            self._last[place] = self._last[shared] = body, None, None  # nothing says yet that it will go on
        elif body.startswith(memoryview(begins)[: LONG // 2]):
            self._last[place] = self._last[shared] = body, _growing(body), None
        else:
            self._last[place] = self._last[shared] = body, None, None
        return body, None


def _sketch(name: str, members: Mapping[str, msgspec.Raw]) -> Sketch | None:
    try:
        return Sketch.of(outlined(members) | {name: [...]})
    except ValueError:  # a number that the other reader does not take
        return None


def _growing(body: bytes) -> Growing | None:
    try:
        members = _members.decode(body)
    except (ValueError, RecursionError):
        return None
    return Growing.of(body, members, {name: raw for name, raw in members.items() if bytes(memoryview(raw)[:1]) == b"["})


def _stands(name: str, body: bytes, begin: int, size: int) -> bool:
    """Whether the items of this list are these bytes, and no later member of the same name counts in its place: then,
    with another item for them, that one is the list's."""
    rest, item = body[begin + size :], b"1"
    while item in rest:
        item += b"1"
    try:
        return bytes(_members.decode(body[:begin] + item + rest).get(name, b"")) == b"[%b]" % item
    except (ValueError, RecursionError):
        return False
