"""Secrets are taken out before anything is kept: in memory, in the file, and so in every report made from it.

One function per place where a secret can stand. What stands there instead is `REDACTED`, so a reader sees that
something was sent without seeing what.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter

from flakestorm.core.call import Headers

__all__ = ["REDACTED", "headers", "is_secret_header", "is_secret_name", "url"]

REDACTED = "[redacted]"

_SHORTEST = 8  # a query value shorter than this is a word or a number, not a secret
_SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-auth", "x-amz-signature"}
)
_SECRET_WORDS = frozenset(
    {"key", "apikey", "accesskey", "token", "secret", "password", "passwd", "pwd", "passphrase", "signature", "sig"}
)
_NOT_SECRET = frozenset({"idempotency", "cache", "partition", "sort", "primary", "public"})
_MANY = 4096  # names remembered at most; they come from strangers
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_USERINFO = re.compile(r"(?<=://)[^/?#]*@")
_PARAMETER = re.compile(r"(?<=[?&;])([^=&;#]+)=([^&;#]*)")


@lru_cache(maxsize=_MANY)
def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a secret: it is called a key, token, secret or password of some kind.

    `api_key`, `X-Goog-Api-Key`, `accessToken` and `client.secret` are; `max_tokens`, `monkey`, `sort_key` and
    `Idempotency-Key` are not.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    return bool(words) and words[-1] in _SECRET_WORDS and not _NOT_SECRET.intersection(words)


@lru_cache(maxsize=_MANY)
def is_secret_header(name: str) -> bool:
    """Whether a header of this name, as spelled, holds credentials or cookies."""
    return name.lower() in _SECRET_HEADERS or is_secret_name(name)


@lru_cache(maxsize=256)  # a client sends the same names in the same order, call after call
def _secret_at(names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(at for at, name in enumerate(names) if is_secret_header(name))


_name = itemgetter(0)


def headers(fields: Headers) -> Headers:
    """The fields with the values of credentials and cookies replaced."""
    secret = _secret_at(tuple(map(_name, fields)))
    if not secret:
        return fields
    kept = list(fields)
    for at in secret:
        kept[at] = fields[at][0], REDACTED
    return tuple(kept)


def url(address: str) -> str:
    """The address without user and password, and without the values of parameters named like a secret."""
    if "@" in address:
        address = _USERINFO.sub(f"{REDACTED}@", address, count=1)
    if "=" in address:
        address = _PARAMETER.sub(_parameter, address)
    return address


def _parameter(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    return f"{name}={REDACTED}" if len(value) >= _SHORTEST and is_secret_name(name) else found[0]
