"""The shape of a text: every digit as 0, every letter as a.

Patterns of numbers differ in which digits they allow, but have few shapes. So patterns are widened to shapes, and only
those are asked whose shape occurs in a text's. An automaton of shapes meets few states that it has not met before: it
reads a new text about as quickly as one that it knows.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from functools import cache

from flakestorm.patterns.outline import FLAGS, Token, read

__all__ = ["behind", "bounded", "shape_of", "shaped"]

_SHAPE = bytes.maketrans((string.digits + string.ascii_letters).encode(), b"0" * 10 + b"a" * 52)
_CHARACTERS = [chr(code) for code in range(128)]
_FOREIGN = "\x80-\U0010ffff"
_TELLING = string.digits + string.ascii_letters + "_.:/-"  # each mark more makes an automaton of shapes larger


def shape_of(data: bytes) -> bytes:
    """A text's shape; what is not ASCII stays."""
    return data.translate(_SHAPE)


def shaped(pattern: str) -> str:
    """A pattern that occurs in a text's shape wherever the pattern occurs in the text.

    Args:
        pattern: in the syntax that RE2 and Python's `re` share.
    """
    flags = "".join(FLAGS.findall(pattern))
    branches, _ = read(FLAGS.sub("", pattern), 0)
    return _either(branches, flags)


def bounded(pattern: str, not_before: re.Pattern[str], not_after: re.Pattern[str] | None) -> str:
    """As `shaped`, with a character around it that may stand there, if there is one.

    Args:
        pattern: in the syntax that RE2 and Python's `re` share.
        not_before: matches the characters that do not stand in front.
        not_after: matches what does not stand behind; None for nothing.
    """
    before, after = (
        _class_of(c for c in _CHARACTERS if c not in _TELLING or not no or not no.match(c))
        for no in (not_before, not_after)
    )
    return f"(?:^|{before}){shaped(pattern)}(?:$|{after})"


def behind(words: Iterable[str], reach: int, shape: str) -> str:
    """A shape that `bounded` made, right behind one of some words.

    Args:
        words: as `near_words` finds them in front of a match.
        reach: how much of the text in front of a match is looked at, in characters. A word may be cut off by that.
    """
    fronts = [
        f"{'' if gap == reach - len(word) else '(?:^|[^0a_])'}{shaped(re.escape(word))}[^0a_]{{{gap - 1}}}"
        for word in words
        for gap in range(1, reach - len(word) + 1)
    ]
    return f"(?:{'|'.join(fronts)}){shape}"


def _either(branches: tuple[tuple[Token, ...], ...], flags: str) -> str:
    texts = dict.fromkeys("".join(_widened(token, flags) for token in branch) for branch in branches)
    return f"(?:{'|'.join(texts)})"


def _widened(token: Token, flags: str) -> str:
    inner = _either(token.branches, flags) if token.branches else _class(token.atom, flags)
    return inner + token.times.removesuffix("?") if len(token.times) > 1 else inner + token.times


@cache
def _class(atom: str, flags: str) -> str:
    """The shapes of all characters that an atom stands for."""
    if atom in ("^", "$", "\\b", "\\B"):
        return atom
    matches = re.compile(flags + atom, re.ASCII).fullmatch
    characters = [c for c in _CHARACTERS if matches(c)]
    foreign = not atom.isascii() or matches("\u0394") is not None
    if not foreign and len(shapes := {_SHAPE[ord(c)] for c in characters}) == 1:
        return re.escape(chr(shapes.pop()))
    return _class_of(characters, foreign=foreign)


def _class_of(characters: Iterable[str], *, foreign: bool = True) -> str:
    """The shapes of some characters that are ASCII, and perhaps all that are not."""
    shapes = {chr(_SHAPE[ord(c)]) for c in characters}
    return f"[{''.join(sorted(map(_escaped, shapes)))}{_FOREIGN if foreign else ''}]"


def _escaped(character: str) -> str:
    return character if character in "0a" else f"\\x{ord(character):02x}"
