"""Patterns whose matches have a mark that few texts have often, such as `@`: looked for from there.

An automaton that reads a text for a match with counted parts (a host's name of at most 63 characters) meets many states
that it never met before. One that starts where a match must start knows nearly all of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator

from flakestorm.patterns.engine import Document, Matcher
from flakestorm.patterns.literals import places
from flakestorm.patterns.outline import read
from flakestorm.patterns.validators import endings

__all__ = ["Hosts", "Marked", "from_hosts", "from_mark"]

Marked = Callable[[Document], Iterable[tuple[int, int]]]
"""What finds a pattern in a text, in characters."""

Hosts = Callable[[Document, list[tuple[int, int]]], Iterable[tuple[int, int]] | None]
"""As `Marked`, told the places of addresses, in bytes, whose hosts do not count; None where nothing is found."""

_Lead = Callable[[bytes, int, int], int]
"""Of a text, how far back it may look, and the place of a mark: where the match begins that has it; -1 for nowhere."""

_MOST_MARKS = 24  # of more, reading the text as a whole is quicker
_APART = 32  # so many bytes for each end of a host's name; of more, too
_NOWHERE = (sys.maxsize, sys.maxsize)
_HOST = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-"
_LONGEST_HOST = 256


def from_mark(matcher: Matcher, index: int, pattern: str, mark: str) -> Marked:
    """What finds one of a matcher's patterns from a mark.

    Args:
        pattern: the pattern, as it is written. What it has in front of the mark matches no mark.
    """
    lead, end_of, sought = _lead_of(pattern, mark), matcher.starting(index), mark.encode()

    def find(document: Document) -> Iterable[tuple[int, int]]:
        data = document.data
        if end_of is None or data.count(sought) > _MOST_MARKS:
            return matcher.places(index, document)
        return document.characters(_around(end_of, data, _places(data, sought), lead))

    return find


def from_hosts(matcher: Matcher, index: int) -> Hosts:
    """What finds one of a matcher's patterns, of names of hosts, from how such names end."""
    hosts, end_of = places(sorted(end.encode() for end in endings())), matcher.starting(index)

    def find(document: Document, addresses: list[tuple[int, int]]) -> Iterable[tuple[int, int]] | None:
        data = document.data
        if hosts is None:
            return matcher.places(index, document)
        hits = hosts(data.lower())
        if not hits:
            return None
        marks = (
            list(_outside(data, [start for _, start, _ in hits], addresses)) if addresses else [at for _, at, _ in hits]
        )
        if end_of is None or len(marks) > max(_MOST_MARKS, len(data) // _APART):
            return matcher.places(index, document)
        return document.characters(_around(end_of, data, marks, _host_lead))

    return find


def _outside(data: bytes, marks: list[int], addresses: list[tuple[int, int]]) -> Iterator[int]:
    """The marks that are in no address.

    A name of a host that an address has is none that stands on its own, and its path belongs to it. Where there is
    something else in front of the path, the name has no path.
    """
    rest = iter(addresses)
    start, end = next(rest)
    passed: bool | None = None
    for at in marks:
        while end <= at:
            start, end = next(rest, _NOWHERE)
            passed = None
        if at >= start and passed is None:
            path = data.find(b"/", at, end)
            passed = path >= 0 and data.find(b"?", at, path) < 0 and data.find(b"#", at, path) < 0
        if not passed:
            yield at


def _places(data: bytes, mark: bytes) -> Iterator[int]:
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)


def _lead_of(pattern: str, mark: str) -> _Lead:
    """What finds where a match begins, by what stands in front of the first mark in its pattern.

    That must be a class of characters and, up to so many times, another one that has all of these.
    """
    front = [token for branch in read(pattern[: pattern.index(mark)], 0)[0] for token in branch]
    begins, all_of = (bytes(c for c in range(128) if re.fullmatch(one.atom, chr(c))) for one in (front[0], front[-1]))
    if len(front) != 2 or front[0].times or front[1].least or not set(begins) <= set(all_of):
        raise ValueError(f"what pattern {pattern!r} has in front of {mark!r} is not read from its end")
    longest, inner = front[1].most + 1, bytes(set(all_of) - set(begins))

    def lead(data: bytes, least: int, at: int) -> int:
        run = data[max(least, at - longest) : at]
        found = run[len(run.rstrip(all_of)) :].lstrip(inner)
        return at - len(found) if found else -1

    return lead


def _host_lead(data: bytes, least: int, at: int) -> int:
    """Where a host's name begins that has its last dot at a place."""
    run = data[max(least, at - _LONGEST_HOST) : at]
    name = run[len(run.rstrip(_HOST)) :].lstrip(b".-")
    return at - len(name) if name else -1


def _around(
    end_of: Callable[[bytes, int], int], data: bytes, marks: Iterable[int], lead: _Lead
) -> Iterator[tuple[int, int]]:
    """The places that a search from the front finds.

    Args:
        end_of: where a match ends that begins at a place; negative for nowhere.
        marks: where its matches have their first mark, ascending.
    """
    done = tried = 0
    for at in marks:
        if at < done:
            continue
        start = lead(data, done, at)
        if start < tried:
            continue
        end = end_of(data, start)
        tried = start + 1
        if end >= 0:
            yield start, end
            done = end
