"""What is asked of a match of a pattern: its neighbours, its checksum, a word near it that says what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from flakestorm.patterns.engine import UNSPACED, near_words
from flakestorm.patterns.finding import Finding
from flakestorm.patterns.outline import Branch, branches, read
from flakestorm.patterns.validators import VALIDATORS

__all__ = ["Neighbour", "Rule", "matches", "rule_of"]

_BEFORE, _AFTER = 48, 32  # how far around a match its context words may stand, in characters
_UNLESS = 16  # how far in front of a match the words that make it something else may stand
_BOOST = 0.2
_LEAST_DIGITS = 0.5  # a longer text that is mostly numbers has at least half of this share of digits
_DIGITS = re.compile(r"\d|\\d|\[[\d-]+\]")
_ASCII = [chr(code) for code in range(128)]
_LAST = _ASCII[-1]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What may not stand next to a match.

    Args:
        forbidden: matches it. Scripts without spaces have letters there.
        alone: the characters of ASCII that are forbidden whatever is behind them.
        openers: the characters that it may begin with, but for those: most neighbours are none of them, and it is not
            asked.
    """

    forbidden: re.Pattern[str]
    alone: frozenset[str]
    openers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rule:
    """An entry of `pii.yaml`, which says what its fields mean.

    Args:
        share: how much of a match is digits, at least.
    """

    id: str
    entity: str
    not_before: Neighbour
    not_after: Neighbour
    tail: re.Pattern[str] | None
    validator: Callable[[str], int] | None
    context: re.Pattern[str] | None
    needs_context: bool
    near: tuple[int, int]
    weak: bool
    asked_for: bool
    unless: re.Pattern[str] | None
    confidence: float
    share: float


def rule_of(row: dict[str, Any]) -> Rule:
    """An entry of `pii.yaml`, made ready."""
    return Rule(
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
def _neighbour(source: str) -> Neighbour:
    forbidden = re.compile(f"(?![{UNSPACED}])(?:{source})")
    alone = frozenset(filter(forbidden.match, _ASCII))
    return Neighbour(forbidden, alone, frozenset(_openers(read(source, 0)[0])) - alone)


def _openers(alternatives: Iterable[Branch]) -> set[str]:
    """The characters of ASCII that something may begin with."""
    found: set[str] = set()
    for branch in alternatives:
        for token in branch:
            if token.branches:
                found |= _openers(token.branches)
            else:
                found.update(filter(re.compile(token.atom).fullmatch, _ASCII))
            if token.least:
                break
    return found


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


def matches(rule: Rule, text: str, places: Iterable[tuple[int, int]]) -> Iterator[Finding]:
    """The matches that are what they look like. Weak ones count near a context word, or where there is little else.

    Args:
        places: start and end of each match, in characters.
    """
    found: list[tuple[int, int, bool]] = []
    before, after = rule.not_before.forbidden.match, rule.not_after.forbidden.match
    not_before, not_after, perhaps_after = rule.not_before.alone, rule.not_after.alone, rule.not_after.openers
    validator, tail, unless, context = rule.validator, rule.tail, rule.unless, rule.context
    named = rule.weak or rule.needs_context
    length = len(text)
    for start, end in places:
        if start and ((c := text[start - 1]) in not_before or (c > _LAST and before(c))):
            continue
        if validator:
            end = start + validator(text[start:end])
            if start == end:
                continue
        if end < length and ((c := text[end]) in not_after or ((c in perhaps_after or c > _LAST) and after(text, end))):
            continue
        if unless and unless.search(text[max(0, start - _UNLESS) : start]):
            continue
        near = context is not None and _is_near(context, rule.near, text, start, end)
        if tail and (behind := tail.match(text, end)):
            end = behind.end()
        if context or named:
            found.append((start, end, near))
        else:
            yield Finding("pii", rule.id, rule.entity, start, end, rule.confidence)
    if not found:
        return
    alone = (
        rule.weak and not rule.needs_context and 2 * sum(end - start for start, end, _ in found) >= len(text.strip())
    )
    boosted = min(1.0, round(rule.confidence + _BOOST, 2))
    for start, end, near in found:
        if near or not named or alone:
            yield Finding("pii", rule.id, rule.entity, start, end, boosted if near else rule.confidence)


def _is_near(context: re.Pattern[str], near: tuple[int, int], text: str, start: int, end: int) -> bool:
    """Whether a context word stands near a match."""
    before, after = near
    search = context.search
    return bool(search(text[max(0, start - before) : start]) or (after and search(text[end : end + after])))
