"""Where in a text which patterns may occur at all.

Of each alternative of a pattern the strings that texts have least often stand for it (`needs.py`). All of them are
looked for in one go, whatever the number of patterns; around what was found, the text must have the alternative's other
strings as well. Only there the pattern itself is asked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from flakestorm.patterns.literals import holds, places
from flakestorm.patterns.needs import Clause, folded, needed, share
from flakestorm.patterns.outline import branches, strange

__all__ = ["Anchor", "Finder", "Prefilter", "Seen", "Stretch", "anchors", "merged"]

_MOST_STRINGS = 20_000  # more, and the whole text is read with every pattern
_COMMON = 3e-2  # strings that more texts have are looked for only near others
_RARE = 1e-4  # words of which texts have fewer are looked for without a thought of marks
_BLOCK = 8  # a text is divided into blocks of so many bytes, as a power of 2, that tell at once what is near
_LONG = 1_000  # how long a stretch may become, in bytes, that was found by strings one behind the other
_PIECE = 512  # how much of a text is folded at once, in bytes, to know later where it was

_Alternative = tuple[int, int, int, int, tuple[Callable[[bytes], bool], ...]]
"""Of a pattern: its index, how far a match may reach, in bytes and in blocks, the clauses that must be near, as bits,
and what else must be."""

Stretch = tuple[int, int]
"""Where something may be: start and end, in bytes."""

Anchor = tuple[int, str, Sequence[Clause]]
"""Of an alternative: its pattern's index, where it is looked for, and what it must have, the rarest first.

`words` in the folded text, `marks` in the text in lower case; without any clauses `always`, or `strange` where a text
that is all ASCII has none."""


class Finder:
    """The strings that patterns must have, all looked for at once."""

    def __init__(self) -> None:
        self._alternatives: list[_Alternative] = []
        self._owners: dict[bytes, list[int]] = {}
        self._clauses: dict[Clause, int] = {}
        self._bits: dict[bytes, int] = {}

    def add(self, index: int, reach: int, clauses: Sequence[Clause]) -> None:
        """Look for a pattern.

        Args:
            index: its number.
            reach: how far a match may reach from any of the strings, in bytes.
            clauses: what it must have, the rarest first; at least one.
        """
        first, *others = clauses
        bits = sum(1 << self._number(clause) for clause in others if share(clause) <= _COMMON)
        checks = tuple(holds(map(str.encode, clause)) for clause in others if share(clause) > _COMMON)
        alternative = (index, reach, (reach + max(map(len, first)) >> _BLOCK) + 1, bits, checks)
        for string in first:
            self._owners.setdefault(string.encode(), []).append(len(self._alternatives))
        self._alternatives.append(alternative)

    def _number(self, clause: Clause) -> int:
        number = self._clauses.setdefault(clause, len(self._clauses))
        for string in clause:
            self._bits[string.encode()] = self._bits.get(string.encode(), 0) | 1 << number
        return number

    def ready(self) -> None:
        """Make the automaton of all that was added."""
        strings = sorted(self._owners.keys() | self._bits.keys())
        self._told = [(self._bits.get(string, 0), tuple(self._owners.get(string, ()))) for string in strings]
        self._places = places(strings)

    def stretches(self, text: bytes) -> dict[int, list[Stretch]] | None:
        """Of each pattern where it may occur; None where that cannot be said, or there is no end of it."""
        strings = self._places(text) if self._places else None
        if strings is None or len(strings) > _MOST_STRINGS:
            return None
        told = self._told
        blocks = [0] * ((len(text) >> _BLOCK) + 1)  # what each has, as bits
        asked = []
        for string, start, end in strings:
            bits, owners = told[string]
            if bits:
                blocks[start >> _BLOCK] |= bits
            if owners:
                asked.append((start, end, owners))
        alternatives = self._alternatives
        around = [blocks]  # what they and so many neighbours have
        likely: dict[int, list[Stretch]] = {}
        for start, end, owners in asked:
            for number in owners:
                _, reach, wide, bits, _ = alternatives[number]
                while wide >= len(around):
                    around.append(_widened(around[-1]))
                if bits & around[wide][start >> _BLOCK] == bits:
                    low, high = start - reach, end + reach
                    if number not in likely:
                        likely[number] = [(low, high)]
                    elif low <= likely[number][-1][1] and high - likely[number][-1][0] <= _LONG:
                        likely[number][-1] = (likely[number][-1][0], high)
                    else:
                        likely[number].append((low, high))
        found: dict[int, list[Stretch]] = {}
        for number, stretches in likely.items():
            index, _, _, _, checks = alternatives[number]
            for low, high in stretches:
                stretch = max(0, low), min(high, len(text))
                if not checks or all(has(text[stretch[0] : high]) for has in checks):
                    found.setdefault(index, []).append(stretch)
        return {index: merged(some) for index, some in found.items()}


def _widened(blocks: list[int]) -> list[int]:
    """What each block and its two neighbours have."""
    return [before | here | behind for before, here, behind in zip([0, *blocks], blocks, [*blocks[1:], 0], strict=False)]


def anchors(patterns: Iterable[str]) -> Iterator[Anchor]:
    """What each alternative of each pattern must have.

    Args:
        patterns: in the syntax that RE2 and Python's `re` share, matched without regard to case.
    """
    for index, pattern in enumerate(patterns):
        for branch in branches(pattern):
            words = needed(branch)
            marks = needed(branch, marks=True) if not words or share(words[0]) > _RARE else ()
            if words and (not marks or share(words[0]) <= share(marks[0])):
                yield index, "words", words
            elif marks:
                yield index, "marks", marks
            else:
                yield index, "strange" if strange(branch) else "always", ()


class Prefilter:
    """Which of many patterns to ask, and where.

    Args:
        anchors: what each alternative of each pattern must have, as `anchors` gives it.
        reaches: how far a match of each may reach from any of its words, in bytes.
    """

    def __init__(self, anchors: Iterable[Anchor], reaches: Sequence[int]) -> None:
        self._count = len(reaches)
        self._always: dict[int, bool] = {}  # the patterns that are asked everywhere: whether in any text
        self._words, self._marks, self._foreign = Finder(), Finder(), Finder()
        for index, kind, clauses in anchors:
            if kind == "words":
                self._words.add(index, reaches[index], clauses)
            elif kind == "marks":
                first, *others = clauses
                for finder, foreign in ((self._marks, False), (self._foreign, True)):
                    if some := frozenset(string for string in first if string.isascii() != foreign):
                        finder.add(index, reaches[index], [some, *others])
            else:
                self._always[index] = self._always.get(index, False) or kind == "always"
        for finder in (self._words, self._marks, self._foreign):
            finder.ready()

    def seen(self, data: bytes) -> Seen:
        """The patterns that a text may hold, each with where it may lie.

        Args:
            data: the text in UTF-8.
        """
        folds = _Folds(data)
        lower = data.lower()
        words = self._words.stretches(folds.text)
        marks = self._marks.stretches(lower)
        foreign = {} if data.isascii() else self._foreign.stretches(lower)
        if words is None or marks is None or foreign is None:
            return Seen(folds, {}, {}, set(range(self._count)))
        for index, some in foreign.items():
            marks[index] = merged(marks[index] + some) if index in marks else some
        everywhere = {index for index, in_any in self._always.items() if in_any or not data.isascii()}
        return Seen(folds, words, marks, everywhere)


class Seen:
    """The patterns that a text may hold.

    Args:
        folds: the text as it was folded.
        words: the stretches of patterns that were found by their words, in the folded text.
        marks: those of patterns that were found by their marks, in the text as it is.
        everywhere: the patterns of which nothing says where they may be.
    """

    def __init__(
        self, folds: _Folds, words: dict[int, list[Stretch]], marks: dict[int, list[Stretch]], everywhere: set[int]
    ) -> None:
        self._folds = folds
        self._words = {index: some for index, some in words.items() if index not in everywhere}
        self._marks = {index: some for index, some in marks.items() if index not in everywhere}
        self.everywhere = everywhere

    def near(self) -> dict[int, list[Stretch]]:
        """The patterns that may be in some places, with their stretches in the folded text, or a little more."""
        found = dict(self._words)
        for index, some in self._marks.items():
            found[index] = found.get(index, []) + [self._folds.folded(stretch) for stretch in some]
        return found

    def stretches(self, index: int, first: int = 0, last: int = 1 << 62) -> list[Stretch]:
        """The stretches of one pattern in the text as it is.

        Args:
            index: the pattern.
            first, last: only those that touch this part of the folded text.
        """
        if index in self.everywhere:
            return [(0, len(self._folds.data))]
        found = [
            self._folds.unfolded(stretch)
            for stretch in self._words.get(index, ())
            if stretch[0] <= last and first <= stretch[1]
        ]
        for stretch in self._marks.get(index, ()):
            start, end = self._folds.folded(stretch)
            if start <= last and first <= end:
                found.append(stretch)
        return merged(found)


class _Folds:
    """A text in UTF-8 as it is, and folded with one space between words.

    How far words stand apart is counted in that: a gap, however long, makes no difference to what is near.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._plain = plain = folded(data)
        self._from: list[int] = []  # where pieces begin, in the text
        self._to: list[int] = []  # and in the folded one
        pieces = []
        at, place = 0, 1
        while at < len(plain):
            end = plain.find(b" ", at + _PIECE)
            end = len(plain) if end < 0 else end
            if piece := b" ".join(plain[at:end].split()):
                pieces.append(piece)
                self._from.append(at)
                self._to.append(place)
                place += len(piece) + 1
            at = end
        self.text = b" %b " % b" ".join(pieces)

    def folded(self, stretch: Stretch) -> Stretch:
        """Where a stretch of the text is in the folded one, by pieces."""
        first, last = bisect_right(self._from, stretch[0]) - 1, bisect_right(self._from, stretch[1])
        return self._to[first] if first > 0 else 0, self._to[last] if last < len(self._to) else len(self.text)

    def unfolded(self, stretch: Stretch) -> Stretch:
        """Where a stretch of the folded text is in the text."""
        start, end = stretch
        return self._place(start), self._place(end) if end < len(self.text) else len(self._plain)

    def _place(self, edge: int) -> int:
        """How many letters of its piece stand before says where an edge is."""
        piece = bisect_right(self._to, edge) - 1
        if piece < 0:
            return 0
        at, place = self._to[piece], self._from[piece]
        letters = edge - at - self.text.count(b" ", at, edge)
        end, spaces = place, 0
        while end != place + letters + spaces:
            more = place + letters + spaces
            spaces += self._plain.count(b" ", end, more)
            end = more
        return end


def merged(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches in order, those that touch as one."""
    if len(stretches) == 1:
        return stretches
    found: list[tuple[int, int]] = []
    for start, end in sorted(stretches):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
