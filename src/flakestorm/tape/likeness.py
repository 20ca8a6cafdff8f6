"""The mode `scored`: a request that was reworded may pass for a recorded one, if nothing that counts was changed.

Accepted is what is alike enough, clearly more than any other, and differs in plain words only: no number, negation,
quoted string, path or identifier.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from flakestorm.tape.fingerprint import Asked

if TYPE_CHECKING:
    from flakestorm.tape.match import Entry

__all__ = ["LEAST", "MARGIN", "alike"]

LEAST = 0.92
"""The lowest score that is accepted."""

MARGIN = 0.08
"""How much the second best must be behind."""

_WORD = re.compile(r"\s+|[^\s]+")
_PLAIN = re.compile(r"[A-Za-z]?[a-z]*[,.;:!?]?|\s+")
_NEGATION = re.compile(
    r"(?i)(?:no|not|never|none|nor|neither|without|nothing|nobody|cannot|cant|dont|wont|except|unless|only|all|any"
    r"|always|before|after|more|less|un\w+|dis\w+)[,.;:!?]?"
)


def alike(asked: Asked, entries: Iterable[Entry]) -> tuple[Entry, float] | None:
    """The recorded request that this one may pass for, and its score.

    Args:
        asked: the request.
        entries: recorded ones with the same hard fields.
    """
    scored = sorted(((_score(entry.asked, asked), entry.n, entry) for entry in entries), key=lambda s: (-s[0], s[1]))
    if not scored or scored[0][0] < LEAST:
        return None
    if len(scored) > 1 and scored[0][0] - scored[1][0] < MARGIN:
        return None
    score, _, entry = scored[0]
    return (entry, score) if _harmless(entry.asked, asked) else None


def _changed(old: Asked, new: Asked) -> list[tuple[str, str]] | None:
    """The texts of the parts that differ; None where the requests are not even of one shape."""
    if old.headers != new.headers or [(n, len(g)) for n, g in old.parts] != [(n, len(g)) for n, g in new.parts]:
        return None
    return [
        (one.raw.decode("utf-8", "replace"), two.raw.decode("utf-8", "replace"))
        for (_, group), (_, other) in zip(old.parts, new.parts, strict=True)
        for one, two in zip(group, other, strict=True)
        if one.canonical != two.canonical
    ]


def _score(old: Asked, new: Asked) -> float:
    from rapidfuzz import fuzz  # this mode is asked for rarely

    changed = _changed(old, new)
    if changed is None:
        return 0.0
    return float(min((fuzz.ratio(one, two) / 100 for one, two in changed), default=1.0))


def _harmless(old: Asked, new: Asked) -> bool:
    for one, two in _changed(old, new) or ():
        words, others = _WORD.findall(one), _WORD.findall(two)
        for tag, a, b, c, d in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
            if tag != "equal" and not all(map(_is_plain, (*words[a:b], *others[c:d]))):
                return False
    return True


def _is_plain(word: str) -> bool:
    return _PLAIN.fullmatch(word) is not None and _NEGATION.fullmatch(word) is None
