"""Changing members of a JSON document without touching a byte of the rest.

A request that is parsed and written again is another request: spacing, key order, escapes and number forms differ, so
prompt caches miss and signatures over earlier messages no longer fit. So the document is not written again; the places
of the values to change are found in its bytes, and only those bytes are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import orjson

from flakestorm.wire.shape import dump

__all__ = ["Path", "with_members"]

Path = tuple[str | int, ...]
"""Where a value stands in a document: member names and array indexes, from the outside in."""

_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'  # possessive: a string of megabytes costs no memory to read over
_STRING = re.compile(_TEXT, re.DOTALL)
_NESTING = re.compile(_TEXT + rb"|[{}\[\]]", re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\]}]+")
_SPACE = re.compile(rb"[ \t\r\n]*")
_OPENING, _CLOSING = b"{[", b"}]"


@dataclass(slots=True)
class _Wish:
    """What is to be changed in and below one value."""

    members: Mapping[str, object] = field(default_factory=dict)
    below: dict[str | int, _Wish] = field(default_factory=dict)


def with_members(document: bytes, changes: Mapping[Path, Mapping[str, object]]) -> bytes:
    """The document with members of some of its objects set; every other byte stays as it is.

    Args:
        document: a JSON document that a parser has accepted.
        changes: for each object, by its path, the members to set and their new values. A member that is not there is
            added behind the others. Of members that are there twice the last one counts, as it does for parsers.

    Raises:
        LookupError: a path leads nowhere, or to something that is not an object.
    """
    root = _Wish()
    for path, members in changes.items():
        wish = root
        for step in path:
            wish = wish.below.setdefault(step, _Wish())
        wish.members = members
    parts: list[bytes] = []
    done = 0
    for start, end, text in sorted(_edits(document, _space(document, 0), root)):
        parts += (document[done:start], text)
        done = end
    return b"".join((*parts, document[done:]))


def _edits(document: bytes, at: int, wish: _Wish) -> Iterator[tuple[int, int, bytes]]:
    """(start, end, new bytes) of everything that is to be changed in the value that starts here."""
    opening = document[at : at + 1]
    if opening == b"{":
        yield from _object(document, at, wish)
    elif opening == b"[" and not wish.members:
        found = {index: start for index, (start, _) in enumerate(_values(document, at)) if index in wish.below}
        for index, below in wish.below.items():
            if index not in found:
                raise LookupError(f"there is no element {index!r} in the array at byte {at}")
            yield from _edits(document, found[index], below)
    else:
        raise LookupError(f"there is nothing to set a member of at byte {at}")


def _object(document: bytes, at: int, wish: _Wish) -> Iterator[tuple[int, int, bytes]]:
    found: dict[str | int, tuple[int, int]] = {}
    inside = at + 1  # where the next member would be added
    for name, start, end in _members(document, at):
        inside = end
        if name in wish.members or name in wish.below:
            found[name] = start, end
    added = [b""] if inside > at + 1 else []
    for name, value in wish.members.items():
        if name in found:
            yield (*found[name], dump(value))
        else:
            added.append(dump(name) + b":" + dump(value))
    if any(added):
        yield inside, inside, b",".join(added)
    for step, below in wish.below.items():
        if step not in found:
            raise LookupError(f"there is no member {step!r} in the object at byte {at}")
        if step not in wish.members:
            yield from _edits(document, found[step][0], below)


def _members(document: bytes, at: int) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of the value of each member of the object that starts here."""
    at = _space(document, at + 1)
    while document[at] not in _CLOSING:
        end = _end(document, at)
        name = orjson.loads(document[at:end])
        start = _space(document, _space(document, end) + 1)  # over the colon
        end = _end(document, start)
        yield name, start, end
        at = _next(document, end)


def _values(document: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Start and end of each element of the array that starts here."""
    at = _space(document, at + 1)
    while document[at] not in _CLOSING:
        end = _end(document, at)
        yield at, end
        at = _next(document, end)


def _next(document: bytes, at: int) -> int:
    """Where the next value starts after one that ended here, or where the array or object closes."""
    at = _space(document, at)
    return _space(document, at + 1) if document[at : at + 1] == b"," else at


def _end(document: bytes, at: int) -> int:
    """Where the value that starts here ends."""
    first = document[at]
    if first not in _OPENING:
        found = (_STRING if first == ord('"') else _SCALAR).match(document, at)
        return found.end() if found else at + 1
    depth = 0
    for found in _NESTING.finditer(document, at):
        sign = document[found.start()]
        if sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
            if not depth:
                return found.end()
    return len(document)


def _space(document: bytes, at: int) -> int:
    found = _SPACE.match(document, at)
    return found.end() if found else at
