"""Many strings looked for at once, in one pass over a text and at the same price for texts never seen before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["Places", "holds", "places"]

Places = Callable[[bytes], list[tuple[int, int, int]]]
"""Of a text, all places of some strings: the string's index, start and end."""

_MANY = 4_000
_FEW = 3  # so many are sooner looked for one by one, in a short text


def places(strings: Sequence[bytes]) -> Places | None:
    """What finds all places of strings, where they overlap too; None without the library for it.

    Args:
        strings: none of them empty.
    """
    module = _library()
    if module is None:
        return None
    if not strings:
        return lambda text: []
    automaton = _automaton(module, strings)
    return lambda text: automaton.find_matches_as_indexes(text, overlapping=True)


def holds(strings: Iterable[bytes]) -> Callable[[bytes], bool]:
    """What says whether a short text has one of some strings."""
    wanted = tuple(sorted(strings))
    module = _library()
    if module is not None and len(wanted) > _FEW:
        automaton = _automaton(module, wanted)
        return lambda text: bool(automaton.find_matches_as_indexes(text))

    def one_by_one(text: bytes) -> bool:
        for string in wanted:  # noqa: SIM110 - a generator would take several times as long
            if string in text:
                return True
        return False

    return one_by_one


def _automaton(module: Any, strings: Sequence[bytes]) -> Any:
    """The quickest form; of very many strings one that takes less memory, which other work has of the cache."""
    form = module.Implementation.DFA if len(strings) <= _MANY else module.Implementation.ContiguousNFA
    return module.BytesAhoCorasick(strings, module.MatchKind.Standard, form)


def _library() -> Any:
    try:
        import ahocorasick_rs
    except ImportError:
        return None
    return ahocorasick_rs
