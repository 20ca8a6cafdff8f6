"""Where in a text which patterns may occur at all.

Of each alternative of a pattern the strings that texts have least often stand for it (`needs.py`). All of them are
looked for in one go, whatever the number of patterns; around what was found, the text must have the alternative's other
strings as well. Only there the pattern itself is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from flakestorm.patterns.literals import holds, places
from flakestorm.patterns.needs import Clause, folded, needed, share
from flakestorm.patterns.outline import branches, strange

__all__ = ["Prefilter"]

_MOST_HITS = 20_000  # more, and the whole text is read with every pattern


_Alternative = tuple[int, int, tuple[Callable[[bytes], bool], ...]]
"""Of a pattern: the pattern's index, how far a match may reach, in bytes, and what must be near besides a string."""


class Prefilter:
    """Which of many patterns to ask, and where.

    Args:
        patterns: in the syntax that RE2 and Python's `re` share, matched without regard to case.
        reaches: how far a match of each may reach from any of its words, in bytes.
    """

    def __init__(self, patterns: Iterable[str], reaches: Sequence[int]) -> None:
        self._count = len(reaches)
        self._always: dict[int, bool] = {}  # the patterns that are asked everywhere: whether in any text
        words: dict[str, list[_Alternative]] = {}
        marks: dict[str, list[_Alternative]] = {}
        for index, pattern in enumerate(patterns):
            for branch in branches(pattern):
                clauses, owners = _best(needed(branch), words, needed(branch, marks=True), marks)
                if not clauses:
                    self._always[index] = self._always.get(index, False) or not strange(branch)
                    continue
                others = tuple(holds(map(str.encode, clause)) for clause in clauses[1:])
                for string in clauses[0]:
                    owners.setdefault(string, []).append((index, reaches[index], others))
        self._words, self._marks = list(words.values()), list(marks.values())
        self._runs = [max(string.split(), key=len).encode() for string in words]
        self._leads = [string.index(run.decode()) for string, run in zip(words, self._runs, strict=True)]
        self._in_words = places([string.encode() for string in words])
        self._in_text = places([string.encode() for string in marks])

    def candidates(self, data: bytes) -> dict[int, list[tuple[int, int]]]:
        """The patterns that a text may hold, each with the stretches it may lie in: start and end in bytes.

        Args:
            data: the text in UTF-8.
        """
        if self._in_words is None or self._in_text is None:
            return self._everywhere(data)
        found: dict[int, list[tuple[int, int]]] = {}
        lower = data.lower()
        hits = self._in_text(lower)
        plain, text = folded(data)
        word_hits = self._in_words(text)
        if len(hits) + len(word_hits) > _MOST_HITS:
            return self._everywhere(data)
        for string, start, end in hits:
            for index, reach, others in self._marks[string]:
                low, high = max(0, start - reach), end + reach
                near = lower[low:high]
                for has in others:
                    if not has(near):
                        break
                else:
                    found.setdefault(index, []).append((low, min(len(data), high)))
        for string, start, end in word_hits:
            for index, reach, others in self._words[string]:
                near = text[start - reach if start > reach else 0 : end + reach]
                for has in others:
                    if not has(near):
                        break
                else:  # between words there may be more than one byte, which the reach allows for
                    at = _place(plain, text, self._runs[string], start + self._leads[string])
                    found.setdefault(index, []).append((max(0, at - reach), min(len(data), at + end - start + reach)))
        stretches = {index: _merged(some) for index, some in found.items()}
        for index, in_any in self._always.items():
            if in_any or not data.isascii():
                stretches[index] = [(0, len(data))]
        return stretches

    def _everywhere(self, data: bytes) -> dict[int, list[tuple[int, int]]]:
        return {index: [(0, len(data))] for index in range(self._count)}


def _best(
    words: Sequence[Clause],
    of_words: dict[str, list[_Alternative]],
    marks: Sequence[Clause],
    of_marks: dict[str, list[_Alternative]],
) -> tuple[Sequence[Clause], dict[str, list[_Alternative]]]:
    """The clauses whose first one texts have less often."""
    if words and (not marks or share(words[0]) <= share(marks[0])):
        return words, of_words
    return marks, of_marks


def _place(plain: bytes, text: bytes, run: bytes, at: int) -> int:
    """Where what stands at a place of the folded text stands in the text."""
    nth = text.count(run, 0, at)
    place = plain.find(run)
    while nth:
        place = plain.find(run, place + len(run))
        nth -= 1
    return place


def _merged(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
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
