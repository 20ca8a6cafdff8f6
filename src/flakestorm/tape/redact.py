"""Secrets are taken out before anything is kept, in the file and in every report made from it.

A secret becomes `[secret:1a2b3c4d]`, the start of its HMAC under the tape's key: equal secrets stay equal on a tape and
different ones different, so a call with another credential does not match a recorded one. What is a secret is told by
its shape (`shapes`) or its name (`naming`), by the environment, and by the config; once known, it is taken out wherever
it occurs. Cleaning what is clean changes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from flakestorm.core.call import Headers
from flakestorm.core.regex import later
from flakestorm.tape.delta import Span, replaced
from flakestorm.tape.forms import basic, forms
from flakestorm.tape.naming import SHORTEST, is_secret_header, is_secret_name, named
from flakestorm.tape.patterns import Patterns
from flakestorm.tape.rarer import in_base64, is_hint, rarer, telling
from flakestorm.tape.shapes import shaped
from flakestorm.tape.suspicion import suspicious

__all__ = ["REDACTED", "SECRET", "Redactor", "is_secret_header", "is_secret_name", "key_of", "secrets_of", "url"]

REDACTED = "[redacted]"
"""What stands for a secret where there is no tape."""

SECRET = "[secret:"  # noqa: S105
"""How every placeholder begins."""

_NOT_VARIABLES = frozenset({"PWD", "OLDPWD"})
_MANY = 4096  # texts remembered at most
_MANY_BLOCKS = 256  # and blocks of headers
_MANY_SECRETS = 4096  # a run with more is under attack by its tools; what comes after is taken out where it stands
_USERINFO = later(r"(?<=://)[^/?#]*@")
_PARAMETER = later(r"(?<=[?&;])([^=&;#]+)=([^&;#]*)")
_CREDENTIAL = later(r"((?:[A-Za-z][A-Za-z0-9-]*\s+)?)(\S.*)", re.DOTALL)
_COOKIE = later(r"([^=;\s]+)=([^;]*)")
_PLACEHOLDER = later(rb"\[secret:[0-9a-f]{8}\]")
_PLACED = later(r"\[secret:[0-9a-f]{8}\]")
# Words of the protocols themselves: a field `key` that holds one of them does not make it a secret.
_COMMON = frozenset(
    b"messages contents assistant function functions arguments parameters tool_calls tool_call tool_use tool_result "
    b"response responses choices finish_reason completion streaming username password authorization api_key "
    b"properties required description additionalproperties application/json undefined structuredcontent".split()
)


class Redactor:
    """Takes secrets out of what belongs to one tape, and learns them on the way.

    Args:
        key: the tape's key; that of nothing in particular where there is none (see `key_of`).
        known: secrets that are known beforehand; by default those of this process's environment.
        patterns: of the config (`boundary.redact`).
    """

    def __init__(
        self, key: str | None = None, *, known: Iterable[str] | None = None, patterns: Iterable[str] = ()
    ) -> None:
        self.key = key_of() if key is None else key
        self.version = 0
        """How many secrets have been learned; what was cleaned under an earlier number may need it again."""
        self.patterns = Patterns(patterns)
        self._known: dict[bytes, bytes] = {}
        self._secrets: dict[bytes, bytes] = {}
        self._ordered: tuple[bytes, ...] = ()
        self._clean: dict[str, str] = {}
        self._urls: dict[str, str] = {}
        self._blocks: dict[Headers, Headers] = {}
        self._credentials: dict[tuple[str, str], str] = {}
        self.longest = 0
        """The length of the longest secret known, in bytes."""
        for secret in _own_secrets() if known is None else known:
            self.learn(secret.encode("utf-8", "surrogatepass"))

    def placeholder(self, secret: bytes) -> bytes:
        """What stands for this secret."""
        return b"[secret:%b]" % hmac.digest(self.key.encode(), secret, "sha256").hex()[:8].encode()

    def learn(self, secret: bytes) -> None:
        """From now on this is taken out wherever it occurs, also as JSON and URLs spell it."""
        if len(secret) < SHORTEST or secret in self._known or len(self._known) >= _MANY_SECRETS:
            return
        if secret.lower() in _COMMON or SECRET.encode() in secret:
            return
        stands = self.placeholder(secret)
        if _spelled_alike(secret):
            self._secrets.setdefault(stands, secret)
        for spelled in _spellings(secret):
            self._known.setdefault(spelled, stands)
        self._ordered = tuple(sorted(self._known, key=len, reverse=True))
        self.longest = len(self._ordered[0])
        self.version += 1
        self._clean.clear()
        self._urls.clear()
        self._blocks.clear()

    def discover(self, text: bytes) -> None:
        """Learn the secrets that this text gives away: by their shapes and names, and by the config."""
        if self.patterns:
            for secret in self.patterns.secrets(text):
                self.learn(secret)
        if not suspicious(text):
            return
        lower = text.lower()
        for secret in shaped(text, lower):
            self.learn(secret)
        for secret in chain(named(text, lower), forms(text, lower), rarer(text, lower)):
            self.learn(secret)
            if b"%" in secret:
                self.learn(unquote_to_bytes(secret))
        if (inner := in_base64(text)) is not None:
            known = self.version
            self.discover(inner)
            if self.version != known or self.spans(inner):
                self.learn(text.rstrip())  # as a whole: a placeholder in the middle of it would be no base64

    def silent(self, text: bytes) -> bool:
        """Whether there is plainly nothing in a text: no known secret, and nothing that may be one."""
        for secret in self._ordered:
            if secret in text:
                return False
        return not suspicious.match(text)

    def spans(self, text: bytes, start: int = 0, end: int | None = None) -> list[Span]:
        """Where known secrets stand in this part of a text, in order; the longest where they overlap."""
        here = [secret for secret in self._ordered if text.find(secret, start, end) >= 0]
        if not here and not self.patterns:
            return []
        found: list[Span] = []
        for secret in here:
            at, stands = start, self._known[secret]
            while (at := text.find(secret, at, len(text) if end is None else end)) >= 0:
                over = at + len(secret)
                if not any(at < taken[1] and over > taken[0] for taken in found):
                    found.append((at, over, stands))
                at = over
        for at, over in self.patterns.places(text):
            if not any(at < taken[1] and over > taken[0] for taken in found):
                found.append((at, over, self.placeholder(text[at:over])))
        return sorted(found)

    def body(self, data: bytes) -> bytes:
        """A body without secrets; the very object where there are none."""
        if not data:
            return data
        self.discover(data)
        return replaced(data, self.spans(data))

    def text(self, text: str) -> str:
        """A text without secrets, e.g. an output or a reason."""
        if len(text) < SHORTEST:
            return text
        known = self._clean.get(text)
        if known is None:
            data = text.encode("utf-8", "surrogatepass")
            cleaned = self.body(data)
            known = text if cleaned is data else cleaned.decode("utf-8", "surrogatepass")
            _keep(self._clean, text, known)
        return known

    def maybe(self, text: str | None) -> str | None:
        """As `text`, for what may not be there."""
        return None if text is None else self.text(text)

    def hidden(self, text: str) -> str:
        """As `text`, with `REDACTED` for every secret: the same whatever the key is."""
        return _PLACED.sub(REDACTED, self.text(text))

    def real(self, data: bytes) -> bytes:
        """The inverse of `body`, as far as the secrets are known, and spelled in JSON as they are."""
        return _PLACEHOLDER.sub(lambda found: self._secrets.get(found[0], found[0]), data)

    def headers(self, fields: Headers) -> Headers:
        """The fields without credentials, cookies and other secrets."""
        known = self._blocks.get(fields)
        if known is None:
            known = self._headers(fields)
            if len(self._blocks) >= _MANY_BLOCKS:
                self._blocks.clear()
            self._blocks[fields] = self._blocks[known] = known
        return known

    def _headers(self, fields: Headers) -> Headers:
        clean, kept = self._clean, None
        for at in _secret_at(tuple(map(_name, fields))):
            kept = list(fields) if kept is None else kept
            kept[at] = fields[at][0], self._credential(*fields[at])
        now = fields if kept is None else kept
        fresh = [value for _, value in now if len(value) >= SHORTEST and value not in clean]
        if len(fresh) > 1 and self.text(joined := "\n".join(fresh)) is joined:  # most often nothing is in any of them
            if len(clean) >= _MANY:
                clean.clear()
            clean.update(zip(fresh, fresh, strict=True))
        for at, (name, value) in enumerate(now):
            if len(value) >= SHORTEST and (new := self.text(value)) != value:
                kept = list(fields) if kept is None else kept
                kept[at] = name, new
        return fields if kept is None else tuple(kept)

    def url(self, address: str) -> str:
        """The address without user and password, and without the values of parameters named like a secret."""
        known = self._urls.get(address)
        if known is None:
            known = address
            if "@" in known:
                known = _USERINFO.sub(lambda found: f"{self._stands(found[0][:-1])}@", known, count=1)
            if "=" in known:
                known = _PARAMETER.sub(self._parameter, known)
            known = self.text(known)
            _keep(self._urls, address, known)
        return known

    def _parameter(self, found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        return f"{name}={self._stands(value)}" if len(value) >= SHORTEST and is_secret_name(name) else found[0]

    def _credential(self, name: str, value: str) -> str:
        kind = name.lower()
        known = self._credentials.get((kind, value))
        if known is None:
            if "cookie" in kind:
                known = _COOKIE.sub(self._cookie, value, count=1 if kind == "set-cookie" else 0)
            else:
                scheme, secret = _CREDENTIAL.fullmatch(value).groups() if value.strip() else (value, "")  # type: ignore[union-attr]
                if scheme.lower().strip() == "basic" and (password := basic(secret)):
                    self.learn(password)  # a server may well tell it back, in plain
                known = scheme + self._stands(secret) if secret else value
            _keep(self._credentials, (kind, value), known)
        return known

    def _cookie(self, found: re.Match[str]) -> str:
        return f"{found[1]}={self._stands(found[2])}" if found[2] else found[0]

    def _stands(self, secret: str) -> str:
        data = secret.encode("utf-8", "surrogatepass")
        if _PLACEHOLDER.fullmatch(data):
            return secret
        self.learn(data)
        user, colon, password = data.partition(b":")
        if colon and user and b"/" not in user:
            self.learn(password)
        plain = unquote_to_bytes(data) if "%" in secret else data
        self.learn(plain)
        return self.placeholder(plain).decode()


def key_of(*facts: object) -> str:
    """The key of what these facts tell apart from others, e.g. a seed or a tape's header.

    It stands on the tape for everybody to read, so it need not be a surprise; being made of facts, it lets the same run
    give the same tape.
    """
    return hashlib.sha256(repr(facts).encode("utf-8", "replace")).hexdigest()[:32]


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """The secrets among the values of environment variables: of those named like one, and passwords in URLs."""
    found = []
    for name, value in environ.items():
        if len(value) < SHORTEST or name in _NOT_VARIABLES:
            continue
        if is_secret_name(name) or (is_hint(name) and telling(value.encode("utf-8", "surrogatepass"))):
            found.append(value)
        elif "@" in value and (userinfo := _USERINFO.search(value)):
            user, colon, password = userinfo[0][:-1].partition(":")
            found.append(password if colon else user)
    return found


def url(address: str) -> str:
    """An address to be shown where there is no tape, with `REDACTED` for what is secret in it."""
    if "@" in address:
        address = _USERINFO.sub(f"{REDACTED}@", address, count=1)
    return _PARAMETER.sub(_hidden, address) if "=" in address else address


def _hidden(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    return f"{name}={REDACTED}" if len(value) >= SHORTEST and is_secret_name(name) else found[0]


_own: tuple[dict[Any, Any], list[str]] = {}, []


def _own_secrets() -> list[str]:
    """Those of this process's environment, looked for anew when it has changed."""
    global _own
    raw = getattr(os.environ, "_data", None)  # as the system has them: reading each variable takes ten times as long
    if raw is None:
        return secrets_of(os.environ)
    known, secrets = _own
    if raw != known:
        known, secrets = _own = dict(raw), secrets_of(os.environ)
    return secrets


def _spellings(secret: bytes) -> set[bytes]:
    """The secret as it is, as in JSON, as in JSON within JSON, and as in a URL."""
    found = {secret}
    if secret.isalnum():
        return found
    found.add(quote(secret, safe="").encode())
    found.add(quote(secret).encode())
    text = secret.decode("utf-8", "replace")
    if '"' in text or "\\" in text or "/" in text or not text.isascii() or not text.isprintable():
        import json

        once = [json.dumps(text, ensure_ascii=ascii_)[1:-1] for ascii_ in (True, False)]
        once.append(once[0].replace("/", "\\/"))
        twice = [json.dumps(spelled)[1:-1] for spelled in once]
        found.update(spelled.encode("utf-8", "surrogatepass") for spelled in (*once, *twice))
    return found


def _spelled_alike(secret: bytes) -> bool:
    """Whether JSON spells it as it is."""
    return secret.isalnum() or (secret.isascii() and secret.decode().isprintable() and not {34, 92} & {*secret})


def _keep(memory: dict, key: object, value: str) -> None:  # type: ignore[type-arg]
    if len(memory) >= _MANY:
        memory.clear()
    memory[key] = value


@lru_cache(maxsize=256)  # a client sends the same names in the same order, call after call
def _secret_at(names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(at for at, name in enumerate(names) if is_secret_header(name))


_name = itemgetter(0)
