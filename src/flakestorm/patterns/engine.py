"""Compiling and running pattern files.

RE2 decides in linear time, whatever the text is, which patterns of a set occur at all. Where google-re2 is not
installed the same patterns run on Python's `re`: they are written in the syntax both understand, and with `re.ASCII`
the classes mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import yaml

from flakestorm.core.beside import beside
from flakestorm.core.regex import later

__all__ = ["UNSPACED", "Document", "Matcher", "encodable", "file_of", "near_words", "rows_of", "text_of", "typed"]

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"
    "\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
)
"""Letters of scripts that put no space between words (Thai to Khmer, Chinese, Japanese) or between a word and its
particle (Korean), for a character class: next to one of them a word or number ends."""
_EDGES = rf"(?:(?<!\w)|(?<=(?-i:[{UNSPACED}])))", rf"(?:(?!\w)|(?=(?-i:[{UNSPACED}])))"
"""What stands around a whole word. Without `(?-i:` Python compiles the class for hundreds of times as long."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_MEMORY_BYTES = 64 << 20


class Document:
    """A text to be searched, encoded once for all patterns.

    Args:
        text: any text; lone surrogates are replaced one for one.
    """

    def __init__(self, text: str) -> None:
        self.text = encodable(text)
        self.data = self.text.encode()
        self.plain = len(self.data) == len(self.text)

    def characters(self, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The same places in characters.

        Args:
            spans: start and end in bytes, in order and apart.
        """
        if self.plain:
            yield from spans
            return
        byte = character = 0  # so far; counted on from one to the next
        for start, end in spans:
            character += len(self.data[byte:start].decode(errors="ignore"))
            length = len(self.data[start:end].decode(errors="ignore"))
            yield character, character + length
            character += length
            byte = end


class Matcher:
    """Patterns that are asked all at once.

    Args:
        patterns: in RE2 syntax.
        re2: the module `re2`, or None to use Python's `re`.
        together: whether `occurring` will be called; without, no common automaton is built.
    """

    def __init__(self, patterns: Iterable[str], *, re2: Any = ..., together: bool = True) -> None:
        module = _re2() if re2 is ... else re2
        sources = list(patterns)
        self._set: Any = None
        self._bytes = module is not None
        if module is None:
            self.compiled: list[Any] = [re.compile(source, re.ASCII) for source in sources]
            return
        options = _options(module)
        self.compiled = [module.compile(source, options) for source in sources]
        if not together:
            return
        self._set = module.Set.SearchSet(options)
        for source in sources:
            self._set.Add(source)
        self._set.Compile()
        self._set.Match("the automaton is built on first use")

    def occurring(self, text: str | bytes) -> list[int]:
        """The indexes of the patterns that occur in the text, ascending. The text must be encodable as UTF-8."""
        if self._set is None:
            text = text if isinstance(text, str) else text.decode()
            return [index for index, pattern in enumerate(self.compiled) if pattern.search(text)]
        return sorted(self._set.Match(text) or ())  # None, not [], where nothing occurs

    def places(
        self, index: int, document: Document, within: Iterable[tuple[int, int]] | None = None
    ) -> Iterator[tuple[int, int]]:
        """Where one pattern occurs: start and end in characters.

        Args:
            within: only in these stretches, in bytes.
        """
        if not self._bytes:
            for match in self.compiled[index].finditer(document.text):
                yield match.span()
            return
        data = document.data
        spans = _spans(self.compiled[index], data, ((0, len(data)),) if within is None else within)
        yield from document.characters(spans)


def _spans(pattern: Any, data: bytes, stretches: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """As `finditer`, of stretches in bytes.

    It asks what google-re2's `finditer` asks, whose matches take longer to make than to find; where it cannot be asked,
    `finditer` does it.
    """
    anywhere, match = _anywhere(), getattr(getattr(pattern, "_regexp", None), "Match", None)
    for first, last in stretches:
        at, last = first, min(last, len(data))
        if anywhere is None or match is None:
            yield from (found.span() for found in pattern.finditer(data, at, last))
            continue
        while at <= last:
            start, end = match(anywhere, data, at, last)[0]
            if start < 0:
                break
            yield start, end
            at = end if end > at else at + 1


@cache
def _anywhere() -> Any:
    return getattr(getattr(_re2(), "_Anchor", None), "UNANCHORED", None)


def text_of(file: str) -> str:
    """A file of this package as it is."""
    return beside("patterns", file).read_text(encoding="utf-8")


def file_of(file: str) -> Any:
    """What a pattern file of this package holds."""
    return yaml.load(text_of(file), Loader=_LOADER)  # noqa: S506 - a safe loader, and our own file


def rows_of(file: str) -> list[dict[str, Any]]:
    """The entries of a pattern file of this package that is a list."""
    rows: list[dict[str, Any]] = file_of(file)
    return rows


def near_words(words: list[str] | None) -> re.Pattern[str] | None:
    """A pattern that finds any of these words as whole words, in any case; None for no words."""
    if not words:
        return None
    before, behind = _EDGES
    return later(f"{before}(?:{'|'.join(map(re.escape, words))}){behind}", re.IGNORECASE)


def encodable(text: str) -> str:
    """The text with lone surrogates, which have no UTF-8, replaced one for one, so that positions stay."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", "\ufffd", text)
    return text


_TYPED = dict.fromkeys("\u00a0\u2002\u2003\u2007\u2008\u2009\u200a\u202f\u3000", " ") | dict.fromkeys(
    "\u2010\u2011\u2012\u2013\u2212", "-"
)
_WIDE = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_TELLING_WIDE = "\uff20\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19"  # @ and digits


def typed(text: str) -> str:
    """The text with hyphens, spaces, digits and letters as a keyboard has them, one for one, so that positions stay.

    Models like to write numbers with hyphens and spaces that do not break, and there are digits of full width. A dash
    between words stays: it belongs to no number.
    """
    if text.isascii():
        return text
    for character, plain in _TYPED.items():
        if character in text:
            text = text.replace(character, plain)
    return text.translate(_WIDE) if any(character in text for character in _TELLING_WIDE) else text


def _options(module: Any) -> Any:
    options = module.Options()
    options.max_mem = _MAX_MEMORY_BYTES
    options.log_errors = False
    return options


def _re2() -> Any:
    try:
        import re2
    except ImportError:
        return None
    return re2
