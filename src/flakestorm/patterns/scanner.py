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
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from flakestorm.core.registry import nearest
from flakestorm.errors import Misuse
from flakestorm.patterns.engine import Document, Matcher, rows_of, typed
from flakestorm.patterns.finding import Finding, disjoint, order
from flakestorm.patterns.literals import Places, places
from flakestorm.patterns.marks import Hosts, Marked, from_hosts, from_mark
from flakestorm.patterns.needs import folded, share
from flakestorm.patterns.prefilter import merged
from flakestorm.patterns.rules import Rule, matches, rule_of
from flakestorm.patterns.shape import behind, bounded, shape_of, shaped

__all__ = ["Finding", "entities", "readings", "scan"]

_ORDER = order("start", "end", "entity")
_CERTAIN = 0.9
_OVERLAPPING = 8  # how many certain findings in front of a place are asked whether they reach over it
_REACH = 96  # how far personal data may reach from what is characteristic of it, in bytes
_MOST_STRETCHES = 8  # of more, the text as a whole is looked at sooner
_MOST_HITS = 3 * _MOST_STRETCHES  # of more, nobody asks how many stretches they are
_SHORT = 100  # texts up to this, in characters, may be one number and nothing else
_SPACE = ord(" ")
_FOREIGN = 0x80  # a byte from here on is none of ASCII
_COMMON = 1e-2  # words that more texts have do not say where to look
_END = re.compile(rb"[\s\x00]")


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
    found.sort(key=_ORDER)
    certain = [f for f in found if f.confidence >= _CERTAIN]
    if not certain:
        return found
    starts = [f.start for f in certain]
    kept = []
    for finding in found:
        if finding.confidence < _CERTAIN:
            before = bisect_right(starts, finding.start)
            if any(_within(finding, outer) for outer in certain[max(0, before - _OVERLAPPING) : before]):
                continue
        kept.append(finding)
    return kept


def _within(inner: Finding, outer: Finding) -> bool:
    smaller = inner.end - inner.start < outer.end - outer.start
    return smaller and outer.start <= inner.start and inner.end <= outer.end


def _found(text: str, wanted: list[bool]) -> list[Finding]:
    document = Document(typed(text))
    matcher, rules, _ = _pii()
    stretches = _by_shape(document, wanted)
    asked: dict[int, Iterable[tuple[int, int]]] = {
        index: matcher.places(index, document, some) for index, some in stretches.items()
    }
    finders = _finders()
    for index, find in finders.marked.items():
        if index in stretches:
            asked[index] = find(document)
    for index, (addresses, look) in finders.hosts.items():
        if wanted[index]:
            spans = matcher.spans(addresses, document) if addresses in asked else None
            if spans is not None:
                asked[addresses] = document.characters(spans)
            if (places := look(document, spans or [])) is not None:
                asked[index] = places
    found: list[Finding] = []
    for index in sorted(asked):
        found += matches(rules[index], document.text, asked[index])
    return found


def _by_shape(document: Document, wanted: list[bool]) -> dict[int, list[tuple[int, int]]]:
    """The rules that may find something in a text, by its shape, each with the stretches to look at."""
    data = document.data
    finders = _finders()
    shape = shape_of(data)
    whole = [(0, len(data))]
    found: dict[int, list[tuple[int, int]]] = {}
    near = set()
    roughly = False
    length = len(document.text.strip())
    digits = math.inf if length <= _SHORT else 2 * shape.count(b"0") / length
    for number in finders.shapes.occurring(shape):
        for index, least in finders.rules[number]:
            if not wanted[index]:
                continue
            if least is None:
                found[index] = whole
            elif least > digits:
                near.add(index)
            elif index in finders.parted:
                roughly = True
            else:
                found[index] = whole
    if roughly:
        parted = list(finders.parted.items())
        for number in finders.exact.occurring(shape):
            index, least = parted[number]
            if wanted[index] and least <= digits:
                found[index] = whole
    if near - finders.alone:
        wide = 1 if document.plain else 4  # bytes of a character, at most
        rules = _pii()[1]
        stretches: dict[int, list[tuple[int, int]]] = {}
        for index, start, end in finders.named(data):
            if index in near:
                before, after = rules[index].near
                stretch = (start - after * wide - _REACH, end + before * wide + _REACH)
                stretches.setdefault(index, []).append(stretch)
        found |= {index: _looked_at(data, some) for index, some in stretches.items()}
    return found


def _looked_at(data: bytes, stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches without overlaps, the text as a whole where there are too many."""
    if len(stretches) <= _MOST_HITS:
        found = merged(stretches)
        if len(found) <= _MOST_STRETCHES:
            return merged([_whole(data, stretch) for stretch in found])  # longer, they may reach into the next
    return [(0, len(data))]


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
def _pii() -> tuple[Matcher, list[Rule], tuple[str, ...]]:
    rows = rows_of("pii.yaml")
    matcher = Matcher((row["pattern"] for row in rows), together=False)
    rules = [rule_of(row) for row in rows]
    return matcher, rules, tuple(sorted({rule.entity for rule in rules}))


@dataclass(frozen=True, slots=True)
class _Finders:
    """What says where to look.

    Args:
        shapes: parts of the patterns, or the patterns with what may stand around them, to be asked of a text's shape.
        rules: of each its rules, and how much of digits a text must have to be asked as a whole; None for any text.
        exact, parted: the shapes of rules with a part that are asked only near a word or in texts of digits, to be
            asked of the latter; and those rules, with how much of digits such a text must have.
        alone: the rules whose words belong to a shape, and that without them are asked in texts of digits only.
        words, foreign: the words that name what rules find, folded and with a space behind them (one in front as well
            would make the automaton stop at every word), or as they are; with the rules of each.
        scripts: bytes, of which each foreign word has one; texts in English have none, whatever their dashes are.
        marked: the rules that look from a mark, with what does it.
        hosts: the rules that look for names of hosts, with the rule for addresses that have them, and what does it.
    """

    shapes: Matcher
    rules: list[list[tuple[int, float | None]]]
    exact: Matcher
    parted: dict[int, float]
    alone: set[int]
    words: tuple[Places | None, list[list[int]]]
    foreign: tuple[Places | None, list[list[int]]]
    scripts: frozenset[int]
    marked: dict[int, Marked]
    hosts: dict[int, tuple[int, Hosts]]

    def named(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        """The rules whose words a text has: the rule, where the word starts and ends."""
        texts = [(self.words, b" %b " % folded(data), True)]
        if not data.isascii() and any(byte in data for byte in self.scripts):
            texts.append((self.foreign, data.lower(), False))
        for (find, owners), text, edged in texts:
            if find is None:
                yield from ((index, 0, len(data)) for some in owners for index in some)
                continue
            for word, start, end in find(text):
                if edged:
                    if text[start - 1] != _SPACE:
                        continue
                    start, end = start - 1, end - 2
                for index in owners[word]:
                    yield index, start, end


@cache
def _finders() -> _Finders:
    shapes: dict[str, list[tuple[int, float | None]]] = {}
    exact: list[str] = []
    parted: dict[int, float] = {}
    alone: set[int] = set()
    words: dict[bytes, list[int]] = {}
    foreign: dict[bytes, list[int]] = {}
    marked: dict[int, Marked] = {}
    hosts: dict[int, tuple[int, Hosts]] = {}
    matcher, rules, _ = _pii()
    ids = [rule.id for rule in rules]
    for index, (row, rule) in enumerate(zip(rows_of("pii.yaml"), rules, strict=True)):
        if "mark" in row:
            marked[index] = from_mark(matcher, index, row["pattern"], row["mark"])
        if "outside" in row:
            hosts[index] = ids.index(row["outside"]), from_hosts(matcher, index)
            continue
        not_after = None if "looks" in row else rule.not_after.forbidden
        whole = bounded(row.get("looks", row["pattern"]), rule.not_before.forbidden, not_after)
        if "near" in row:
            shapes.setdefault(behind(row["context"], row["near"], whole), []).append((index, None))
            shapes.setdefault(whole, []).append((index, rule.share))
            alone.add(index)
            continue
        named = row["context"] if rule.weak or rule.needs_context else []
        if share(frozenset(f" {word} " for word in named if word.isascii())) > _COMMON:
            named = []
        for word in named:
            if (plain := folded(word.encode())).split():
                words.setdefault(b"%b " % plain, []).append(index)
            else:
                foreign.setdefault(word.encode(), []).append(index)
        least = (rule.share if rule.weak else math.inf) if named else None
        part = row.get("part")
        shapes.setdefault(shaped(part) if part else whole, []).append((index, least))
        if part and least is not None:
            exact.append(whole)
            parted[index] = least
    return _Finders(
        Matcher(shapes),
        list(shapes.values()),
        Matcher(exact),
        parted,
        alone,
        (places(list(words)), list(words.values())),
        (places(list(foreign)), list(foreign.values())),
        frozenset(next(byte for byte in word if byte >= _FOREIGN) for word in foreign),
        marked,
        hosts,
    )
