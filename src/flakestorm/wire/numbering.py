"""Numbers of the blocks or items in a stream, which must stay without gaps when some are left out or put in."""

from __future__ import annotations

__all__ = ["Numbers"]


class Numbers:
    """From the numbers that came in to those that go out."""

    __slots__ = ("_shift", "_shifts", "dropped")

    def __init__(self) -> None:
        self._shift = 0
        self._shifts: dict[int, int] = {}
        self.dropped: set[int] = set()
        """Numbers of the blocks that are left out."""

    def start(self, index: int) -> int:
        """A block begins: the number it goes out with."""
        self.dropped.discard(index)
        self._shifts[index] = self._shift
        return index + self._shift

    def drop(self, index: int) -> None:
        """A block begins that is left out."""
        self.dropped.add(index)
        self._shift -= 1

    def insert(self, before: int) -> int:
        """The number of a block put in before this one."""
        self._shift += 1
        return before + self._shift - 1

    def now(self, index: int) -> int:
        """The number a block that has begun goes out with."""
        return index + self._shifts.get(index, 0)
