"""Many strings looked for at once, in one pass over a text and at the same price for texts never seen before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["Places", "holds", "places"]

Places = Callable[[bytes], list[tuple[int, int, int]]]
_FEW = 8  # so many are sooner looked for one by one


def places(strings: Sequence[bytes]) -> Places | None:
    """What finds all places of strings: the string's index, start and end; None without the library for it."""
    module = _library()
    if module is None:
        return None
    if not strings:
        return lambda text: []
    automaton = _automaton(module, strings)
    return lambda text: automaton.find_matches_as_indexes(text, overlapping=True)


def holds(strings: Iterable[bytes]) -> Callable[[bytes], bool]:
    """What says whether a text has one of some strings."""
    wanted = tuple(sorted(strings))
    module = _library()
    if module is None or len(wanted) <= _FEW:
        return lambda text: any(string in text for string in wanted)
    automaton = _automaton(module, wanted)
    return lambda text: bool(automaton.find_matches_as_indexes(text))


def _automaton(module: Any, strings: Sequence[bytes]) -> Any:
    return module.BytesAhoCorasick(strings, module.MatchKind.Standard, module.Implementation.ContiguousNFA)


def _library() -> Any:
    try:
        import ahocorasick_rs
    except ImportError:
        return None
    return ahocorasick_rs
