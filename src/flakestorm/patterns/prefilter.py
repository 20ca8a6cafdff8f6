"""Where in a text which patterns may occur at all.

What is characteristic of each pattern (`outline.py`) is looked for in one go, all under one `\\b`: without that, every
state of the automaton would have to remember each pattern that may begin next. Only around what was found are patterns
asked. Without RE2 every pattern is asked everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flakestorm.patterns.engine import compiled, started
from flakestorm.patterns.outline import anchors, foreign

__all__ = ["Prefilter"]

_BOUNDARY = "\\b"
_MOST_MEMORIES = 20_000
_MEMORY_BYTES = 80  # a longer hit is not remembered
_MOST_HITS = 5_000  # more, and the whole text is read with every pattern


class Prefilter:
    """Which of many patterns to ask, and where.

    Args:
        patterns: in the syntax that RE2 and Python's `re` share, matched without regard to case.
        reaches: how far a match of each may reach from any of its words, in bytes.
    """

    def __init__(self, patterns: Iterable[str], reaches: Sequence[int]) -> None:
        self._reaches = reaches
        self._always: list[int] = []
        self._owners: dict[str, list[int]] = {}
        for index, pattern in enumerate(patterns):
            found = anchors(pattern)
            for anchor in found:
                self._owners.setdefault(anchor, []).append(index)
            if not found:
                self._always.append(index)
        self._which: Any = started([f"(?im){anchor.removeprefix(_BOUNDARY)}" for anchor in self._owners])
        self._of_anchor = list(self._owners.values())
        words = [anchor.removeprefix(_BOUNDARY) for anchor in self._owners if anchor.startswith(_BOUNDARY)]
        marks = [anchor for anchor in self._owners if not anchor.startswith(_BOUNDARY)]
        self._memory: dict[bytes, tuple[int, ...]] = {}
        if self._which is None:
            return
        self._ascii = [_any_of(words, _BOUNDARY), _any_of([anchor for anchor in marks if not foreign(anchor)])]
        self._foreign = _any_of([anchor for anchor in marks if foreign(anchor)])

    def candidates(self, data: bytes) -> dict[int, list[tuple[int, int]]]:
        """The patterns that a text may hold, each with the stretches it may lie in: start and end in bytes.

        Args:
            data: the text in UTF-8.
        """
        if self._which is None:
            return self._everywhere(data)
        found = {index: [(0, len(data))] for index in self._always}
        hits = 0
        for pattern in self._ascii if data.isascii() else [*self._ascii, self._foreign]:
            at = 0
            while match := pattern.search(data, at):
                start, end = match.span()
                for index in self._asked(data[start:end]):
                    reach = self._reaches[index]
                    stretch = (max(0, start - reach), min(len(data), end + reach))
                    found.setdefault(index, []).append(stretch)
                at = start + 1
                hits += 1
                if hits > _MOST_HITS:
                    return self._everywhere(data)
        return {index: _merged(stretches) for index, stretches in found.items()}

    def _everywhere(self, data: bytes) -> dict[int, list[tuple[int, int]]]:
        return {index: [(0, len(data))] for index in range(len(self._reaches))}

    def _asked(self, hit: bytes) -> tuple[int, ...]:
        """The patterns of which something begins where a hit begins."""
        key = hit.lower()
        known = self._memory.get(key)
        if known is None:
            known = tuple({index for anchor in self._which.Match(key) or () for index in self._of_anchor[anchor]})
            if len(self._memory) >= _MOST_MEMORIES:
                self._memory.clear()
            if len(key) <= _MEMORY_BYTES:
                self._memory[key] = known
        return known


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


def _any_of(patterns: list[str], before: str = "") -> Any:
    nothing = r"[^\x00-\x{10FFFF}]"
    return compiled(f"(?im){before}(?:{'|'.join(sorted(patterns)) or nothing})", longest=True)
