"""Secrets where a name alone does not say it, or is not written as it is read.

Names that end in `_AUTH`, `_CREDENTIALS` or `_PAT` (which hold words and paths as often), maps and lists under a plural
(`"tokens": {"ann": ...}`, beside which `"tokens": 12` is a count), user and password of a curl, names of fields with
letters written as escapes, and a body that is JSON in base64. Each has a needle of its own that ordinary traffic lacks,
and every pattern is bounded, so a text takes linear time.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from flakestorm.core.regex import later
from flakestorm.tape.naming import SHORTEST, begin_of, field, is_secret_header, is_secret_name

__all__ = ["PARTS", "RARER", "in_base64", "is_hint", "rarer", "telling"]

_SOFT = ("auth", "credentials", "creds", "pat")
_HINTED = tuple(f"_{word}{end}".encode() for word in _SOFT for end in ('"', "\\", "=", "'", ": "))
_PLURALS = tuple(
    word + end
    for word in (b"tokens", b"keys", b"credentials")
    for end in (b'":{', b'": {', b'\\":', b'":[', b'": [', b"': {", b"': [", b": {")
)
_ESCAPES = tuple(b"\\u00%d" % digit for digit in (4, 5, 6, 7))
_CURL = b"curl"
_WHOLE = b"eyj"  # how base64 of {" begins
RARER = (*_HINTED, *_PLURALS, *_ESCAPES, _CURL)
"""One of these, or one of `naming`, in lower case, is in every text that `rarer` finds something in."""
PARTS = tuple(
    (part, tuple(needle for needle in RARER if part in needle))
    for part in (b"_auth", b"_pat", b"cred", b"tokens", b"keys", b"\\u00", _CURL)
)
"""The needles by a part that they have in common; most texts have none of the parts, which is soon seen."""

_COUNTED = b"tokens"
_COUNTS = later(rb"tokens(?:\\{0,3}[\"'])?\s{0,8}:\s{0,8}[{\[]")
_VALUE = rb"(?P<value>[^\s\"'\\<>,;(){}\[\]&]{8,4096}+)"
_SCHEME = rb"(?:(?:bearer|basic|token)[ \t]{1,4})?"
_HINT = later(
    rb"_(?:auth|credentials|creds|pat)(?P<name_end>\\{0,3}[\"'])?[ \t]{0,8}(?P<sign>[:=])[ \t]{0,8}"
    rb"(?P<quote>\\{0,3}[\"'])?" + _SCHEME + _VALUE + rb"(?![(\[{])",
    re.IGNORECASE,
)
_MAP = later(
    rb"(?P<kind>tokens|keys|secrets|passwords|credentials)(?:\\{0,3}[\"'])?\s{0,8}:\s{0,8}"
    rb"(?:\{(?P<map>[^{}]{8,8192}+)\}|\[(?P<list>[^\[\]{}]{8,8192}+)\])"
)
_ENTRY = later(
    rb"(?<![$\w])(?P<entry>[\w.@-]{1,64}+)(?:\\{0,3}[\"'])?\s{0,4}:\s{0,4}\\{0,3}[\"']"
    rb"(?:(?:bearer|basic)[ \t]{1,4})?(?P<value>[^\s\"'\\<>]{8,4096}+)\\{0,3}[\"']",
    re.IGNORECASE,
)
_ITEM = later(rb"\\{0,3}[\"'](?P<value>[^\s\"'\\<>,]{8,4096}+)\\{0,3}[\"']")
_USER = later(
    rb"(?<![\w-])(?:-u|--user|--proxy-user)(?:[ \t]{0,8}|=|\\{0,3}[\"']\s{0,8},\s{0,8})(?:\\{0,3}[\"'])?"
    rb"(?P<user>[^\s:\"'\\<>,;$]{1,256}+):(?P<password>[^\s\"'\\<>]{0,1024}+)"
)
_ESCAPED = later(
    rb"(?<=[\"'])(?P<name>(?:[\w.-]|\\{1,4}u00[2-7][0-9a-f]){2,64}+)(?P<depth>\\{0,3})[\"']"
    rb"[ \t\r\n]{0,8}:[ \t\r\n]{0,8}\\{0,3}(?P<quote>[\"'])"
)
_ESCAPE = later(rb"\\{1,4}u00([0-9a-f]{2})")
_BASE64 = later(rb"[A-Za-z0-9+/_-]{16,65536}+={0,2}\s{0,2}")
_WORDS = later(rb"[a-z]{1,24}(?:[_.\-/:@][a-z]{1,24}){0,7}[.:!?]?", re.IGNORECASE)
_MASK = later(rb"[*x.X#]+|[$%#<{\[].*", re.DOTALL)
_PATH = later(
    rb"(?:[~/.]|[a-z]:\\).*|.*://.*|(?:.*/)?[a-z]{3,24}/.*|.*\.(?:json|ya?ml|pem|toml|env|py|js|ts|txt)", re.DOTALL
)
_NAMED = later(
    rb"(?:.*[_.-])?(?:id|name|type|url|uri|href|path|date|time|at|model|title|format|pattern|version|ref)",
    re.IGNORECASE,
)
_IN_WORDS = frozenset({"pass", "passwd", "pw", "pwd", "pat", "auth", "pass_word", "mypassword", "your_pass"})
_KEYS_OF = ("api", "access", "secret", "private", "auth", "signing", "provider", "encryption")
_LONG = 16


def rarer(text: bytes, lower: bytes) -> Iterator[bytes]:
    """The secrets in a text that stand in one of these places.

    Args:
        lower: the text in lower case.
    """
    here = {part for part, needles in PARTS if part in lower and (part == _COUNTED or _any(needles, lower))}
    if here & {b"_auth", b"_pat", b"cred"}:
        yield from _hinted(text, lower)
    counted = here == {_COUNTED} and not _COUNTS.search(lower)  # what every model says at the end of a reply
    if (here & {_COUNTED, b"keys", b"cred"} and not counted) or b"secrets" in lower or b"passwords" in lower:
        yield from _mapped(text, lower)
    if _CURL in here:
        yield from _of_curl(text, lower)
    if b"\\u00" in here:
        for found in _ESCAPED.finditer(lower):
            if b"\\" in found["name"]:
                name = _ESCAPE.sub(lambda one: bytes.fromhex(one[1].decode()), found["name"]).decode("latin-1")
                if is_secret_header(name):
                    yield from field(text, found, name)


def _any(needles: tuple[bytes, ...], text: bytes) -> bool:
    return any(map(text.__contains__, needles))


def is_hint(name: str) -> bool:
    """Whether a name says that there may be a secret, so what it holds must look like one: NPM_AUTH, GITLAB_PAT."""
    head, _, last = name.lower().rpartition("_")
    return last in _SOFT and bool(head)


def telling(value: bytes) -> bool:
    """Whether a value, under a name that is a hint only, looks like more than words, a path, an address or a mask."""
    return len(value) >= SHORTEST and not any(each.fullmatch(value) for each in (_WORDS, _MASK, _PATH))


def in_base64(text: bytes) -> bytes | None:
    """The JSON that a text is, as a whole, in base64; None where it is something else."""
    if text[:3].lower() != _WHOLE or not _BASE64.fullmatch(text):
        return None
    whole = text.rstrip().rstrip(b"=")
    try:
        return base64.b64decode(
            whole + b"=" * (-len(whole) % 4), altchars=b"-_" if b"-" in whole or b"_" in whole else None
        )
    except ValueError:
        return None


def _hinted(text: bytes, lower: bytes) -> Iterator[bytes]:
    for found in _HINT.finditer(lower):
        value = text[slice(*found.span("value"))]
        if not telling(value) or not _mixed(value):
            continue
        start = begin_of(text, found.start())
        name = text[start : found.start()]
        named = found["name_end"] or found["quote"]
        if named or not name or name.isupper() or name.startswith(b"-") or len(value) >= _LONG:
            yield value


def _mapped(text: bytes, lower: bytes) -> Iterator[bytes]:
    for found in _MAP.finditer(lower):
        kind = found["kind"]
        before = text[begin_of(text, found.start()) : found.start()].lower()
        if kind == b"keys" and not before.rstrip(b"_-").endswith(tuple(map(str.encode, _KEYS_OF))):
            continue
        if before and kind == b"tokens" and not is_secret_name(f"{before.decode('latin-1')}token"):
            continue  # max_tokens
        sure = kind in (b"secrets", b"passwords")
        part = "map" if found["map"] is not None else "list"
        if found[part].count(b":") + found[part].count(b",") > 512:
            continue  # a vocabulary, not a key ring
        for one in (_ENTRY if part == "map" else _ITEM).finditer(text, *found.span(part)):
            value = one["value"]
            if part == "map" and _NAMED.fullmatch(one["entry"]):
                continue
            if telling(value) and (sure or (len(value) >= _LONG and _mixed(value))):
                yield value


def _of_curl(text: bytes, lower: bytes) -> Iterator[bytes]:
    for found in _USER.finditer(text):
        user, password = found["user"], found["password"]
        if not password:  # as APIs have it whose key is the user
            if len(user) >= _LONG and telling(user) and _mixed(user):
                yield user
            continue
        word = password.decode("latin-1").strip("<>[]{}").lower()
        if _MASK.fullmatch(password) or is_secret_name(word) or word in _IN_WORDS or password.isdigit():
            continue  # what to put there, in words; or a user and a group, of another program
        yield user + b":" + password
        yield password


def _mixed(value: bytes) -> bool:
    """Whether there are digits as well as letters."""
    return any(0x30 <= byte <= 0x39 for byte in value) and any(byte | 0x20 in range(0x61, 0x7B) for byte in value)
