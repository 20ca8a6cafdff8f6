"""The shape of a text: every digit as 0, every letter as a.

Patterns of numbers differ in which digits they allow, but have few shapes. So patterns are widened to shapes, and only
those are asked that may have the shape of a text (`prefilter.py`).
"""

from __future__ import annotations

import re
import string
from functools import cache

from flakestorm.patterns.outline import FLAGS, Token, read

__all__ = ["shape_of", "shaped"]

_SHAPE = bytes.maketrans((string.digits + string.ascii_letters).encode(), b"0" * 10 + b"a" * 52)
_CHARACTERS = [chr(code) for code in range(128)]


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
    shapes = {chr(_SHAPE[ord(c)]) for c in _CHARACTERS if matches(c)}
    foreign = "\x80-\U0010ffff" if not atom.isascii() or matches("\u0394") else ""
    if len(shapes) == 1 and not foreign:
        return re.escape(shapes.pop())
    return f"[{''.join(sorted(map(_escaped, shapes)))}{foreign}]"


def _escaped(character: str) -> str:
    return character if character in "0a" else f"\\x{ord(character):02x}"
