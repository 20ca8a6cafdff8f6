"""Finding personal data in text.

The patterns are data (`pii.yaml`); this module knows how to run them. All of them are first asked at once which of
them occur at all. Only those are then searched for their places, and each match must pass its neighbours, its
checksum and, where the pattern alone is too weak, find a word near it that says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from flakestorm.core.registry import nearest
from flakestorm.errors import Misuse
from flakestorm.patterns.engine import Matcher, encodable, near_words, rows_of
from flakestorm.patterns.validators import VALIDATORS

__all__ = ["Finding", "entities", "scan"]

_BEFORE, _AFTER = 48, 24  # how far around a match its context words may stand, in characters
_UNLESS = 16  # how far in front of a match the words that make it something else may stand
_BOOST = 0.2


@dataclass(frozen=True, slots=True)
class Finding:
    """One place in a text.

    Args:
        kind: `pii`.
        id: the pattern that found it.
        entity: what it is, by presidio's name, e.g. `EMAIL_ADDRESS`.
        start, end: in characters, end exclusive.
        confidence: 0 to 1.
    """

    kind: Literal["injection", "pii"]
    id: str
    entity: str
    start: int
    end: int
    confidence: float


@dataclass(frozen=True, slots=True)
class _Rule:
    id: str
    entity: str
    find: Any  # a compiled pattern of re2 or re
    not_before: re.Pattern[str]
    not_after: re.Pattern[str]
    tail: re.Pattern[str] | None
    validator: Callable[[str], int]
    context: re.Pattern[str] | None
    needs_context: bool
    unless: re.Pattern[str] | None
    confidence: float


def scan(text: str, *, entities: Collection[str] | None = None) -> list[Finding]:
    """The personal data in a text, in order; findings do not overlap.

    Args:
        text: any text.
        entities: which entities to look for; default: all that are known.

    Raises:
        Misuse: an entity is not known.
    """
    matcher, rules, known = _pii()
    for entity in entities or ():
        if entity not in known:
            close = nearest(entity.upper(), known)
            guess = f"did you mean {close!r}? " if close else ""
            raise Misuse(f"unknown entity {entity!r}; {guess}known: {', '.join(known)}")
    text = encodable(text)
    wanted = (rules[index] for index in matcher.occurring(text))
    return _disjoint(
        [finding for rule in wanted if entities is None or rule.entity in entities for finding in _search(rule, text)]
    )


def entities() -> tuple[str, ...]:
    """The entities that can be found, sorted."""
    return _pii()[2]


@cache
def _pii() -> tuple[Matcher, list[_Rule], tuple[str, ...]]:
    rows = rows_of("pii.yaml")
    matcher = Matcher(row["pattern"] for row in rows)
    rules = [_rule(row, find) for row, find in zip(rows, matcher.compiled, strict=True)]
    return matcher, rules, tuple(sorted({rule.entity for rule in rules}))


def _rule(row: dict[str, Any], find: Any) -> _Rule:
    return _Rule(
        id=row["id"],
        entity=row["entity"],
        find=find,
        not_before=re.compile(row.get("not_before", r"\w")),
        not_after=re.compile(row.get("not_after", r"\w")),
        tail=re.compile(row["tail"]) if "tail" in row else None,
        validator=VALIDATORS[row["validator"]] if "validator" in row else len,
        context=near_words(row.get("context")),
        needs_context=row.get("needs_context", False),
        unless=near_words(row.get("unless")),
        confidence=row["confidence"],
    )


def _search(rule: _Rule, text: str) -> Iterator[Finding]:
    for match in rule.find.finditer(text):
        start = match.start()
        if start and rule.not_before.match(text, start - 1):
            continue
        end = start + rule.validator(match.group())
        if start == end or rule.not_after.match(text, end):
            continue
        if rule.unless and rule.unless.search(text[max(0, start - _UNLESS) : start]):
            continue
        near = rule.context is not None and (
            rule.context.search(text[max(0, start - _BEFORE) : start]) or rule.context.search(text[end : end + _AFTER])
        )
        if rule.needs_context and not near:
            continue
        tail = rule.tail.match(text, end) if rule.tail else None
        confidence = min(1.0, round(rule.confidence + (_BOOST if near else 0.0), 2))
        yield Finding("pii", rule.id, rule.entity, start, tail.end() if tail else end, confidence)


def _disjoint(found: list[Finding]) -> list[Finding]:
    """Where findings overlap the most confident one stays, and of equals the longest."""
    kept: list[Finding] = []
    for group in _clusters(found):
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
    for finding in sorted(found, key=lambda f: f.start):
        if group and finding.start >= end:
            yield group
            group = []
        group.append(finding)
        end = max(end, finding.end)
    if group:
        yield group
