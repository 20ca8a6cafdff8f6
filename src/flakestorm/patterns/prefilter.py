"""Where in a text which patterns may occur at all.

Of each alternative of a pattern the strings that texts have least often stand for it (`needs.py`). All of them are
looked for in one go, whatever the number of patterns; around what was found, the text must have the alternative's other
strings as well. Only there the pattern itself is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from flakestorm.patterns.literals import holds, places
from flakestorm.patterns.needs import Clause, edges, folded, needed, share
from flakestorm.patterns.outline import branches, strange

__all__ = ["Anchor", "Finder", "Hit", "Prefilter", "anchors", "merged"]

_MOST_STRINGS = 20_000  # more, and the whole text is read with every pattern
_RARE = 1e-4  # words of which texts have fewer are looked for without a thought of marks

_Alternative = tuple[int, int, int, tuple[Callable[[bytes], bool], ...]]
"""Of a pattern: its index, how far a match may reach to the left and to the right, what else must be near."""

Hit = tuple[int, int, int]
"""Where a pattern may occur: start and end, the pattern's index."""


Anchor = tuple[int, str, Sequence[Clause], int | None, int | None]
"""Of an alternative: its pattern's index, where it is looked for, what it must have, the rarest first, and how much of
a match may stand in front of that and behind it, where that is known.

`words` in the folded text, `marks` in the text in lower case; without any clauses `always`, or `strange` where a text
that is all ASCII has none."""


class Finder:
    """The strings that patterns must have, all looked for at once."""

    def __init__(self) -> None:
        self._alternatives: list[_Alternative] = []
        self._owners: dict[bytes, list[int]] = {}
        self._checks: dict[Clause, Callable[[bytes], bool]] = {}

    def add(self, index: int, before: int, behind: int, clauses: Sequence[Clause]) -> None:
        """Look for a pattern.

        Args:
            index: its number.
            before, behind: how far a match may reach from any of the rarest strings, in bytes.
            clauses: what it must have, the rarest first; at least one.
        """
        first, *others = clauses
        for string in first:
            self._owners.setdefault(string.encode(), []).append(len(self._alternatives))
        self._alternatives.append((index, before, behind, tuple(map(self._check, others))))

    def _check(self, clause: Clause) -> Callable[[bytes], bool]:
        if clause not in self._checks:
            self._checks[clause] = holds(map(str.encode, clause))
        return self._checks[clause]

    def ready(self) -> None:
        """Make the automaton of all that was added."""
        strings = sorted(self._owners)
        self._of = [tuple((number, *self._alternatives[number][1:3]) for number in self._owners[s]) for s in strings]
        self._places = places(strings)

    def hits(self, text: bytes) -> list[Hit] | None:
        """Where patterns may occur; None where that cannot be said, or there is no end of it."""
        strings = self._places(text) if self._places else None
        if strings is None or len(strings) > _MOST_STRINGS:
            return None
        of = self._of
        around: dict[int, list[int]] = {}  # of each alternative, start and end of stretches that do not touch
        for string, start, end in strings:
            for number, before, behind in of[string]:
                low = start - before if start > before else 0
                some = around.get(number)
                if some is None:
                    around[number] = [low, end + behind]
                elif low <= some[-1]:
                    some[-2:] = min(low, some[-2]), end + behind  # hits come by their ends: this may begin before
                else:
                    some += (low, end + behind)
        found: list[Hit] = []
        for number, some in around.items():
            index, _, _, checks = self._alternatives[number]
            for low, high in zip(some[::2], some[1::2], strict=True):
                near = text[low:high]
                for has in checks:
                    if not has(near):
                        break
                else:
                    found.append((low, high, index))
        return sorted(found)


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
                yield index, "words", words, *edges(branch, words[0])
            elif marks:
                yield index, "marks", marks, *edges(branch, marks[0], marks=True)
            else:
                yield index, "strange" if strange(branch) else "always", (), None, None


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
        for index, kind, clauses, *most in anchors:
            before, behind = (reaches[index] if edge is None else min(edge + 1, reaches[index]) for edge in most)
            if kind == "words":
                self._words.add(index, before, behind, clauses)
            elif kind == "marks":
                first, *others = clauses
                for finder, foreign in ((self._marks, False), (self._foreign, True)):
                    if some := frozenset(string for string in first if string.isascii() != foreign):
                        finder.add(index, before, behind, [some, *others])
            else:
                self._always[index] = self._always.get(index, False) or kind == "always"
        for finder in (self._words, self._marks, self._foreign):
            finder.ready()

    def candidates(self, data: bytes) -> dict[int, list[tuple[int, int]]]:
        """The patterns that a text may hold, each with the stretches it may lie in: start and end in bytes.

        Args:
            data: the text in UTF-8.
        """
        plain = folded(data)
        text = b" %b " % b" ".join(plain.split())
        lower = data.lower()
        marks = self._marks.hits(lower)
        foreign = [] if data.isascii() else self._foreign.hits(lower)
        words = self._words.hits(text)
        if marks is None or words is None or foreign is None:
            return {index: [(0, len(data))] for index in range(self._count)}
        stretches = _unfolded(_stretches(words, len(text)), plain, text)
        for index, some in _stretches(marks + foreign, len(data)).items():
            stretches[index] = merged(stretches[index] + some) if index in stretches else some
        for index, in_any in self._always.items():
            if in_any or not data.isascii():
                stretches[index] = [(0, len(data))]
        return stretches


def _stretches(hits: list[Hit], length: int) -> dict[int, list[tuple[int, int]]]:
    """Of each pattern the stretches it may lie in."""
    found: dict[int, list[tuple[int, int]]] = {}
    for start, end, index in hits:
        if index in found:
            found[index].append((start, min(end, length)))
        else:
            found[index] = [(start, min(end, length))]
    return {index: merged(some) for index, some in found.items()}


def _unfolded(
    stretches: dict[int, list[tuple[int, int]]], plain: bytes, text: bytes
) -> dict[int, list[tuple[int, int]]]:
    """The stretches of a folded text where they are in the text; how many letters stand before says where that is.

    So a gap between two words, however long, makes no difference to what is near.
    """
    at = letters = spaces = place = 0  # how far the folded text is read, the letters in it, the spaces of the text
    where: dict[int, int] = {}
    for edge in sorted({edge for some in stretches.values() for stretch in some for edge in stretch}):
        letters += edge - at - text.count(b" ", at, edge)
        at = edge
        while place != letters + spaces:
            more = letters + spaces
            spaces += plain.count(b" ", place, more)
            place = more
        where[edge] = place
    end = len(plain)
    return {
        index: [(where[start], where[stop] if stop < len(text) else end) for start, stop in some]
        for index, some in stretches.items()
    }


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
