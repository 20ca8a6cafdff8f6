"""Lines of text for a terminal or a log: wrapped at a width, perhaps coloured, laid out in columns.

Texts are taken literally. A library of terminal widgets would do this too, but importing one takes longer than drawing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import category, east_asian_width

__all__ = ["Canvas", "cells", "wrapped"]

_CODES = {
    "green": "32", "yellow": "33", "magenta": "35", "cyan": "36", "bold": "1", "bold red": "1;31", "bright_black": "90",
}  # fmt: skip
_WORD = re.compile(r"\S+\s*|\s+")


class Canvas:
    """A text that is written line by line.

    Args:
        width: columns; only what must stay whole is wider.
        color: whether styles are shown. They are `green`, `yellow`, `magenta`, `cyan`, `bold`, `bold red`,
            `bright_black` and the empty one.
    """

    def __init__(self, *, width: int, color: bool) -> None:
        self.width, self._color = width, color
        self._lines: list[str] = []

    def say(self, style: str, text: str, *, indent: int = 0) -> None:
        """One paragraph, wrapped at the width and indented."""
        for line in wrapped(text, max(self.width - indent, 1)):
            self._lines.append(" " * indent + self._styled(style, line))

    def command(self, text: str, *, indent: int = 0) -> None:
        """One line that is never wrapped, so that it can be copied."""
        self._lines.append(" " * indent + self._styled("cyan", text))

    def gap(self) -> None:
        """An empty line."""
        self._lines.append("")

    def table(self, rows: Sequence[Sequence[tuple[str, str]]]) -> None:
        """Rows of (style, text) in columns as wide as their widest text, two spaces apart."""
        widths = [max(cells(text) for _, text in column) for column in zip(*rows, strict=True)]
        for row in rows:
            line = [
                self._styled(style, text) + " " * (width - cells(text))
                for (style, text), width in zip(row, widths, strict=True)
            ]
            self._lines.append("  ".join(line).rstrip())

    def text(self) -> str:
        """All of it, each line with its end."""
        return "".join(f"{line}\n" for line in self._lines)

    def _styled(self, style: str, text: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._color and style and text else text


def cells(text: str) -> int:
    """How many columns a terminal takes for this text."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(char) in ("W", "F") else 1


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken between words; a word too long for a line is broken itself.

    An empty text is one empty line.
    """
    lines, line, used = [], "", 0
    for found in _WORD.finditer(text):
        word, taken = found[0], cells(found[0].rstrip())
        if used and used + taken > width:
            lines.append(line.rstrip())
            line, used = "", 0
        while taken > width:
            head = _fitting(word, width)
            lines.append(head)
            word = word[len(head) :]
            taken = cells(word.rstrip())
        line += word
        used += cells(word)
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _fitting(word: str, width: int) -> str:
    """The beginning of a word that takes at most this many columns, but one character at least."""
    taken = 0
    for at, char in enumerate(word):
        taken += _cells(char)
        if taken > width and at:
            return word[:at]
    return word
