"""Which strings a text must hold for a pattern to occur in it.

A text is folded: letters in lower case and digits stay, one space stands for whatever is between words. Of each pattern
it is worked out what every match of it holds in folded form, as clauses: of each clause, a match holds at least one
string. What a gap between them may be is not asked. The method is that of RE2's FilteredRE2 (Cox, "Regular Expression
Matching with a Trigram Index"), with words and phrases instead of trigrams. Where marks are telling, the same is done
for the text as it is, in lower case.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from flakestorm.patterns.frequency import commonness
from flakestorm.patterns.outline import Branch, Token

__all__ = ["Clause", "edges", "folded", "needed", "share"]

_FOLD = bytes(ord(chr(c).lower()) if c < 128 and chr(c).isalnum() else 32 for c in range(256))
_MOST_STRINGS = 400  # a part of a pattern that stands for more is cut
_MOST_WORDS = 3
_RARE_STRING = 0
_MANY_STRINGS = 60  # of more it takes too long to find out which have another one in them
_MOST_CLAUSES = 8
_MANY = 40  # repetitions of more are as good as more
_FEW = 30
_MOST_MEMBERS = 10  # a class of more is a gap
_CHARACTERS = [chr(code) for code in range(128)]
_NO_END = 1 << 16
_BREAKS = ("^", "$", "\\b")

Clause = frozenset[str]
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Part:
    """What a part of a pattern stands for.

    Args:
        exact: the strings it may be; None where not all are known.
        head, tail: then, what it begins and ends with; "" for anything.
        clauses: then, what it holds.
    """

    exact: frozenset[str] | None
    head: frozenset[str] = _NONE
    tail: frozenset[str] = _NONE
    clauses: tuple[Clause, ...] = ()


_EMPTY = _Part(frozenset({""}))
_BREAK = _Part(frozenset({" "}))
_ANYTHING = _Part(None, _EMPTY.exact or _NONE, _EMPTY.exact or _NONE)


def folded(data: bytes) -> bytes:
    """A text in UTF-8 as letters in lower case and digits, with a space for every other byte."""
    return data.translate(_FOLD)


def needed(branch: Branch, *, marks: bool = False) -> tuple[Clause, ...]:
    """The clauses of one of a pattern's alternatives, the rarest first; none where it asks for nothing.

    Args:
        branch: as `outline.branches` gives it; matched without regard to case.
        marks: whether strings of the text as it is are wanted, in lower case, and not of the folded text.
    """
    clauses = _both(_both(_ANYTHING, _run(branch, marks)), _ANYTHING).clauses
    return _rarest(map(_shortest, clauses))


def edges(branch: Branch, clause: Clause, *, marks: bool = False) -> tuple[int | None, int | None]:
    """How much of a match stands in front of one of a clause's strings in it, and behind it, at most, in bytes.

    Both are of the same string; None for unknown. It is known where every match begins, or ends, with a string or
    little else, or where none is long.
    """
    part = _run(branch, marks)
    most = _longest(branch, marks)
    longest = most if most < _NO_END else None
    if part.exact is not None:
        places = [_around(string, clause) for string in part.exact]
        return max(before for before, _ in places), max(behind for _, behind in places)
    if all(any(string in head for string in clause) for head in part.head):
        return max(min(_before(head, clause)) for head in part.head), longest
    if all(any(string in tail for string in clause) for tail in part.tail):
        return longest, max(min(_behind(tail, clause)) for tail in part.tail)
    return longest, longest


def _around(text: str, clause: Clause) -> tuple[int, int]:
    """What stands around the string of a clause that has least around it."""
    return min(zip(_before(text, clause), _behind(text, clause), strict=True), key=sum)


def _before(text: str, clause: Clause) -> list[int]:
    return [len(text[: text.find(string)].encode()) for string in sorted(clause) if string in text]


def _behind(text: str, clause: Clause) -> list[int]:
    return [len(text[text.find(string) + len(string) :].encode()) for string in sorted(clause) if string in text]


def _longest(run: Iterable[Token], marks: bool) -> int:
    """How long what a run stands for may be, in bytes."""
    found = 0
    for token in run:
        if token.branches:
            once = max(_longest(branch, marks) for branch in token.branches)
        elif _atom(token.atom, marks) is _BREAK:
            found += 1
            continue
        else:
            once = 0 if token.atom in (*_BREAKS, "\\B") else 4 if marks else 1
        found += once * token.most if once else 0
    return min(found, _NO_END)


def _run(run: Iterable[Token], marks: bool) -> _Part:
    part = _EMPTY
    for token in run:
        part = _both(part, _token(token, marks, ended=_ends(part)))
    return part


def _ends(part: _Part) -> bool:
    """Whether a word must have ended with it."""
    return all(string.endswith(" ") for string in (part.tail if part.exact is None else part.exact))


def _token(token: Token, marks: bool, *, ended: bool) -> _Part:
    once = _either(_run(run, marks) for run in token.branches) if token.branches else _atom(token.atom, marks)
    if once is _BREAK or token.most == 1:  # any number of separators is one
        return once if token.least else _perhaps(once, ended=ended)
    least = _run([Token(token.atom, "", 1, 1, token.branches)] * min(token.least, _MANY), marks)
    if token.most == token.least:
        return least
    more = min(token.most, _MANY) - token.least
    if least.exact and once.exact and 0 < more < _FEW and len(once.exact) ** (token.least + more) <= _FEW:
        return _either(
            _both(least, _run([Token(token.atom, "", 1, 1, token.branches)] * n, marks)) for n in range(more + 1)
        )
    ends = _cut(once)
    rest = _perhaps(_both(ends, ends), ended=_ends(least) if token.least else ended)
    return _both(least, rest)


def _perhaps(part: _Part, *, ended: bool) -> _Part:
    """The part, or nothing. Where the word before it has ended, and one ends with it, then so it is."""
    if part.exact is not None:
        return _either([_EMPTY, part])
    return _Part(None, _EMPTY.exact or _NONE, frozenset({" " if ended and _ends(part) else ""}))


@cache
def _atom(atom: str, marks: bool) -> _Part:
    if atom in _BREAKS:
        return _EMPTY if marks else _BREAK
    if atom == "\\B":
        return _EMPTY
    if len(atom) == 1 and atom != ".":
        members = {atom.lower()}
    else:
        matches = re.compile(f"(?i){atom}", re.ASCII | re.DOTALL).fullmatch
        members = {c.lower() for c in _CHARACTERS if matches(c)}
        if not marks and (matches("\u0394") or not atom.isascii()):
            members.add(" ")
        elif matches("\u0394") or re.search(r"[^\x00-\x7f]-", atom):
            return _ANYTHING
        members |= set(re.sub(r"[\x00-\x7f]", "", atom)) if marks else set()
    if not marks:
        members = {c if c.isascii() and c.isalnum() else " " for c in members}
        if members == {" "}:
            return _BREAK
    return _Part(frozenset(members)) if len(members) <= _MOST_MEMBERS else _ANYTHING


def _cut(part: _Part) -> _Part:
    """The same, as something of which only beginning and end are known, and what it holds."""
    if part.exact is None:
        return part
    return _Part(None, part.exact, part.exact, _with(part.exact, ()))


def _both(first: _Part, second: _Part) -> _Part:
    """One behind the other."""
    if first.exact is not None and second.exact is not None:
        strings = _joined(first.exact, second.exact)
        return _Part(strings) if strings is not None else _both(_cut(first), _cut(second))
    if first.exact is not None:
        head = _joined(first.exact, second.head)
        return _both(_cut(first), second) if head is None else _Part(None, head, second.tail, second.clauses)
    if second.exact is not None:
        tail = _joined(first.tail, second.exact)
        return _both(first, _cut(second)) if tail is None else _Part(None, first.head, tail, first.clauses)
    clauses = first.clauses + second.clauses
    between = _joined(first.tail, second.head)
    for strings in (first.tail, second.head) if between is None else (between,):
        clauses = _with(strings, clauses)
    return _Part(None, first.head, second.tail, clauses)


def _with(strings: frozenset[str], clauses: tuple[Clause, ...]) -> tuple[Clause, ...]:
    return clauses if any(len(string.strip().encode()) < 2 for string in strings) else _rarest((*clauses, strings))


def _joined(before: frozenset[str], behind: frozenset[str]) -> frozenset[str] | None:
    """All of the one followed by all of the other, with one space where there would be two; None for too many."""
    if len(before) * len(behind) > _MOST_STRINGS:
        return None
    return frozenset(
        one + (other[1:] if one[-1:] == other[:1] == " " else other) for one, other in itertools.product(before, behind)
    )


def _either(parts: Iterable[_Part]) -> _Part:
    found = list(parts)
    if len(found) == 1:
        return found[0]
    exact = [part.exact for part in found if part.exact is not None]
    strings = frozenset().union(*exact)
    if len(exact) == len(found) and len(strings) <= _MOST_STRINGS:
        return _Part(strings)
    cut = [part for part in found if part.exact is None]
    if exact:
        cut.append(_cut(_Part(strings)))
    clauses = cut[0].clauses
    for part in cut[1:]:
        clauses = _rarest(one | other for one, other in itertools.product(clauses, part.clauses))
    heads, tails = ([getattr(part, edge) for part in cut] for edge in ("head", "tail"))
    return _Part(None, frozenset().union(*heads), frozenset().union(*tails), clauses)


def _shortest(clause: Clause) -> Clause:
    """The same with no more words in a string than it takes, and without most strings that have another one in them."""
    kept: list[str] = []
    for string in sorted(map(_telling, clause)):
        if not kept or not string.startswith(kept[-1]):
            kept.append(string)
    if len(kept) <= _MANY_STRINGS:
        kept = [string for string in kept if not any(other in string for other in kept if other != string)]
    return frozenset(kept)


def _telling(string: str) -> str:
    """The few words next to each other that texts have least often."""
    best = string
    words = re.findall(r"[^ ]+", string)
    spaced = [" " if string.startswith(" ") else "", *[" "] * (len(words) - 1), " " if string.endswith(" ") else ""]
    for count in range(1, min(len(words), _MOST_WORDS) + 1):
        runs = [
            spaced[at] + " ".join(words[at : at + count]) + spaced[at + count] for at in range(len(words) - count + 1)
        ]
        best = min(runs, key=commonness)
        if commonness(best) < _RARE_STRING:
            break
    return best


def _rarest(clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    """The clauses that say most, those left out that follow from others."""
    kept: list[Clause] = []
    for clause in sorted(set(clauses), key=lambda c: (share(c), len(c), sorted(c))):
        if not any(other <= clause for other in kept):
            kept.append(clause)
    return tuple(kept[:_MOST_CLAUSES])


def share(clause: Clause) -> float:
    """How often texts have one of its strings, roughly."""
    return math.fsum(map(commonness, clause))  # the same in whatever order
