"""Which patterns can occur in a text at all, told from its words.

Prose makes an automaton of a hundred patterns with gaps visit new states all the time, which costs far more than
reading the text. So each pattern is asked on its own, and only if the text has the words without which it cannot match.
Those words are read off the pattern's syntax tree, so nobody keeps them by hand and none can be missing.

A *key* is a word's first six or four characters, a telling punctuation character, or `NOT_ASCII`. What a pattern needs
is a conjunction of disjunctions: of each set of keys the text must have one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from re import _constants as _op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

__all__ = ["NOT_ASCII", "Prefilter", "keys_of", "needs", "windows", "words_of"]

NOT_ASCII = "\x80"
_SHORT, _LONG = 4, 6
_MOST_STRINGS = 256
_MOST_PLACES = 16  # more, and the whole text is read in one go
_TELLING_CHARS = 3  # shorter keys are everywhere
_TELLING = "<[{|!\\=%+$"
_WORD = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
# Words that nearly every English text has. A set with one of them tells little.
_COMMON_WORDS = """
    the you your that this with from will have what and for are was were has can all any not its it is in on of to
    as be by or an a i we they them their do does if so no my me our his her who when how more one about which out
    been but only just also must should would could please request user users info information data at give given
    first need needs provide provided say show tell know use used using new other others make made like there here
    some into than then these those each every over system message answer response reply help time way today now
    name account code follow following read sure where same before after own place list send
"""
_COMMON = frozenset(word[:length] for word in _COMMON_WORDS.split() for length in (_SHORT, _LONG))
_Need = frozenset[str]


class Prefilter:
    """Which of many patterns to ask, and where.

    Args:
        patterns: in the syntax that RE2 and Python's `re` share.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._needed: list[list[_Need]] = [needs(pattern) for pattern in patterns]
        self._always = [index for index, groups in enumerate(self._needed) if not groups]
        self._by_key: dict[str, list[int]] = {}
        for index, groups in enumerate(self._needed):
            for key in groups[0] if groups else ():
                self._by_key.setdefault(key, []).append(index)

    def candidates(self, keys: set[str]) -> dict[int, list[set[str]]]:
        """The patterns that a text with these keys may hold, by index.

        Beside each stand the keys that the text has of those it needs; nothing where it needs none.
        """
        near: dict[int, set[str]] = {index: set() for index in self._always}
        for key in keys & self._by_key.keys():
            for index in self._by_key[key]:
                near.setdefault(index, set()).add(key)
        found: dict[int, list[set[str]]] = {}
        for index, first in near.items():
            others = [set(group & keys) for group in self._needed[index][1:]]
            if all(others):
                found[index] = [first, *others] if first else []
        return found


def windows(data: bytes, needed: list[set[str]], reach: int) -> list[tuple[int, int]]:
    """The stretches of a text that have all that a pattern needs: start and end in bytes.

    Args:
        data: the text, in lower case.
        needed: sets of keys; stretches lie around those of the first set and have some of every other one.
        reach: how far a match may reach from a key, in bytes.
    """
    whole = [(0, len(data))]
    if not needed or any(len(key) < _TELLING_CHARS for key in needed[0]):
        return whole
    starts: list[int] = []
    for key in needed[0]:
        word = key.encode()
        place = data.find(word)
        while place >= 0:
            starts.append(place)
            if len(starts) > _MOST_PLACES:
                return whole
            place = data.find(word, place + 1)
    starts.sort()
    found: list[tuple[int, int]] = []
    for place in starts:
        if found and place - reach <= found[-1][1]:
            found[-1] = (found[-1][0], place + reach)
        else:
            found.append((max(0, place - reach), place + reach))
    others = [
        [key.encode() for key in group] for group in needed[1:] if all(len(key) >= _TELLING_CHARS for key in group)
    ]
    return [
        (start, end)
        for start, end in found
        if all(any(data.find(key, start, end) >= 0 for key in group) for group in others)
    ]


def words_of(data: bytes) -> set[bytes]:
    """The different runs of ASCII letters and digits in a text, in lower case."""
    return set(data.translate(_WORD).lower().split())


def keys_of(text: str, words: set[bytes]) -> set[str]:
    """The keys of a text with these words."""
    keys = {word[:_LONG].decode() for word in words}
    keys.update([key[:_SHORT] for key in keys])
    keys.update(mark for mark in _TELLING if mark in text)
    if not text.isascii():
        keys.add(NOT_ASCII)
    return keys


def needs(pattern: str) -> list[_Need]:
    """The sets of keys of each of which a text must have one for the pattern to occur in it; the most telling first."""
    groups, _ = _sequence(list(_parser.parse(pattern, re.ASCII)), at_start=False)
    return sorted(set(groups), key=_commonness)[:3]


def _commonness(group: _Need) -> tuple[int, int]:
    """How many texts have a key of the set, roughly: short words are everywhere."""
    return sum(5 - min(len(key), 4) for key in group if key in _COMMON or len(key) < _TELLING_CHARS), len(group)


def _sequence(items: list[Any], *, at_start: bool) -> tuple[list[_Need], bool]:
    """What a run of tokens needs, and whether what follows it begins a word.

    Args:
        at_start: whether the first token begins a word.
    """
    groups: list[_Need] = []
    run, begins = {""}, at_start
    for place, (kind, value) in enumerate(items):
        exact = _exact(kind, value)
        if exact is not None and len(run) * len(exact) <= _MOST_STRINGS:
            run = {before + after for before in run for after in exact}
            continue
        groups += _of_run(run, begins=begins, ends=_ends_word(items[place : place + 1]))
        begins = begins and run == {""}
        run = {""}
        found, begins = _token(kind, value, begins=begins)
        groups += found
    groups += _of_run(run, begins=begins, ends=False)
    return groups, begins and run == {""}


def _of_run(run: set[str], *, begins: bool, ends: bool) -> list[_Need]:
    if begins and all(len(string) >= (1 if ends else _SHORT) for string in run):
        return [frozenset(string[: _LONG if ends or len(string) >= _LONG else _SHORT] for string in run)]
    return []


def _exact(kind: Any, value: Any) -> set[str] | None:
    """The letters and digits that a token stands for, if these are few strings and nothing else."""
    if kind is _op.LITERAL and chr(value).isascii() and chr(value).isalnum():
        return {chr(value).lower()}
    if kind is _op.SUBPATTERN:
        return _exact_sequence(list(value[-1]))
    if kind is _op.BRANCH:
        branches = [_exact_sequence(list(branch)) for branch in value[1]]
        return set().union(*filter(None, branches)) if all(branch is not None for branch in branches) else None
    if kind is _op.MAX_REPEAT and tuple(value[:2]) == (0, 1):
        inner = _exact_sequence(list(value[2]))
        return None if inner is None else inner | {""}
    if kind is _op.IN and len(value) <= 8 and all(inner is _op.LITERAL for inner, _ in value):
        characters = {chr(what) for _, what in value}
        return characters if all(c.isascii() and c.isalnum() for c in characters) else None
    return None


def _exact_sequence(items: list[Any]) -> set[str] | None:
    strings = {""}
    for kind, value in items:
        exact = _exact(kind, value)
        if exact is None or len(strings) * len(exact) > _MOST_STRINGS:
            return None
        strings = {before + after for before in strings for after in exact}
    return strings


def _ends_word(items: list[Any]) -> bool:
    """Whether the tokens begin with something that no word has in it."""
    if not items:
        return False
    kind, value = items[0]
    if kind is _op.MAX_REPEAT:
        return bool(value[0] >= 1 and _ends_word(list(value[2])))
    return _separates(kind, value)


def _separates(kind: Any, value: Any) -> bool:
    if kind is _op.AT:
        return value in (_op.AT_BOUNDARY, _op.AT_BEGINNING, _op.AT_END)
    if kind is _op.IN:
        return all(
            (inner is _op.CATEGORY and what in (_op.CATEGORY_NOT_WORD, _op.CATEGORY_SPACE))
            or (inner is _op.LITERAL and chr(what).isascii() and not chr(what).isalnum())
            for inner, what in value
        )
    return bool(kind is _op.LITERAL and chr(value).isascii() and not chr(value).isalnum())


def _token(kind: Any, value: Any, *, begins: bool) -> tuple[list[_Need], bool]:
    if kind is _op.LITERAL:
        if not chr(value).isascii():
            return [frozenset([NOT_ASCII])], False
        return ([frozenset([chr(value)])] if chr(value) in _TELLING else []), True
    if kind is _op.IN:
        characters = [chr(what) for inner, what in value if inner is _op.LITERAL]
        ranges = [what for inner, what in value if inner is _op.RANGE]
        foreign = len(characters) + len(ranges) == len(value)
        foreign = foreign and not any(c.isascii() for c in characters) and all(low > 127 for low, _ in ranges)
        return ([frozenset([NOT_ASCII])] if foreign else []), _separates(kind, value)
    if kind is _op.SUBPATTERN:
        return _sequence(list(value[-1]), at_start=begins)
    if kind is _op.BRANCH:
        return _branch(value[1], begins=begins)
    if kind in (_op.MAX_REPEAT, _op.MIN_REPEAT):
        found, ended = _sequence(list(value[2]), at_start=begins)
        return (found, ended) if value[0] >= 1 else ([], begins and ended)
    return [], _separates(kind, value)


def _branch(branches: list[Any], *, begins: bool) -> tuple[list[_Need], bool]:
    """Of every branch its most telling set: one of them all is needed. A branch without one needs nothing."""
    parts = [_sequence(list(branch), at_start=begins) for branch in branches]
    ended = all(end for _, end in parts)
    if not all(groups for groups, _ in parts):
        return [], ended
    return [frozenset().union(*(min(groups, key=_commonness) for groups, _ in parts))], ended
