"""The shape of a text: every digit as 0, every letter as a or A.

Patterns of numbers differ in which digits they allow, and an automaton of many of them comes into new states with each
new number. Of shapes there are few. So patterns are widened to shapes, and only those whose shape a text has are asked.
"""

from __future__ import annotations

import re
import string
from functools import cache

from flakestorm.patterns.outline import FLAGS, Token, read, starts

__all__ = ["shape_of", "shaped"]

_SHAPE = bytes.maketrans((string.digits + string.ascii_letters).encode(), b"0" * 10 + b"a" * 26 + b"A" * 26)
_CHARACTERS = [chr(code) for code in range(128)]
_LONG = 12  # repetitions of more are not counted


def shape_of(data: bytes) -> bytes:
    """A text's shape; what is not ASCII stays."""
    return data.translate(_SHAPE)


def shaped(pattern: str, *, at_word: bool, to_word: bool) -> str:
    """A pattern that occurs in a text's shape wherever the pattern occurs in the text.

    Args:
        pattern: in the syntax that RE2 and Python's `re` share.
        at_word: whether no letter or digit may stand in front of a match.
        to_word: whether none may stand behind it.
    """
    flags = "".join(FLAGS.findall(pattern))
    branches, _ = read(FLAGS.sub("", pattern), 0)
    before = "\\b" if at_word and all(map(starts, branches)) else ""
    behind = "\\b" if to_word and all(starts(branch[::-1]) for branch in branches) else ""
    return before + _either(branches, flags) + behind


def _either(branches: tuple[tuple[Token, ...], ...], flags: str) -> str:
    texts = dict.fromkeys("".join(_widened(token, flags) for token in branch) for branch in branches)
    return f"(?:{'|'.join(texts)})"


def _widened(token: Token, flags: str) -> str:
    inner = _either(token.branches, flags) if token.branches else _class(token.atom, flags)
    if token.most == token.least and token.most <= _LONG:
        return inner if token.most == 1 else f"{inner}{{{token.least}}}"
    if token.most > _LONG:
        return f"{inner}*" if not token.least else f"{inner}{{{min(token.least, _LONG)},}}"
    return f"{inner}{{{token.least},{token.most}}}"


@cache
def _class(atom: str, flags: str) -> str:
    """The shapes of all characters that an atom stands for."""
    if atom in ("^", "$", "\\b", "\\B"):
        return atom
    matches = re.compile(flags + atom, re.ASCII).fullmatch
    shapes = {chr(_SHAPE[ord(c)]) for c in _CHARACTERS if matches(c)}
    foreign = "\x80-\U0010ffff" if not atom.isascii() or matches("\u0394") else ""
    if len(shapes) == 1 and not foreign:
        return re.escape(shapes.pop())
    return f"[{''.join(sorted(map(_escaped, shapes)))}{foreign}]"


def _escaped(character: str) -> str:
    return character if character in "0aA" else f"\\x{ord(character):02x}"
