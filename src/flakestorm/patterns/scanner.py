"""Finding personal data in text.

The patterns are data (`pii.yaml`); this module knows how to run them. Only the neighbourhood of digits, at signs and
the like is looked at. All patterns are first asked at once which of them occur there at all. Only those are then
searched for their places, and each match must pass its neighbours, its checksum and, where the pattern alone is too
weak, find a word near it that says what it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from flakestorm.core.registry import nearest
from flakestorm.errors import Misuse
from flakestorm.patterns.engine import Document, Matcher, near_words, rows_of
from flakestorm.patterns.finding import Finding, disjoint
from flakestorm.patterns.validators import VALIDATORS

__all__ = ["Finding", "entities", "readings", "scan"]

_BEFORE, _AFTER = 48, 24  # how far around a match its context words may stand, in characters
_UNLESS = 16  # how far in front of a match the words that make it something else may stand
_BOOST = 0.2
_CERTAIN = 0.9
_OVERLAPPING = 8  # how many certain findings in front of a place are asked whether they reach over it
_MARGIN = 48  # how far personal data may reach from a telling character, in bytes
_TELLING = re.compile(rb"[0-9][^\s]*|[@:]|\.[A-Za-z]")


@dataclass(frozen=True, slots=True)
class _Rule:
    id: str
    entity: str
    not_before: re.Pattern[str]
    not_after: re.Pattern[str]
    tail: re.Pattern[str] | None
    validator: Callable[[str], int]
    context: re.Pattern[str] | None
    needs_context: bool
    near: tuple[int, int]
    weak: bool
    asked_for: bool
    unless: re.Pattern[str] | None
    confidence: float


def scan(text: str, *, entities: Collection[str] | None = None) -> list[Finding]:
    """The personal data in a text, in order; findings do not overlap.

    Args:
        text: any text.
        entities: which entities to look for; default: all that are personal on their own.

    Raises:
        Misuse: an entity is not known.
    """
    _, rules, known = _pii()
    for entity in entities or ():
        if entity not in known:
            close = nearest(entity.upper(), known)
            guess = f"did you mean {close!r}? " if close else ""
            raise Misuse(f"unknown entity {entity!r}; {guess}known: {', '.join(known)}")
    if entities is None:
        return disjoint(_found(text, [not rule.asked_for for rule in rules]))
    return disjoint(_found(text, [rule.entity in entities for rule in rules]))


def readings(text: str) -> list[Finding]:
    """Everything in a text that may be personal data, in order.

    A number may be read as more than one entity. Of one entity findings do not overlap, and what lies within a finding
    that is certain is not reported.
    """
    _, rules, _ = _pii()
    by_entity: dict[str, list[Finding]] = {}
    for finding in _found(text, [True] * len(rules)):
        by_entity.setdefault(finding.entity, []).append(finding)
    found = [finding for group in by_entity.values() for finding in disjoint(group)]
    certain = sorted((f for f in found if f.confidence >= _CERTAIN), key=lambda f: f.start)
    starts = [f.start for f in certain]
    kept = []
    for finding in found:
        before = bisect_right(starts, finding.start)
        if not any(_within(finding, outer) for outer in certain[max(0, before - _OVERLAPPING) : before]):
            kept.append(finding)
    return sorted(kept, key=lambda f: (f.start, f.end, f.entity))


def _within(inner: Finding, outer: Finding) -> bool:
    smaller = inner.end - inner.start < outer.end - outer.start
    return smaller and outer.start <= inner.start and inner.end <= outer.end and inner.confidence < _CERTAIN


def _found(text: str, wanted: list[bool]) -> list[Finding]:
    document = Document(text)
    matcher, rules, _ = _pii()
    stretches = _stretches(document.data)
    if not stretches:
        return []
    dense = b"\n".join([document.data[start:end] for start, end in stretches])
    return [
        finding
        for index in matcher.occurring(dense)
        if wanted[index]
        for finding in _search(rules[index], document.text, matcher.places(index, document, stretches))
    ]


def _stretches(data: bytes) -> list[tuple[int, int]]:
    """Where personal data can be, in bytes: around digits, at signs, colons, and full stops within words."""
    found: list[tuple[int, int]] = []
    for match in _TELLING.finditer(data):
        start, end = max(0, match.start() - _MARGIN), min(len(data), match.end() + _MARGIN)
        while start and data[start] & 0xC0 == 0x80:
            start -= 1
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def entities() -> tuple[str, ...]:
    """The entities that can be found, sorted."""
    return _pii()[2]


@cache
def _pii() -> tuple[Matcher, list[_Rule], tuple[str, ...]]:
    rows = rows_of("pii.yaml")
    matcher = Matcher(row["pattern"] for row in rows)
    rules = [_rule(row) for row in rows]
    return matcher, rules, tuple(sorted({rule.entity for rule in rules}))


def _rule(row: dict[str, Any]) -> _Rule:
    return _Rule(
        id=row["id"],
        entity=row["entity"],
        not_before=re.compile(row.get("not_before", r"\w")),
        not_after=re.compile(row.get("not_after", r"\w")),
        tail=re.compile(row["tail"]) if "tail" in row else None,
        validator=VALIDATORS[row["validator"]] if "validator" in row else len,
        context=near_words(row.get("context")),
        needs_context=row.get("needs_context", False),
        near=(row["near"], 0) if "near" in row else (_BEFORE, _AFTER),
        weak=row.get("weak", False),
        asked_for=row.get("asked_for", False),
        unless=near_words(row.get("unless")),
        confidence=row["confidence"],
    )


def _search(rule: _Rule, text: str, places: Iterable[tuple[int, int]]) -> Iterator[Finding]:
    """The matches that are what they look like. Weak ones count near a context word, or where there is little else."""
    found: list[tuple[int, int, bool]] = []
    for start, stop in places:
        if start and rule.not_before.match(text, start - 1):
            continue
        end = start + rule.validator(text[start:stop])
        if start == end or rule.not_after.match(text, end):
            continue
        if rule.unless and rule.unless.search(text[max(0, start - _UNLESS) : start]):
            continue
        tail = rule.tail.match(text, end) if rule.tail else None
        found.append((start, tail.end() if tail else end, _is_near(rule, text, start, end)))
    alone = 2 * sum(end - start for start, end, _ in found) >= len(text.strip())
    for start, end, near in found:
        if near or not (rule.needs_context or (rule.weak and not alone)):
            confidence = min(1.0, round(rule.confidence + (_BOOST if near else 0.0), 2))
            yield Finding("pii", rule.id, rule.entity, start, end, confidence)


def _is_near(rule: _Rule, text: str, start: int, end: int) -> bool:
    """Whether a context word stands near a match."""
    if rule.context is None:
        return False
    before, after = rule.near
    around = (text[max(0, start - before) : start], text[end : end + after])
    return any(rule.context.search(side) for side in around)
