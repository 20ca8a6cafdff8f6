"""Compiling and running pattern files.

RE2 decides in linear time, whatever the text is, which patterns of a set occur at all. Where google-re2 is not
installed the same patterns run on Python's `re`: they are written in the syntax both understand, and with `re.ASCII`
the classes mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from typing import Any

import yaml

from flakestorm.core.beside import beside
from flakestorm.core.regex import later

__all__ = [
    "UNSPACED",
    "Document",
    "Matcher",
    "encodable",
    "file_of",
    "loosened",
    "near_words",
    "rows_of",
    "text_of",
    "typed",
]

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
_ASCII = bytes(range(128))
_COUNTER = re.compile(r"\{(\d+),(\d+)\}")
_LARGE = 60


class Document:
    """A text to be searched, encoded once for all patterns.

    Args:
        text: any text; lone surrogates are replaced one for one.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.data = text.encode()
        except UnicodeEncodeError:
            self.text = encodable(text)
            self.data = self.text.encode()
        self.plain = len(self.data) == len(self.text)

    @cached_property
    def foreign(self) -> bytes:
        """All of it that is not ASCII."""
        return self.data.translate(None, _ASCII)

    def characters(self, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The same places in characters.

        Args:
            spans: start and end in bytes, in order and apart.
        """
        if self.plain:
            yield from spans
            return
        data = self.data
        byte = character = 0  # so far; counted on from one to the next
        for start, end in spans:
            character += _length(data[byte:start])
            length = _length(data[start:end])
            yield character, character + length
            character += length
            byte = end


def _length(data: bytes) -> int:
    """How many characters a piece of UTF-8 has."""
    return len(data) if data.isascii() else len(data.decode(errors="ignore"))


class Matcher:
    """Patterns that are asked all at once.

    Args:
        patterns: in RE2 syntax.
        re2: the module `re2`, or None to use Python's `re`.
        together: whether `occurring` will be called; without, no common automaton is built.
        loosely: whether `places` looks for patterns with large counters only where a looser form of them occurs.
    """

    def __init__(
        self, patterns: Iterable[str], *, re2: Any = ..., together: bool = True, loosely: bool = False
    ) -> None:
        module = _re2() if re2 is ... else re2
        sources = list(patterns)
        self._set: Any = None
        self.loose: dict[int, Any] = {}
        self._bytes = module is not None
        if module is None:
            self.compiled: list[Any] = [re.compile(source, re.ASCII) for source in sources]
            return
        options = _options(module)
        self.loose = {
            index: module.compile(loose, options)
            for index, source in enumerate(sources)
            if loosely and (loose := loosened(source))
        }
        self.compiled = [
            _Later(module, source, options) if index in self.loose else module.compile(source, options)
            for index, source in enumerate(sources)
        ]
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
        stretches = ((0, len(data)),) if within is None else within
        loose = self.loose.get(index)
        spans = _spans(self.compiled[index], data, _from_first(loose, data, stretches) if loose else stretches)
        yield from document.characters(spans)

    def spans(self, index: int, document: Document) -> list[tuple[int, int]] | None:
        """Where one pattern occurs: start and end in bytes; None where these are not known."""
        if not self._bytes:
            return None
        return list(_spans(self.compiled[index], document.data, ((0, len(document.data)),)))

    def starting(self, index: int) -> Callable[[bytes, int], int] | None:
        """What says where the match of one pattern that begins at a place ends, in bytes; -1 where there is none.

        None where a text cannot be asked so.
        """
        match = getattr(getattr(self.compiled[index], "_regexp", None), "Match", None) if self._bytes else None
        start = _anchor("ANCHOR_START")
        if match is None or start is None:
            return None

        def end_of(data: bytes, at: int) -> int:
            end: int = match(start, data, at, len(data))[0][1]
            return end

        return end_of


class _Later:
    """A pattern that is compiled when it is first asked: with large counters it takes long, and few texts need it."""

    def __init__(self, module: Any, source: str, options: Any) -> None:
        self._compiled: Callable[[], Any] = lambda: module.compile(source, options)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled(), name)
        setattr(self, name, found)
        return found


def _spans(pattern: Any, data: bytes, stretches: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """As `finditer`, of stretches in bytes.

    It asks what google-re2's `finditer` asks, whose matches take longer to make than to find; where it cannot be asked,
    `finditer` does it.
    """
    anywhere, match = _anchor("UNANCHORED"), getattr(getattr(pattern, "_regexp", None), "Match", None)
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


def _from_first(loose: Any, data: bytes, stretches: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Of stretches what is left from the first place where a looser form of a pattern occurs."""
    for first, last in stretches:
        for start, _ in _spans(loose, data, ((first, last),)):
            yield start, last
            break


def loosened(source: str) -> str | None:
    """A pattern that occurs wherever another one does and has no large counters; None where that has none.

    An automaton has a state for each count, and for each of the counts that are possible at once: on a text never read
    before, most of the time goes into making them.

    Args:
        source: in the syntax that RE2 and Python's `re` share.
    """
    loose = _COUNTER.sub(lambda counts: counts[0] if int(counts[2]) < _LARGE else f"{{{counts[1]},}}", source)
    return None if loose == source else loose


@cache
def _anchor(name: str) -> Any:
    return getattr(getattr(_re2(), "_Anchor", None), name, None)


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
