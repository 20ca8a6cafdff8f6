"""A conversation that goes on, read and hashed on: of a body that repeats an earlier one, only what is new is read.

A parser is in the same state after `{"a": [1, 2` as after `{"a": [2`. So a body that begins like an earlier one, up to
the last item of its longest list, and goes on with a comma or the list's end, says what it would say without those
items, and those items before the ones that it then has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from flakestorm.tape.delta import common_prefix, common_suffix

__all__ = ["LONG", "Growing", "Hashes"]

LONG = 4096
"""Bytes of a body that is worth going on from."""

_PLACES = 16
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Growing:
    """A body with a long list in it, to which a later one may add.

    Args:
        name: of the member that is the list.
        head: the body up to the last item.
        begin: where in it the first item begins.
    """

    __slots__ = ("begin", "head", "name")

    def __init__(self, name: str, head: bytes, begin: int) -> None:
        self.name, self.head, self.begin = name, head, begin

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
        end = begin + len(raw[1:-1].rstrip())
        if not _stands(name, body, begin, size - 2):
            return None
        return cls(name, body[:end], begin)

    def rest_of(self, body: bytes) -> dict[str, msgspec.Raw] | None:
        """The members of a body that goes on from this one, of the list only what is added; None if it does not."""
        if not body.startswith(self.head):
            return None
        rest = body[len(self.head) :].lstrip()
        if rest[:1] == b",":
            rest = rest[1:].lstrip()
            if rest[:1] == b"]":
                return None
        elif rest[:1] != b"]":
            return None
        short = self.head[: self.begin] + rest
        try:
            members = _members.decode(short)
        except (ValueError, RecursionError):
            return None
        raw = bytes(members.get(self.name, b""))
        if raw[:1] != b"[" or not short.startswith(raw, self.begin - 1):
            return None
        return members if _stands(self.name, short, self.begin, len(raw) - 2) else None

    def to(self, body: bytes, added: bytes) -> Growing:
        """The later body, for one later still.

        Args:
            added: the list of what is added, as `rest_of` found it.
        """
        items = added[1:-1].strip()
        if not items:
            return self
        return Growing(self.name, body[: body.index(items, len(self.head)) + len(items)], self.begin)


class Hashes:
    """SHA-256 of texts of which each may go on from the one before, of the same place."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[bytes, bytes, Any]] = {}

    def of(self, place: str, data: bytes) -> bytes:
        """The hash of a text."""
        if len(data) < LONG:
            return hashlib.sha256(data).digest()
        last, head, state = self._last.get(place, (b"", b"", None))
        if state is None or not data.startswith(head):
            head, state = b"", hashlib.sha256()
        else:
            state = state.copy()
        known = common_prefix(last, data, len(head))
        kept = max(len(head), len(data) - common_suffix(last, data, min(len(last), len(data)) - known))
        state.update(memoryview(data)[len(head) : kept])
        whole = state.copy()
        whole.update(memoryview(data)[kept:])
        if len(self._last) >= _PLACES and place not in self._last:
            self._last.clear()
        self._last[place] = data, data[:kept], state
        return bytes(whole.digest())


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
