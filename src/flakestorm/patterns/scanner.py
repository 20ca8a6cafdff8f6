"""Finding personal data in text.

The patterns are data (`pii.yaml`); this module knows how to run them. First the shape of a text says, for all patterns
at once, which of them may occur (`shape.py`); those that count only next to a word that names them are then asked where
such a word is. Each match must pass its neighbours, its checksum and, where the pattern alone is too weak, find a word
near it that says what it is.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from flakestorm.core.registry import nearest
from flakestorm.errors import Misuse
from flakestorm.patterns.engine import UNSPACED, Document, Matcher, near_words, rows_of, typed
from flakestorm.patterns.finding import Finding, disjoint
from flakestorm.patterns.literals import Places, places
from flakestorm.patterns.needs import folded, share
from flakestorm.patterns.outline import Branch, branches
from flakestorm.patterns.prefilter import merged
from flakestorm.patterns.shape import bounded, shape_of, shaped
from flakestorm.patterns.validators import VALIDATORS, endings

__all__ = ["Finding", "entities", "readings", "scan"]

_BEFORE, _AFTER = 48, 32  # how far around a match its context words may stand, in characters
_UNLESS = 16  # how far in front of a match the words that make it something else may stand
_BOOST = 0.2
_CERTAIN = 0.9
_OVERLAPPING = 8  # how many certain findings in front of a place are asked whether they reach over it
_REACH = 96  # how far personal data may reach from what is characteristic of it, in bytes
_MOST_STRETCHES = 8  # of more, the text as a whole is looked at sooner
_MOST_HITS = 3 * _MOST_STRETCHES  # of more, nobody asks how many stretches they are
_SHORT = 100  # texts up to this, in characters, may be one number and nothing else
_LEAST_DIGITS = 0.5  # a longer text that is mostly numbers has at least half of this share of digits
_COMMON = 1e-2  # words that more texts have do not say where to look
_RUNS_ON = ("iban",)  # what checks only the beginning of a match
_HOST = "bare_host"  # what is told by the end of a host's name, and not by its shape
_DIGITS = re.compile(r"\d|\\d|\[[\d-]+\]")
_END = re.compile(rb"[\s\x00]")
_OF_NAMES = bytes(110 if re.match(rb"[a-z0-9._-]", bytes([c])) else 47 if c in b"/@:" else 32 for c in range(256))


@dataclass(frozen=True, slots=True)
class _Rule:
    id: str
    entity: str
    not_before: re.Pattern[str]
    not_after: re.Pattern[str]
    tail: re.Pattern[str] | None
    validator: Callable[[str], int] | None
    context: re.Pattern[str] | None
    needs_context: bool
    near: tuple[int, int]
    weak: bool
    asked_for: bool
    unless: re.Pattern[str] | None
    confidence: float
    share: float  # how much of a match is digits, at least


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
    document = Document(typed(text))
    matcher, rules, _ = _pii()
    return [
        finding
        for index, stretches in sorted(_asked(document, wanted).items())
        for finding in _search(rules[index], document.text, matcher.places(index, document, stretches))
    ]


def _asked(document: Document, wanted: list[bool]) -> dict[int, list[tuple[int, int]]]:
    """The rules that may find something in a text, each with the stretches to look at."""
    data = document.data
    whole = [(0, len(data))]
    finders = _finders()
    shape = shape_of(data)
    digits = 2 * shape.count(b"0")
    found: dict[int, list[tuple[int, int]]] = {}
    near = set()
    for number in finders.shapes.occurring(shape):
        index, least = finders.rules[number]
        if wanted[index]:
            if index in finders.marks:
                found[index] = _around(data, finders.marks[index]) or whole
            elif least is None or least * len(document.text) <= digits or len(document.text) <= _SHORT:
                found[index] = whole
            else:
                near.add(index)
    if near:
        wide = 1 if document.plain else 4  # bytes of a character, at most
        rules = _pii()[1]
        for index, start, end in finders.named(data):
            if index in near:
                before, after = rules[index].near
                stretch = (start - after * wide - _REACH, end + before * wide + _REACH)
                found.setdefault(index, []).append(stretch)
    if finders.hosts is None:
        found |= {index: whole for index in finders.of_hosts if wanted[index]}
    elif stretches := [(start - _REACH, end + _REACH) for start, end in _bare(data.lower(), finders.hosts)]:
        found |= {index: stretches for index in finders.of_hosts if wanted[index]}
    return {index: some if some is whole else _looked_at(data, some) for index, some in found.items()}


def _looked_at(data: bytes, stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches without overlaps, the text as a whole where there are too many."""
    if len(stretches) <= _MOST_HITS:
        found = merged(stretches)
        if len(found) <= _MOST_STRETCHES:
            return merged([_whole(data, stretch) for stretch in found])  # longer, they may reach into the next
    return [(0, len(data))]


def _around(data: bytes, mark: bytes) -> list[tuple[int, int]]:
    """The stretches around the places of a mark that have something right before them; none where there are many."""
    found = []
    at = data.find(mark)
    while at >= 0:
        if not data[max(0, at - 1) : at].isspace():
            found.append((at - _REACH, at + _REACH))
            if len(found) > _MOST_HITS:
                return []
        at = data.find(mark, at + 1)
    return found


def _bare(lower: bytes, hosts: Places) -> Iterator[tuple[int, int]]:
    """The ends of hosts' names, but not of those right behind a mark that an address has in front of them.

    A name there is none that stands on its own, as the rule for such names says, too.
    """
    hits = hosts(lower)
    if hits:
        names = lower.translate(_OF_NAMES)
        for _, start, end in hits:
            if not names[max(0, start - _REACH) : start].rstrip(b"n").endswith(b"/"):
                yield start, end


def _whole(data: bytes, stretch: tuple[int, int]) -> tuple[int, int]:
    """A stretch that ends where something ends, and cuts no character."""
    start, end = max(0, stretch[0]), stretch[1]
    while start and data[start] & 0xC0 == 0x80:
        start -= 1
    if end >= len(data):
        return start, len(data)
    last = _END.search(data, end)
    return start, last.start() if last else len(data)


def entities() -> tuple[str, ...]:
    """The entities that can be found, sorted."""
    return _pii()[2]


@cache
def _pii() -> tuple[Matcher, list[_Rule], tuple[str, ...]]:
    rows = rows_of("pii.yaml")
    matcher = Matcher((row["pattern"] for row in rows), together=False)
    rules = [_rule(row) for row in rows]
    return matcher, rules, tuple(sorted({rule.entity for rule in rules}))


@dataclass(frozen=True, slots=True)
class _Finders:
    """What says where to look.

    Args:
        shapes: the patterns with what may stand around them, to be asked of a text's shape.
        rules: of each its rule, and how much of digits a text must have to be asked as a whole; None for any text.
        words, foreign: the words that name what rules find, folded, or as they are; with the rules of each.
        hosts: finds the ends of hosts' names in a text in lower case; None without the library for it.
        of_hosts: the rules that look for hosts' names.
        marks: the rules that are asked only around a mark, with it.
    """

    shapes: Matcher
    rules: list[tuple[int, float | None]]
    words: tuple[Places | None, list[list[int]]]
    foreign: tuple[Places | None, list[list[int]]]
    hosts: Places | None
    of_hosts: list[int]
    marks: dict[int, bytes]

    def named(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        """The rules whose words a text has: the rule, where the word starts and ends."""
        texts = [(self.words, b" %b " % folded(data), 1)]
        if not data.isascii():
            texts.append((self.foreign, data.lower(), 0))
        for (find, owners), text, edge in texts:
            if find is None:
                yield from ((index, 0, len(data)) for some in owners for index in some)
                continue
            for word, start, end in find(text):
                for index in owners[word]:
                    yield index, start, end - 2 * edge


@cache
def _finders() -> _Finders:
    shapes: list[str] = []
    asked: list[tuple[int, float | None]] = []
    words: dict[bytes, list[int]] = {}
    foreign: dict[bytes, list[int]] = {}
    hosts = []
    for index, (row, rule) in enumerate(zip(rows_of("pii.yaml"), _pii()[1], strict=True)):
        if row.get("validator") == _HOST:
            hosts.append(index)
            continue
        named = row["context"] if rule.weak or rule.needs_context else []
        if share(frozenset(f" {word} " for word in named if word.isascii())) > _COMMON:
            named = []
        for word in named:
            if (plain := folded(word.encode())).split():
                words.setdefault(b" %b " % plain, []).append(index)
            else:
                foreign.setdefault(word.encode(), []).append(index)
        not_after = None if row.get("validator") in _RUNS_ON else rule.not_after
        part = row.get("part")
        shapes.append(shaped(part) if part else bounded(row["pattern"], rule.not_before, not_after))
        asked.append((index, (rule.share if rule.weak else math.inf) if named else None))
    return _Finders(
        Matcher(shapes),
        asked,
        (places(list(words)), list(words.values())),
        (places(list(foreign)), list(foreign.values())),
        places(sorted(end.encode() for end in endings())),
        hosts,
        {index: row["mark"].encode() for index, row in enumerate(rows_of("pii.yaml")) if "mark" in row},
    )


def _rule(row: dict[str, Any]) -> _Rule:
    return _Rule(
        id=row["id"],
        entity=row["entity"],
        not_before=_neighbour(row.get("not_before", r"\w")),
        not_after=_neighbour(row.get("not_after", r"\w")),
        tail=re.compile(row["tail"]) if "tail" in row else None,
        validator=VALIDATORS[row["validator"]] if "validator" in row else None,
        context=near_words(row.get("context")),
        needs_context=row.get("needs_context", False),
        near=(row["near"], 0) if "near" in row else (_BEFORE, _AFTER),
        weak=row.get("weak", False),
        asked_for=row.get("asked_for", False),
        unless=near_words(row.get("unless")),
        confidence=row["confidence"],
        share=max(_LEAST_DIGITS, min(map(_digits, branches(row["pattern"])))),
    )


@cache  # most are alike
def _neighbour(source: str) -> re.Pattern[str]:
    """What may not stand next to a match. Scripts without spaces have letters there."""
    return re.compile(f"(?![{UNSPACED}])(?:{source})")


def _digits(branch: Branch) -> float:
    """How much of what an alternative matches is digits, at least."""
    least, most = _counts(branch)
    return least / (least + most) if least + most else 0.0


def _counts(branch: Branch) -> tuple[int, int]:
    """How many digits an alternative has at least, and how many other characters at most."""
    digits = others = 0
    for token in branch:
        inner = list(map(_counts, token.branches)) or [(1, 0) if _DIGITS.fullmatch(token.atom) else (0, 1)]
        digits += min(count for count, _ in inner) * token.least
        others += max(count for _, count in inner) * token.most
    return digits, others


def _search(rule: _Rule, text: str, places: Iterable[tuple[int, int]]) -> Iterator[Finding]:
    """The matches that are what they look like. Weak ones count near a context word, or where there is little else."""
    found: list[tuple[int, int, bool]] = []
    before, after, validator, tail, unless = (
        rule.not_before.match,
        rule.not_after.match,
        rule.validator,
        rule.tail,
        rule.unless,
    )
    named = rule.weak or rule.needs_context
    for start, end in places:
        if start and before(text, start - 1):
            continue
        if validator:
            end = start + validator(text[start:end])
            if start == end:
                continue
        if after(text, end) or (unless and unless.search(text[max(0, start - _UNLESS) : start])):
            continue
        near = rule.context is not None and _is_near(rule, text, start, end)
        if tail and (behind := tail.match(text, end)):
            end = behind.end()
        found.append((start, end, near))
    if not found:
        return
    alone = (
        rule.weak and not rule.needs_context and 2 * sum(end - start for start, end, _ in found) >= len(text.strip())
    )
    boosted = min(1.0, round(rule.confidence + _BOOST, 2))
    for start, end, near in found:
        if near or not named or (alone and not rule.needs_context):
            yield Finding("pii", rule.id, rule.entity, start, end, boosted if near else rule.confidence)


def _is_near(rule: _Rule, text: str, start: int, end: int) -> bool:
    """Whether a context word stands near a match."""
    if rule.context is None:
        return False
    before, after = rule.near
    around = (text[max(0, start - before) : start], text[end : end + after])
    return any(rule.context.search(side) for side in around)
