"""What secrets are called: names of fields, headers, query parameters and environment variables, and their values.

`api_key`, `X-Goog-Api-Key`, `accessToken` and `client.secret` hold secrets; `max_tokens`, `monkey`, `sort_key` and
`Idempotency-Key` do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from flakestorm.core.regex import later

__all__ = ["NAME", "NEEDLES", "SHORTEST", "begin_of", "field", "is_secret_header", "is_secret_name", "named"]

SHORTEST = 8
"""A value with fewer characters is a word or a number, not a secret."""

_LONGEST = 16384
_SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-auth", "x-amz-signature"}
)
_SECRET_WORDS = frozenset({"key", "apikey", "accesskey", "pwd", "passphrase", "passcode", "signature", "sig"})
_SECRET_ENDS = ("token", "secret", "password", "passwd", "apikey", "secretkey", "accesskey", "privatekey")
_NOT_SECRET = frozenset(
    {"idempotency", "cache", "partition", "sort", "primary", "public", "foreign", "group", "max", "min", "num"}
)
_HAVE_PASS = frozenset(
    (
        *("db", "database", "sql", "mysql", "pg", "postgres", "redis", "mongo", "amqp", "rabbitmq", "ldap"),
        *("user", "login", "admin", "root", "auth", "basic", "api", "http", "proxy"),
        *("smtp", "imap", "mail", "email", "ftp", "sftp", "ssh"),
    )
)
_QUALIFIERS = frozenset({"prod", "production", "dev", "staging", "test", "live", "base", "value", "old", "new"})
_MANY = 4096  # names remembered at most; they come from strangers
_WORD = later(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")

NEEDLES = (
    *(b"key" + end for end in (b'"', b"\\", b"=", b"'", b": ", b">")),
    *(b"token" + end for end in (b'"', b"\\", b"=", b"'", b": ", b">")),
    *(b"-key ", b"-token ", b"_pass=", b'_pass"', b"_pass\\", b"_pass: "),
    *(b"secret", b"passw", b"passphrase", b"passcode", b'pwd"', b"pwd\\", b"pwd=", b"authorization", b"cookie"),
)
"""One of these, in lower case, is in every text with a name that says there is a secret."""
NAME = rb"(?P<name>(?:key|token|secret|passw(?:or)?d|_pass|pwd|passphrase|passcode|authorization|cookie)[\w.\-]{0,24}+)"
"""The end of a name that says there is a secret, for patterns; `begin_of` finds where it begins."""
_FIELD = later(NAME + rb"(?P<depth>\\*)[\"'][ \t\r\n]{0,8}:[ \t\r\n]{0,8}\\*(?P<quote>[\"'])")
_ASSIGNED = later(NAME + rb"=(?P<value>[^\s&;\"'\\<>,(){}\[\]#]{8,4096})")
_USERINFO = later(rb"://([^/?#\s\"'\\<>@]{1,512})@")
_WORDS = later(rb"[a-z]{1,24}(?:[_.-][a-z]{1,24}){0,4}")
_MASK = later(rb"<[^<>]*>|\[[A-Za-z _-]+\]|[*x.X#]+|\$\{[^{}]*\}|\{\{[^{}]*\}\}")
_SPACED = later(r"pass|secret|pwd|cookie|authorization", re.IGNORECASE)
_SCHEME = later(rb"(?i)(?:bearer|basic|token|apikey|digest)\s+")


@lru_cache(maxsize=_MANY)
def is_secret_name(name: str) -> bool:
    """Whether what goes by this name is a key, token, secret or password of some kind."""
    words = [word.lower() for word in _WORD.findall(name)]
    while len(words) > 1 and (words[-1].isdecimal() or words[-1] in _QUALIFIERS):
        words.pop()
    if not words or _NOT_SECRET.intersection(words):
        return False
    if words[-1] == "pass":  # DB_PASS, smtp_pass; not the first one of a compiler, nor what a test did
        return len(words) > 1 and words[-2] in _HAVE_PASS
    return words[-1] in _SECRET_WORDS or words[-1].endswith(_SECRET_ENDS)


@lru_cache(maxsize=_MANY)
def is_secret_header(name: str) -> bool:
    """Whether a header of this name, as spelled, holds credentials or cookies."""
    return name.lower() in _SECRET_HEADERS or is_secret_name(name) or name.lower().endswith(("-authorization", "-auth"))


def named(text: bytes, lower: bytes) -> Iterator[bytes]:
    """The values in a text that stand in fields, parameters, variables or URLs which say that they are secrets.

    Fields are those of JSON, also of JSON in a string of JSON.

    Args:
        lower: the text in lower case.
    """
    if any(needle in lower for needle in NEEDLES):
        for found in _FIELD.finditer(lower):  # which is as long, and searched in half the time
            name = text[begin_of(text, found.start()) : found.start("depth")].decode("ascii", "replace")
            yield from field(text, found, name)
        for found in _ASSIGNED.finditer(lower):
            yield from _assigned(text, found)
    if b"@" in text and b"://" in text:
        for found in _USERINFO.finditer(text):
            if found[1].startswith(b"[secret:"):
                continue
            yield found[1]
            _, colon, password = found[1].partition(b":")
            if colon:
                yield password


def field(text: bytes, found: re.Match[bytes], name: str) -> Iterator[bytes]:
    """The value of a field of JSON, where that is a secret.

    Args:
        found: from the name to the value's first quote: `depth` (the escapes of the name's) and `quote`.
        name: of the field.
    """
    depth = len(found["depth"])
    if not is_secret_header(name) or name.lower().endswith(("signature", "sig")):
        return
    start, quote = found.end(), found["quote"]
    end = start
    while (end := text.find(quote, end, start + _LONGEST)) >= 0:
        before = end
        while before > start and text[before - 1] == 0x5C:
            before -= 1
        if end - before <= depth:
            break
        end += 1
    if end < 0:
        return
    if name == "token" and b"logprob" in text[end : end + 40]:
        return  # a piece of text, with its probability
    value = text[start:before]
    if _MASK.fullmatch(value):
        return  # somebody took it out already
    if b" " in value and not _SCHEME.match(value) and not _SPACED.search(name):
        return  # keys and tokens are no sentences
    if name.lower() == "key" and _WORDS.fullmatch(value):
        return  # the name of something, as in {"key": "source_url", "value": ...}
    yield _plain(value, depth)
    if scheme := _SCHEME.match(value):
        yield _plain(value[scheme.end() :], depth)


def _assigned(text: bytes, found: re.Match[bytes]) -> Iterator[bytes]:
    start = begin_of(text, found.start())
    before = text[start - 1 : start]
    if before == b"\\":  # a line break, in JSON
        start, before = start + 1, b" "
    name = text[start : found.start("value") - 1].decode("ascii", "replace")
    if is_secret_name(name) and (before in (b"?", b"&", b";", b"") or name.isupper()):
        yield text[slice(*found.span("value"))]


def begin_of(text: bytes, at: int) -> int:
    """Where a name begins, of which a part begins at `at`; at most 64 bytes before."""
    least = max(0, at - 64)
    while at > least and (text[at - 1 : at].isalnum() or text[at - 1] in b"_.-"):
        at -= 1
    return at


def _plain(value: bytes, depth: int) -> bytes:
    """The value that is meant, without the escapes of so many nested strings."""
    if b"\\" not in value:
        return value
    import orjson  # such values are rare

    levels = depth.bit_length() + 1
    for _ in range(levels):
        try:
            value = orjson.loads(b'"' + value + b'"').encode()
        except (orjson.JSONDecodeError, AttributeError, UnicodeEncodeError):
            break
    return value
