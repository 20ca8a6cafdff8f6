"""Finding personal data in text.

The patterns are data (`pii.yaml`); this module knows how to run them. First the shape of a text says, for all patterns
at once, where which may occur (`prefilter.py`); those that count only next to a word that names them are asked where
such a word is. Each match must then pass its neighbours, its checksum and, where the pattern alone is too weak, find a
word near it that says what it is.
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
from flakestorm.patterns.engine import UNSPACED, Document, Matcher, near_words, rows_of, typed
from flakestorm.patterns.finding import Finding, disjoint
from flakestorm.patterns.literals import Places, places
from flakestorm.patterns.needs import Clause, folded, needed, share
from flakestorm.patterns.outline import Branch, branches
from flakestorm.patterns.prefilter import Finder, Hit, merged
from flakestorm.patterns.shape import shape_of, shaped
from flakestorm.patterns.validators import VALIDATORS, endings

__all__ = ["Finding", "entities", "readings", "scan"]

_BEFORE, _AFTER = 48, 32  # how far around a match its context words may stand, in characters
_UNLESS = 16  # how far in front of a match the words that make it something else may stand
_BOOST = 0.2
_CERTAIN = 0.9
_OVERLAPPING = 8  # how many certain findings in front of a place are asked whether they reach over it
_REACH = 96  # how far personal data may reach from what is characteristic of it, in bytes
_RARE = 1e-4  # of shapes of which texts have fewer nothing better is looked for
_MOST_STRETCHES = 8  # of more, the text as a whole is looked at sooner
_MOST_HITS = 3 * _MOST_STRETCHES  # of more, nobody asks how many stretches they are
_SHORT = 100  # texts up to this, in characters, may be one number and nothing else
_LEAST_DIGITS = 0.5  # a longer text that is mostly numbers has at least half of this share of digits
_TELLING = 0.05  # a pattern whose strings more texts have is not looked for by them
_COMMON = 1e-2  # a number next to words that more texts have is looked for sooner than they are
_DIGITS = re.compile(r"\d|\\d|\[[\d-]+\]")
_END = re.compile(rb"[\s\x00]")
_NO_NAME = re.compile(rb"[^a-z0-9._-]")


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
    rules = _pii()[1]
    finders = _finders()
    lower = data.lower()
    shape = shape_of(data)
    hits = finders.shapes.hits(shape)
    others = finders.texts.hits(lower)
    hosts = finders.hosts.hits(lower)
    if hits is None or others is None or hosts is None:
        return {index: [(0, len(data))] for index, asked in enumerate(wanted) if asked}
    found: dict[int, list[tuple[int, int]]] = {}
    for start, end, index, reach in hits + others + list(_bare(lower, hosts)):
        if index in found:
            found[index].append((start - reach, end + reach))
        else:
            found[index] = [(start - reach, end + reach)]
    wide = 1 if document.plain else 4  # bytes of a character, at most
    for index, start, end in finders.named(data, lower):
        before, after = rules[index].near
        stretch = (start - after * wide - _REACH, end + before * wide + _REACH)
        found.setdefault(index, []).append(stretch)
    whole = [(0, len(data))]
    for index, strings in finders.numbers:
        for string in strings:
            if string in shape:
                found[index] = whole
    digits, length = shape.count(b"0"), len(document.text)
    for index, share_of_digits in finders.everywhere:
        if share_of_digits * length <= 2 * digits or length <= _SHORT:
            found[index] = whole
    return {index: _looked_at(data, some) for index, some in found.items() if wanted[index]}


def _looked_at(data: bytes, stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches without overlaps, the text as a whole where there are too many."""
    if len(stretches) <= _MOST_HITS:
        found = merged(stretches)
        if len(found) <= _MOST_STRETCHES:
            return merged([_whole(data, stretch) for stretch in found])  # longer, they may reach into the next
    return [(0, len(data))]


def _bare(lower: bytes, hits: list[Hit]) -> Iterator[Hit]:
    """The hits that do not belong to the name of a host right behind a mark that an address has in front of it.

    A name there is none that stands on its own, as the rule for such names says, too.
    """
    for hit in hits:
        at, low = hit[0], max(0, hit[0] - _REACH)
        start = max(lower.rfind(b"/", low, at), lower.rfind(b"@", low, at), lower.rfind(b":", low, at))
        if start < 0 or _NO_NAME.search(lower, start + 1, at):
            yield hit


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
        shapes: in a text's shape.
        texts: in a text in lower case.
        hosts: the same for ends of hosts' names.
        words, foreign: the words that name what rules find, folded, or as they are; with the rules of each.
        numbers: rules that are asked in any text with one of these strings in its shape.
        everywhere: rules that are asked in any text that has as much of digits.
    """

    shapes: Finder
    texts: Finder
    hosts: Finder
    words: tuple[Places, list[list[int]]]
    foreign: tuple[Places, list[list[int]]]
    numbers: list[tuple[int, list[bytes]]]
    everywhere: list[tuple[int, float]]

    def named(self, data: bytes, lower: bytes) -> Iterator[tuple[int, int, int]]:
        """The rules whose words a text has: the rule, where the word starts and ends."""
        texts = [(self.words, b" %b " % folded(data), 1)]
        if len(lower) and not data.isascii():
            texts.append((self.foreign, lower, 0))
        for (find, owners), text, edge in texts:
            for word, start, end in find(text):
                for index in owners[word]:
                    yield index, start, end - 2 * edge


@cache
def _finders() -> _Finders:
    shapes, texts, hosts = Finder(), Finder(), Finder()
    everywhere = []
    numbers = []
    words: dict[bytes, list[int]] = {}
    foreign: dict[bytes, list[int]] = {}
    for index, (row, rule) in enumerate(zip(rows_of("pii.yaml"), _pii()[1], strict=True)):
        if rule.weak or rule.needs_context:
            named = [(b" %b " % folded(word.encode()), word.encode()) for word in row["context"]]
            firsts = _firsts(shaped(row["pattern"]))
            if firsts and share(frozenset(plain.decode() for plain, _ in named if plain.split())) > _COMMON:
                numbers.append((index, [string.encode() for clause in firsts for string in clause]))
                named = []
            for plain, word in named:
                owners, key = (words, plain) if plain.split() else (foreign, word)
                owners.setdefault(key, []).append(index)
            if rule.weak:
                everywhere.append((index, rule.share))
            continue
        if row.get("validator") == "bare_host":
            hosts.add(index, _REACH, [endings()])
            continue
        finder, clauses = shapes, _firsts(shaped(row["pattern"]))
        if _share(clauses) > _RARE and _share(others := _firsts(row["pattern"])) < _share(clauses):
            finder, clauses = texts, others
        if _share(clauses) < _TELLING:
            for clause in clauses:
                finder.add(index, _REACH, [clause])
        else:
            everywhere.append((index, 0.0))
    for finder in (shapes, texts, hosts):
        finder.ready()
    return _Finders(
        shapes,
        texts,
        hosts,
        (places(list(words)) or _nowhere, list(words.values())),
        (places(list(foreign)) or _nowhere, list(foreign.values())),
        numbers,
        everywhere,
    )


def _firsts(pattern: str) -> list[Clause]:
    """What each alternative of a pattern must have; nothing where one asks for nothing."""
    clauses = [needed(branch, marks=True) for branch in branches(pattern)]
    return [clause[0] for clause in clauses] if all(clauses) else []


def _share(clauses: list[Clause]) -> float:
    return max(map(share, clauses), default=1.0)


def _nowhere(text: bytes) -> list[tuple[int, int, int]]:
    return []


def _rule(row: dict[str, Any]) -> _Rule:
    return _Rule(
        id=row["id"],
        entity=row["entity"],
        not_before=_neighbour(row.get("not_before", r"\w")),
        not_after=_neighbour(row.get("not_after", r"\w")),
        tail=re.compile(row["tail"]) if "tail" in row else None,
        validator=VALIDATORS[row["validator"]] if "validator" in row else len,
        context=near_words(row.get("context")),
        needs_context=row.get("needs_context", False),
        near=(row["near"], 0) if "near" in row else (_BEFORE, _AFTER),
        weak=row.get("weak", False),
        asked_for=row.get("asked_for", False),
        unless=near_words(row.get("unless")),
        confidence=row["confidence"],
        share=max(_LEAST_DIGITS, min(map(_digits, branches(row["pattern"])))),
    )


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
    before, after, validator = rule.not_before.match, rule.not_after.match, rule.validator
    for start, stop in places:
        if start and before(text, start - 1):
            continue
        end = start + validator(text[start:stop])
        if start == end or after(text, end):
            continue
        if rule.unless and rule.unless.search(text[max(0, start - _UNLESS) : start]):
            continue
        tail = rule.tail.match(text, end) if rule.tail else None
        found.append(
            (start, tail.end() if tail else end, rule.context is not None and _is_near(rule, text, start, end))
        )
    if not found:
        return
    alone = rule.weak and 2 * sum(end - start for start, end, _ in found) >= len(text.strip())
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
