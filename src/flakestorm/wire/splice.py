"""Changing members of a JSON document without touching a byte of the rest.

A request that is parsed and written again is another request: spacing, key order, escapes and number forms differ, so
prompt caches miss and signatures over earlier messages no longer fit. So the document is not written again; the places
of the values to change are found in its bytes, and only those bytes are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import cast

import orjson

from flakestorm.wire.shape import dump

__all__ = ["Edit", "Path", "edited", "elements", "span", "spliced", "with_members"]

Path = tuple[str | int, ...]
"""Where a value stands in a document: member names and array indexes, from the outside in."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)  # possessive: megabytes cost no memory
_SIGN = re.compile(rb'["{}\[\]]')
_SCALAR = re.compile(rb"[^\s,\]}]+")
_SPACE = re.compile(rb"[ \t\r\n]*")
_OPENING, _CLOSING = b"{[", b"}]"
_QUOTE, _ESCAPE = b'"\\'

_NOTHING: Mapping[Path, object] = MappingProxyType({})

Edit = tuple[int, int, bytes]
"""Bytes to put in place of others: where those start, where they end, and the new ones."""


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
    edits: list[Edit] = []
    _walk(document, _space(document, 0), root, edits)
    return spliced(document, edits)


def spliced(document: bytes, edits: Iterable[Edit]) -> bytes:
    """The document with these edits made; they do not overlap, and those at one place stand in the order given."""
    parts: list[bytes] = []
    done = 0
    for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
        parts += (document[done:start], text)
        done = end
    return b"".join((*parts, document[done:]))


def span(document: bytes, path: Path) -> tuple[int, int]:
    """Where a value stands: its first byte, and the one behind its last. Of members of one name the last counts.

    Args:
        document: a JSON document that a parser has accepted.
        path: to the value.

    Raises:
        LookupError: the path leads nowhere.
    """
    at = _space(document, 0)
    for step in path:
        inside = [start for name, start, _ in _parts(document, at) if name == step]
        if not inside:
            raise LookupError(f"there is no {step!r} in the value at byte {at}")
        at = inside[-1]
    return at, _end(document, at)


def elements(document: bytes, path: Path) -> list[tuple[int, int]]:
    """Where the elements of an array stand, in order.

    Raises:
        LookupError: the path leads nowhere, or to something that is not an array.
    """
    at, _ = span(document, path)
    if document[at : at + 1] != b"[":
        raise LookupError(f"there is no array at byte {at}")
    return [(start, end) for _, start, end in _parts(document, at)]


def _parts(document: bytes, at: int) -> Iterator[tuple[str | int, int, int]]:
    """The members of the object, or elements of the array, that starts here: name or index, start and end."""
    opening, index = document[at : at + 1], 0
    if opening not in (b"{", b"["):
        return
    here = _space(document, at + 1)
    while document[here] not in _CLOSING:
        name: str | int = index
        if opening == b"{":
            end = _end(document, here)
            name, here = orjson.loads(document[here:end]), _space(document, _space(document, end) + 1)  # past the colon
        end = _end(document, here)
        yield name, here, end
        here, index = _next(document, end), index + 1


def edited(document: bytes, *, values: Mapping[Path, object] = _NOTHING, without: Collection[Path] = ()) -> bytes:
    """The document with some of its values replaced and some of its members gone; every other byte stays as it is.

    Args:
        document: a JSON document that a parser has accepted.
        values: new values, by the paths of the old ones; `()` is the whole document. Of members that are there twice,
            both are replaced.
        without: paths of members of objects that go, each with the comma that parted it from its neighbour.

    A path that leads nowhere changes nothing.
    """
    paths = {*values, *without}
    on_the_way = {path[:length] for path in paths for length in range(len(path))}
    start = _space(document, 0)
    text, end = _rewritten(document, start, (), values, without, on_the_way)
    return document[:start] + text + document[end:]


def _rewritten(
    document: bytes,
    at: int,
    path: Path,
    values: Mapping[Path, object],
    without: Collection[Path],
    on_the_way: Collection[Path],
) -> tuple[bytes, int]:
    """The value that starts here as it is to be, and where it ended."""
    if path in values:
        return dump(values[path]), _end(document, at)
    if path not in on_the_way or document[at] not in _OPENING:
        end = _end(document, at)
        return document[at:end], end
    members = document[at] == _OPENING[0]
    kept: list[bytes] = []
    first = done = here = _space(document, at + 1)  # done: how far the document has been taken over
    index = 0
    while document[here] not in _CLOSING:
        start, step = here, cast("str | int", index)
        if members:
            end = _end(document, here)
            step, start = orjson.loads(document[here:end]), _space(document, _space(document, end) + 1)
        text, end = _rewritten(document, start, (*path, step), values, without, on_the_way)
        if not members or (*path, step) not in without:
            kept += (document[done:here] if kept else document[at:first], document[here:start], text)
        done, here, index = end, _next(document, end), index + 1
    return b"".join(kept or [document[at:first]]) + document[done : here + 1], here + 1


def _walk(document: bytes, at: int, wish: _Wish, edits: list[Edit]) -> int:
    """Collect what is to be changed in the value that starts here; where the value ends."""
    opening = document[at : at + 1]
    if opening == b"{":
        return _object(document, at, wish, edits)
    if opening == b"[" and not wish.members:
        return _array(document, at, wish, edits)
    raise LookupError(f"there is nothing to set a member of at byte {at}")


def _object(document: bytes, at: int, wish: _Wish, edits: list[Edit]) -> int:
    found: dict[str | int, tuple[int, int]] = {}
    below: dict[str | int, list[Edit] | LookupError] = {}
    inside, here = at + 1, _space(document, at + 1)  # where the next member would be added, and where to read on
    while document[here] not in _CLOSING:
        end = _end(document, here)
        name = orjson.loads(document[here:end])
        start = _space(document, _space(document, end) + 1)  # over the colon
        if name in wish.below and name not in wish.members:
            changes: list[Edit] = []
            below[name] = changes
            try:
                inside = _walk(document, start, wish.below[name], changes)
            except LookupError as error:  # which does not matter if this member comes again
                below[name], inside = error, _end(document, start)
        else:
            inside = _end(document, start)
        if name in wish.members:
            found[name] = start, inside
        here = _next(document, inside)
    added = [b""] if inside > at + 1 else []
    for name, value in wish.members.items():
        if name in found:
            edits.append((*found[name], dump(value)))
        else:
            added.append(dump(name) + b":" + dump(value))
    if any(added):
        edits.append((inside, inside, b",".join(added)))
    for step in wish.below:
        changes_there = below.get(step, LookupError(f"there is no member {step!r} in the object at byte {at}"))
        if isinstance(changes_there, LookupError):
            raise changes_there
        edits += changes_there
    return here + 1


def _array(document: bytes, at: int, wish: _Wish, edits: list[Edit]) -> int:
    here, index = _space(document, at + 1), 0
    while document[here] not in _CLOSING:
        below = wish.below.get(index)
        end = _end(document, here) if below is None else _walk(document, here, below, edits)
        here, index = _next(document, end), index + 1
    for step in wish.below:
        if not isinstance(step, int) or not 0 <= step < index:
            raise LookupError(f"there is no element {step!r} in the array at byte {at}")
    return here + 1


def _next(document: bytes, at: int) -> int:
    """Where the next value starts after one that ended here, or where the array or object closes."""
    at = _space(document, at)
    return _space(document, at + 1) if document[at : at + 1] == b"," else at


def _end(document: bytes, at: int) -> int:
    """Where the value that starts here ends."""
    first = document[at]
    if first == _QUOTE:
        end = document.find(b'"', at + 1)
        if document[end - 1] != _ESCAPE:  # far faster than the pattern, over megabytes of an image
            return end + 1
        return _past(_STRING, document, at)
    if first not in _OPENING:
        return _past(_SCALAR, document, at)
    depth = 0
    while found := _SIGN.search(document, at):
        sign, at = document[found.start()], found.end()
        if sign == _QUOTE:
            at = _end(document, at - 1)
        elif sign in _OPENING:
            depth += 1
        else:
            depth -= 1
            if not depth:
                return at
    return len(document)


def _past(pattern: re.Pattern[bytes], document: bytes, at: int) -> int:
    found = pattern.match(document, at)
    return found.end() if found else at + 1


def _space(document: bytes, at: int) -> int:
    found = _SPACE.match(document, at)
    return found.end() if found else at
