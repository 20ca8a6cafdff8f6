"""Text in disguise, as a model would read it.

Cheap signs, most of them among the text's words, say which disguises to try; an ordinary text pays for none. What is
decoded is bounded in number and size.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from string import ascii_lowercase as abc
from urllib.parse import unquote

__all__ = ["disclosed"]

_BLOBS = 16  # encoded stretches that are looked at, per text and encoding
_BLOB_CHARS = 16_384
_WORDS = ("ignore", "disregard", "instructions", "previous", "password", "prompt")


def _shift(text: str, by: int) -> str:
    turned = abc[by:] + abc[:by]
    return text.translate(str.maketrans(abc + abc.upper(), turned + turned.upper()))


_MORSE_CODES = """
    .- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --..
    ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----. .-.-.- --..-- ..--..
"""
_MORSE = dict(zip(_MORSE_CODES.split(), abc + "0123456789.,?", strict=True))
_LEET = str.maketrans("013457@$!|", "oieastasil")
# Letters of other alphabets that look like Latin ones and that NFKC leaves as they are.
_ALIKE = str.maketrans("аеорсухіјѕԁһӏԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανι", "aeopcyxijsdhlqwABEZHIKMNOPTYXoavi")
_UNSEEN = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]")
_TAGS = re.compile("[\U000e0020-\U000e007e]+")

_SHIFTED = frozenset(_shift(word, by).encode() for by in range(1, 26) for word in _WORDS)
_BACKWARDS = frozenset(word[::-1].encode() for word in (*_WORDS, "system"))
_SPACED = tuple(mark.join(part) for part in ("gnore", "nstruc", "rompt", "asswor", "ystem") for mark in " ._*|-")
_ODD = re.compile(
    f"{_UNSEEN.pattern}|{_TAGS.pattern}|[\uff01-\uff5e\U0001d400-\U0001d7ff\u2100-\u214f\u1d00-\u1d7f\u24b6-\u24e9]"
    "|[a-z][\u0300-\u036f\u0370-\u052f][a-z]|[a-z][\u0300-\u036f]{2}",
    re.IGNORECASE,
)


def disclosed(text: str, words: Collection[bytes]) -> Iterator[tuple[int, int, str]]:
    """What stretches of a text say when they are decoded: start, end (in characters), plain text.

    Args:
        words: the different words of the text, in lower case; they say which disguises to try.
    """
    for name in _worn(text, words):
        pattern, decode = _STRETCHES[name]
        for count, stretch in enumerate(pattern.finditer(text)):
            if count == _BLOBS:
                break
            plain = decode(stretch[0][:_BLOB_CHARS])
            if plain:
                yield *stretch.span(), plain
    for uncover in _whole(text, words):
        for plain in uncover(text[:_BLOB_CHARS]):
            yield 0, len(text), plain


def _worn(text: str, words: Collection[bytes]) -> Iterator[str]:
    """The encodings that parts of a text may be in."""
    if any(len(word) >= 16 for word in words):
        yield "base64"
        yield "hex"
    elif "\\x" in text or sum(len(word) == 2 and word[0] in b"234567" and word[1] in b"abcdef" for word in words) >= 3:
        yield "hex"
    if any(len(word) == 8 and not word.strip(b"01") for word in words):
        yield "binary"
    if "%" in text:
        yield "percent"
    if "\\u" in text or "&#" in text:
        yield "escapes"
    if "- ." in text or ". -" in text:
        yield "morse"


def _whole(text: str, words: Collection[bytes]) -> Iterator[Callable[[str], Iterator[str]]]:
    """The ways in which a whole text may be written."""
    if not _SHIFTED.isdisjoint(words):
        yield _caesar
    if not _BACKWARDS.isdisjoint(words):
        yield _backwards
    if any(not word.isalpha() and not word.isdigit() and _leet_word(word) for word in words):
        yield _leet
    if sum(len(word) == 1 for word in words) >= 7:
        lower = text.lower()
        if any(word in lower for word in _SPACED):
            yield _spaced
    if not text.isascii() and _ODD.search(text):
        yield _unseen


def _leet_word(word: bytes) -> bool:
    return word.decode().translate(_LEET).startswith(_WORDS)


def _readable(data: bytes) -> str:
    """The bytes as text, or nothing where they are none."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return text if sum(c.isprintable() or c.isspace() for c in text) > 0.9 * len(text) else ""


def _base64(blob: str) -> str:
    code = blob.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _readable(base64.b64decode(code + "=" * (-len(code) % 4)))
    except (binascii.Error, ValueError):
        return ""


def _hex(blob: str) -> str:
    digits = re.sub(r"\\x|0x|[\s:,]", "", blob)
    return _readable(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _binary(blob: str) -> str:
    bits = "".join(blob.split())
    return _readable(bytes(int(bits[place : place + 8], 2) for place in range(0, len(bits) // 8 * 8, 8)))


def _escapes(blob: str) -> str:
    codes = re.findall(r"\\u([0-9A-Fa-f]{4})|&#x([0-9A-Fa-f]{2,5});|&#(\d{2,5});", blob)
    return "".join(chr(int(u or x, 16) if u or x else int(d)) for u, x, d in codes)


def _morse(blob: str) -> str:
    words = re.split(r"\s*/\s*|\s{2,}", blob.strip())
    return " ".join("".join(_MORSE.get(letter, "") for letter in word.split()) for word in words)


def _caesar(text: str) -> Iterator[str]:
    lower = text.lower()
    for by in range(1, 26):
        if any(_shift(word, by) in lower for word in _WORDS):
            yield _shift(text, 26 - by)


def _backwards(text: str) -> Iterator[str]:
    yield text[::-1]
    yield " ".join(word[::-1] for word in text.split())


def _leet(text: str) -> Iterator[str]:
    yield text.translate(_LEET)


def _unseen(text: str) -> Iterator[str]:
    tags = "".join(chr(ord(c) - 0xE0000) for stretch in _TAGS.findall(text) for c in stretch)
    if tags:
        yield tags
    plain = unicodedata.normalize("NFKD", _UNSEEN.sub("", text)).translate(_ALIKE)
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    if plain != text:
        yield plain


def _spaced(text: str) -> Iterator[str]:
    words = re.split(r"\s{2,}|\n", text)
    yield " ".join(re.sub(r"\b(\w)[ ._*|-](?=\w\b)", r"\1", word) for word in words)


_STRETCHES: dict[str, tuple[re.Pattern[str], Callable[[str], str]]] = {
    name: (re.compile(pattern, re.ASCII), decode)
    for name, pattern, decode in (
        ("base64", r"[A-Za-z0-9+/_-]{20,}={0,2}", _base64),
        ("hex", r"(?:(?:\\x|0x)?[0-9A-Fa-f]{2}[\s:,]?){12,}", _hex),
        ("binary", r"(?:[01]{8}\s*){6,}", _binary),
        ("percent", r"(?:%[0-9A-Fa-f]{2}[\w.-]{0,40}){8,}", unquote),
        ("escapes", r"(?:\\u[0-9A-Fa-f]{4}|&#x?[0-9A-Fa-f]{2,5};){6,}", _escapes),
        ("morse", r"(?:[.-]{1,6}[\s/]+){12,}", _morse),
    )
}
