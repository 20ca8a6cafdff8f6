"""What is asked of a whole text, because no string says where in it to ask: all of it in one pass.

To read a text of 10 kB with an automaton takes about as long for one pattern as for ten. So the patterns that nothing
stands for are asked together, and together with the signs of what is encoded (`disguise.ENCODED`). A pattern that every
match of has a character that is not ASCII is asked for where there is such a character only, which most texts, even
those that are not all ASCII, have not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flakestorm.patterns.engine import Document, Matcher
from flakestorm.patterns.outline import branches, telling

__all__ = ["Everywhere", "foreign"]


class Everywhere:
    """Patterns that are asked of whole texts.

    Args:
        signs: patterns that are asked of every text, and only that.
        always: pattern's number -> pattern, of those that may occur in any text.
        strange: the same, of those that occur in no text that is all ASCII.
    """

    def __init__(self, signs: Sequence[str], always: Mapping[int, str], strange: Mapping[int, str]) -> None:
        self._signs = len(signs)
        self._always = list(always)
        self._matcher = Matcher([*signs, *always.values()])
        gates = {index: gate for index, pattern in strange.items() if (gate := foreign(pattern))}
        self._strange = list(gates)
        self._gates = Matcher(gates.values())

    def asked(self, document: Document) -> tuple[list[int], set[int]]:
        """The signs that occur in a text, ascending, and the numbers of the patterns that do not."""
        occurring = self._matcher.occurring(document.data)
        signs = [index for index in occurring if index < self._signs]
        absent = {*self._always, *self._strange}
        absent.difference_update(self._always[index - self._signs] for index in occurring[len(signs) :])
        if not document.plain:
            absent.difference_update(self._strange[gate] for gate in self._gates.occurring(document.foreign))
        return signs, absent


def foreign(pattern: str) -> str | None:
    """A pattern of characters that are not ASCII, one of which every match of a pattern has; None where none is known.

    Args:
        pattern: in the syntax that RE2 and Python's `re` share.
    """
    atoms = [telling(branch) for branch in branches(pattern)]
    return None if None in atoms else _any_of(atoms)


def _any_of(atoms: Iterable[str | None]) -> str:
    return "|".join(dict.fromkeys(atom for atom in atoms if atom))
