"""Secrets in other forms than fields of JSON and parameters of URLs: where programs and people write them else.

Parts of multipart forms, elements of XML, header lines, settings in YAML or a shell's, options of command lines, lists
of pairs of name and value. Of these some are prose as well ("token: required", a list of names), so a value must look
like more than words, or say by its scheme what it is. Every pattern is bounded, so a text takes linear time.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from flakestorm.core.regex import later
from flakestorm.tape.naming import NAME, NEEDLES, SHORTEST, begin_of, is_secret_header, is_secret_name

__all__ = ["basic", "forms"]

_QUOTE = rb"\\{0,3}[\"']"
_VALUE = rb"(?P<value>[^\s\"'\\<>,;(){}\[\]]{8,4096})"
_SCHEME = rb"(?P<scheme>(?:bearer|basic|token|apikey|digest)[ \t]{1,4})?"
_BETWEEN = _QUOTE + rb"\s{0,8},\s{0,8}" + _QUOTE
_NAMES = later(NAME + rb"(?=[:=\"'\\ \t])")
# What follows a name.
_LINE = later(rb":[ \t]{1,8}(?:" + _QUOTE + rb")?" + _SCHEME + _VALUE, re.IGNORECASE)
_COOKIES = later(rb":[ \t]{0,8}(?P<value>[^\r\n\"'\\<>:]{8,4096})")
_QUOTED = later(rb"=" + _QUOTE + _VALUE + _QUOTE)
_SET = later(rb"=" + _VALUE)
_OPTION = later(rb"(?:[ \t]{1,8}|=|" + _BETWEEN + rb")(?:" + _QUOTE + rb")?" + _VALUE)
_PAIR = later(_BETWEEN + _SCHEME + _VALUE + _QUOTE, re.IGNORECASE)
_ENTRY = later(_BETWEEN + rb"value" + _QUOTE + rb"\s{0,8}:\s{0,8}" + _QUOTE + _SCHEME + _VALUE, re.IGNORECASE)
_LIST = later(_QUOTE + rb"\s{0,8}:\s{0,8}\[(?P<value>[^\[\]{}]{8,4096})\]")
# And where the name is found in another way.
_PART = later(rb"name=\"(?P<name>[\w.\-]{1,64})\"(?:[^\r\n]{0,256}+\r?\n){1,6}?\r?\n(?P<value>[^\r\n]{8,4096}+)\r?\n--")
_ELEMENT = later(
    rb"<(?:[\w\-]{1,32}:)?(?P<name>[\w.\-]{3,64}+)(?:\s[^<>]{0,256}+)?>[ \t]{0,64}(?P<value>[^<>\r\n]{8,4096}+)</"
)
_COOKIE = later(rb"=([^;=\s]{8,4096})")
_ITEM = later(_QUOTE + rb"(?:(?:bearer|basic|token)[ \t]{1,4})?([^\s\"'\\]{8,4096})" + _QUOTE, re.IGNORECASE)
_WORDS = later(rb"[a-z]{1,24}(?:[_.\-/:][a-z]{1,24}){0,7}[.:!?]?", re.IGNORECASE)
_MASK = later(rb"[*x.X#]+|\$\S*|%\S*")
_DIGIT = later(rb"[0-9]")
_PASSWORDS = frozenset({"password", "passwd", "pwd"})
_LONG = 16


def forms(text: bytes, lower: bytes) -> Iterator[bytes]:
    """The secrets in a text that are written in one of these forms.

    Args:
        lower: the text in lower case.
    """
    if not any(needle in lower for needle in NEEDLES):
        return
    for found in _NAMES.finditer(lower):
        start = begin_of(text, found.start())
        start += text[start - 1 : start] == b"\\"  # the letter of a line break, in JSON
        name = text[start : found.end()].decode("ascii", "replace")
        if is_secret_header(name.lstrip("-")):
            yield from _after(name, text, found.end())
    for pattern, sign in ((_PART, b"form-data"), (_ELEMENT, b"</")):
        for found in pattern.finditer(text) if sign in lower else ():
            if is_secret_name(found["name"].decode("ascii", "replace")):
                yield found["value"]


def _after(name: str, text: bytes, at: int) -> Iterator[bytes]:
    """What the name is followed by, where that is a secret."""
    sign = text[at : at + 1]
    if name.startswith("-"):
        if (found := _OPTION.match(text, at)) and not found["value"].startswith(b"-") and _telling(found["value"]):
            yield found["value"]
    elif sign == b":":
        if name.lower().endswith("cookie"):
            if found := _COOKIES.match(text, at):
                yield from filter(_telling, _COOKIE.findall(found["value"]))
            return
        found = _LINE.match(text, at) if name.lower() != "key" else None
        if found and (found["scheme"] or (_DIGIT.search(found["value"]) and _telling(found["value"]))):
            yield found["value"]
    elif sign == b"=":
        found = _SET.match(text, at) if name.lower() in _PASSWORDS else None
        found = found or (_QUOTED.match(text, at) if name != "key" else None)
        if found and _telling(found["value"]):
            yield found["value"]
    elif found := _ENTRY.match(text, at):
        if found["scheme"] or _telling(found["value"]):
            yield found["value"]
    elif found := _PAIR.match(text, at):
        value = found["value"]
        if found["scheme"] or (len(value) >= _LONG and _DIGIT.search(value) and _telling(value)):
            yield value
    elif found := _LIST.match(text, at):
        yield from filter(_telling, _ITEM.findall(found["value"]))


def basic(value: str) -> bytes | None:
    """The password in credentials of the scheme `Basic`, without the scheme; None where there is none to be read."""
    try:
        user, colon, password = base64.b64decode(value, validate=True).partition(b":")
    except ValueError:
        return None
    return password if user and colon and len(password) >= SHORTEST and password.isascii() else None


def _telling(value: bytes) -> bool:
    """Whether a value looks like more than words."""
    return not _WORDS.fullmatch(value) and not _MASK.fullmatch(value)
