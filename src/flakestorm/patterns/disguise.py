"""Text in disguise, as a model would read it.

Signs that are looked for in one pass with other patterns (`everywhere.py`) say which disguises to try; an ordinary text
pays for none. What is decoded is bounded in number and size.
"""

from __future__ import annotations

import binascii
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from string import ascii_lowercase as abc
from urllib.parse import unquote

from flakestorm.core.regex import later
from flakestorm.patterns.engine import Document, Matcher

__all__ = ["ENCODED", "WHOLE", "disclosed"]

_BLOBS = 16  # encoded stretches with text in them that are looked at, per text and encoding
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
_OF_BASE64 = bytes(97 if chr(c) in abc + abc.upper() + "0123456789+/_-" else 32 for c in range(256))
_RUN = b"a" * 20
_SAFE = str.maketrans("-_", "+/")
_CODE = [*abc.upper(), *abc, *"0123456789", "+\\-", "/_"]  # what base64 writes for 0 to 63
_LEET = str.maketrans("013457@$!|", "oieastasil")
# Letters of other alphabets that look like Latin ones and that NFKC leaves as they are.
_ALIKE = str.maketrans("аеорсухіјѕԁһӏԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανι", "aeopcyxijsdhlqwABEZHIKMNOPTYXoavi")
_BETWEEN_ANY = "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
_UNSEEN = re.compile(f"{_BETWEEN_ANY}|[\ufe00-\ufe0f]")  # the last say how an emoji looks: a sign only within words
_TAGS = re.compile("[\U000e0020-\U000e007e]+")


def disclosed(
    document: Document,
    signs: Mapping[int, list[tuple[int, int]]] | None = None,
    encoded: Iterable[int] | None = None,
) -> Iterator[tuple[int, int, str]]:
    """What stretches of a text say when they are decoded: start, end (in characters), plain text.

    Args:
        signs: which of the patterns in `WHOLE` may occur, each with where it may lie, in bytes; default: all.
        encoded: which of the patterns in `ENCODED` occur; default: all.
    """
    stretches, whole = _matchers()
    for sign in range(len(ENCODED)) if encoded is None else encoded:
        runs = stretches.places(sign, document) if sign else document.characters(_runs(document.data))
        decode = _DECODERS[sign]
        found = ((start, end, decode(document.text[start : min(end, start + _BLOB_CHARS)])) for start, end in runs)
        yield from islice((stretch for stretch in found if stretch[2]), _BLOBS)
    everywhere = [(0, len(document.data))]
    for sign in range(len(WHOLE)) if signs is None else sorted(signs):
        if any(True for _ in whole.places(sign, document, signs[sign] if signs else everywhere)):
            for plain in _READERS[sign](document.text[:_BLOB_CHARS]):
                yield 0, len(document.text), plain


def _readable(data: bytes) -> str:
    """The bytes as text, or nothing where they are none."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    if text.isprintable():
        return text
    return text if sum(c.isprintable() or c.isspace() for c in text) > 0.9 * len(text) else ""


def _runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Where the pattern of base64's stretches occurs and may have text in it: most texts have many that have none."""
    runs = data.translate(_OF_BASE64)
    at = runs.find(_RUN)
    while at >= 0:
        end = runs.find(b" ", at)
        end = len(runs) if end < 0 else end
        if _BASE64.match(data, at):
            yield at, end + len(data[end : end + 2]) - len(data[end : end + 2].lstrip(b"="))
        at = runs.find(_RUN, end)


def _base64(blob: str) -> str:
    code = blob.rstrip("=").translate(_SAFE)
    try:
        return _readable(binascii.a2b_base64(code + "=" * (-len(code) % 4)))
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


def _utf8_in_base64() -> str:
    """A pattern of base64 that has a text in it: what the first fifteen bytes of UTF-8 may be (RFC 4648, RFC 3629).

    Hardly any path, name or number is that. Four signs are three bytes, and the first, second and third sign show of
    one byte each whether it is a character, goes on with one or begins a longer one.
    """

    def those(of: tuple[int, ...], divisor: int) -> str:
        """The signs in which the two highest bits of a byte, at this place, are some of these."""
        return f"[{''.join(sign for value, sign in enumerate(_CODE) if value // divisor % 4 in of)}]"

    kinds = (0b00, 0b01), (0b10,), (0b11,)
    character, inner, first = ([those(kind, divisor) for divisor in (16, 4, 1)] for kind in kinds)
    any_sign = "[A-Za-z0-9+/_-]"  # the fourth, or what need not be looked at: behind an inner byte may be any
    third = f"(?:{character[2]}|{first[2]})"
    begun = f"{character[0]}(?:{character[1]}{third}|{first[1]}{inner[2]})|[w-z0-9]{inner[1]}{any_sign}"
    group = f"{inner[0]}(?:{character[1]}{third}|{inner[1]}{any_sign}|{first[1]}{inner[2]})|{begun}"
    return f"(?:{begun}){any_sign}(?:(?:{group}){any_sign}){{4}}"


def _utf8_in_hex() -> str:
    """A pattern of hexadecimal digits that begin with six characters; the hash of something seldom does."""
    own, inner = "[0-7][0-9A-Fa-f]", "[89ABab][0-9A-Fa-f]"
    two, three = f"[CDcd][0-9A-Fa-f]{inner}", f"[Ee][0-9A-Fa-f]{inner}{inner}"
    four = f"[Ff][0-4]{inner}{inner}{inner}"
    return f"(?:^|[^0-9A-Fa-f])(?:{own}|{two}|{three}|{four}){{6}}"


def _any_word(words: Iterable[str]) -> str:
    return rf"(?i)\b(?:{'|'.join(sorted(words))})"


def _leet_words(word: str) -> Iterator[str]:
    """What a word in leetspeak may begin with: patterns with at least one digit."""
    digits = {chr(letter): chr(sign) for sign, letter in _LEET.items() if chr(sign).isdigit()}
    for place, letter in enumerate(word):
        if letter in digits:
            rest = "".join(f"[{c}{digits[c]}]" if c in digits else c for c in word[place + 1 :])
            yield word[:place] + digits[letter] + rest


_SHIFTED = (_shift(word, by) for by in range(1, 26) for word in _WORDS)
_BACKWARDS = (word[::-1] for word in (*_WORDS, "system"))
_SPACED = (mark.join(part) for part in ("gnore", "nstruc", "rompt", "asswor", "ystem") for mark in " ._*|-")

_UTF8_IN_BASE64 = _utf8_in_base64()
_BASE64 = later(_UTF8_IN_BASE64.encode())

# Name -> a sign that makes a closer look worth while, where to look, how to read it. A sign is asked of every text, and
# where to look takes many times as long to find out: so signs ask for nearly all that there must be.
_STRETCHES: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "base64": (rf"(?:^|[^A-Za-z0-9+/_-]){_UTF8_IN_BASE64}", r"[A-Za-z0-9+/_-]{20,}={0,2}", _base64),
    "hex": (
        rf"{_utf8_in_hex()}|(?:(?:\\x|0x)[0-9A-Fa-f]{{2}}[\s:,]?){{6}}|\b(?:[2-7][0-9A-Fa-f][\s:,]){{6}}",
        r"(?:(?:\\x|0x)?[0-9A-Fa-f]{2}[\s:,]?){12,}",
        _hex,
    ),
    "binary": (r"(?:[01]{8}\s*){6}", r"(?:[01]{8}\s*){6,}", _binary),
    "percent": (r"(?:%[0-9A-Fa-f]{2}[\w.-]*){8}", r"(?:%[0-9A-Fa-f]{2}[\w.-]*){8,}", unquote),
    "escapes": (
        r"(?:\\u[0-9A-Fa-f]{4}|&#x?[0-9A-Fa-f]{2,5};){6}",
        r"(?:\\u[0-9A-Fa-f]{4}|&#x?[0-9A-Fa-f]{2,5};){6,}",
        _escapes,
    ),
    "morse": (r"(?:[.-]{1,6}[\s/]+){12}", r"(?:[.-]{1,6}[\s/]+){12,}", _morse),
}
# The same for ways in which a whole text is written.
_WHOLE: dict[str, tuple[str, Callable[[str], Iterator[str]]]] = {
    "caesar": (_any_word(_SHIFTED) + r"\b", _caesar),
    "backwards": (_any_word(_BACKWARDS) + r"\b", _backwards),
    "leet": (_any_word(start for word in _WORDS for start in _leet_words(word)), _leet),
    "spaced": (f"(?i){'|'.join(map(re.escape, _SPACED))}", _spaced),
    "unseen": (
        f"{_BETWEEN_ANY}|[A-Za-z][\ufe00-\ufe0f]+[A-Za-z]|{_TAGS.pattern}|[\uff01-\uff5e\U0001d400-\U0001d7ff\u2100-\u214f\u1d00-\u1d7f]"
        "|[\u24b6-\u24e9]|[A-Za-z][\u0300-\u052f][A-Za-z]|[A-Za-z][\u0300-\u036f]{2}",
        _unseen,
    ),
}
WHOLE = tuple(sign for sign, _ in _WHOLE.values())
"""Patterns that occur where a whole text may be written in some way."""

ENCODED = tuple(sign for sign, _, _ in _STRETCHES.values())
"""Patterns that occur where a stretch of a text may be encoded in some way."""

_DECODERS = [decode for _, _, decode in _STRETCHES.values()]
_READERS = [read for _, read in _WHOLE.values()]


@cache
def _matchers() -> tuple[Matcher, Matcher]:
    """The stretches that may be encoded, and the signs of texts that are written in some way."""
    stretches = [stretch for _, stretch, _ in _STRETCHES.values()]
    return Matcher(stretches, together=False), Matcher(WHOLE, together=False)
