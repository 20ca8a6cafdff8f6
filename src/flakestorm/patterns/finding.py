"""What a scan of a text gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import Any, Literal, NamedTuple

__all__ = ["Finding", "disjoint", "order"]


class Finding(NamedTuple):
    """One place in a text.

    Args:
        kind: `injection` for text that gives a model orders, `pii` for personal data.
        id: the pattern that found it.
        entity: personal data by presidio's name, e.g. `EMAIL_ADDRESS`; an injection by its technique.
        start, end: in characters, end exclusive.
        confidence: 0 to 1.
    """

    kind: Literal["injection", "pii"]
    id: str
    entity: str
    start: int
    end: int
    confidence: float


def order(*fields: str) -> Callable[[Finding], Any]:
    """A sort's key of some fields. Asking for them by their number takes half as long as by their name."""
    return itemgetter(*map(Finding._fields.index, fields))


def disjoint(found: list[Finding]) -> list[Finding]:
    """Where findings overlap the most confident one stays, and of equals the longest."""
    if len(found) < 2 or all(one.end <= other.start for one, other in pairwise(found)):
        return found
    kept: list[Finding] = []
    for group in _clusters(found):
        if len(group) == 1:
            kept += group
            continue
        chosen: list[Finding] = []
        for finding in sorted(group, key=lambda f: (-f.confidence, f.start - f.end, f.start, f.id)):
            if all(finding.end <= other.start or other.end <= finding.start for other in chosen):
                chosen.append(finding)
        kept += sorted(chosen, key=lambda f: f.start)
    return kept


def _clusters(found: list[Finding]) -> Iterator[list[Finding]]:
    """Findings in groups that do not touch, so that a text full of them is not compared pair by pair."""
    group: list[Finding] = []
    end = 0
    for finding in sorted(found, key=attrgetter("start")):
        if group and finding.start >= end:
            yield group
            group = []
        group.append(finding)
        end = max(end, finding.end)
    if group:
        yield group
