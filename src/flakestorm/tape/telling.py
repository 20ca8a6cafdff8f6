"""Between a tape and a live run: a call as the tape tells it, and a recorded reply as the agent may hear it.

A call is cleaned with the tape's key before it is compared. In a reply, a placeholder becomes the secret again where
this process knows it (from its environment, the config, or the run's own requests); else the agent gets the
placeholder, and what it makes of that compares equal. A secret that the recording learned only later is recognised by
what stands in its place: the key tells whether that is it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import orjson

from flakestorm.core.call import Call, Headers, header
from flakestorm.core.conversation import Conversation
from flakestorm.tape.cleaning import Cleaner, cleaned
from flakestorm.tape.fingerprint import Request
from flakestorm.tape.foreseen import Seen
from flakestorm.tape.model import Exchange, Recorded, repeats
from flakestorm.tape.naming import is_secret_header
from flakestorm.tape.noting import Heads
from flakestorm.tape.redact import REDACTED, SECRET, Redactor, url

__all__ = ["Telling"]

_MARK = SECRET.encode()


class Telling:
    """Tells calls and hears replies, for one replay. Not to be used by two threads at once.

    Args:
        redactor: the tape's (`Tape.redactor`); None for a tape without a key, whose secrets cannot be compared.
    """

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor
        self._live = None if redactor is None else Cleaner(redactor)
        self._taped: Cleaner | None = None
        if redactor is not None:
            self._taped, self._heads = Cleaner(redactor), (Heads(redactor), Heads(redactor))

    def told(self, call: Call) -> Request:
        """A call without its secrets."""
        if self._live is None:
            return Request(call.kind, call.name, call.method, url(call.url), _blank(call.headers), call.body)
        return Request(call.kind, call.name, call.method, *self._live.request(call))

    @property
    def version(self) -> int:
        """Grows when a secret is learned: what was told before might be told otherwise."""
        return 0 if self._redactor is None else self._redactor.version

    def plain(self, call: Call, seen: Seen) -> bool:
        """Whether a call that was foreseen would be told as it is, its head as that of the call before."""
        return self._live is None or self._live.plain(call, seen.before, seen.same, seen.values)

    def taped(self, exchange: Exchange) -> Exchange:
        """A recorded exchange without what only this process knows to be secret."""
        redactor = self._redactor
        if redactor is None or self._taped is None:
            return exchange
        known, (asked, said), headers = redactor.version, self._heads, exchange.reply.headers
        plain = (
            redactor.url(exchange.url) == exchange.url
            and asked.headers(exchange.headers) == exchange.headers
            and said.headers(headers) == headers
        )
        return self._taped.exchange(exchange, known=known if plain else -1, repeats=repeats(exchange))

    def text(self, text: str) -> str:
        """A text without its secrets, e.g. an output."""
        return text if self._redactor is None else cleaned(text, self._redactor)

    def real(self, text: str) -> str:
        """A recorded text, or conversation, with the secrets that are known here."""
        if isinstance(text, Conversation):
            return text.each(self.real)
        return text if self._redactor is None or SECRET not in text else self._redactor.real(text.encode()).decode()

    def said(self, body: bytes) -> bytes:
        """A recorded body with the secrets that are known here."""
        return body if self._redactor is None or _MARK not in body else self._redactor.real(body)

    def heard(self, reply: Recorded) -> Recorded:
        """A recorded reply with the secrets that are known here; the very object where there is none in it."""
        redactor = self._redactor
        if redactor is None:
            return reply
        for chunk in reply.chunks:
            if _MARK in chunk:
                break
        else:
            return reply
        chunks = [redactor.real(chunk) if _MARK in chunk else chunk for chunk in reply.chunks]
        if chunks == reply.chunks:
            return reply
        headers = reply.headers
        if header(headers, "content-length") is not None:
            length = str(sum(map(len, chunks)))
            headers = tuple((n, length) if n.lower() == "content-length" else (n, v) for n, v in headers)
        return replace(reply, chunks=chunks, headers=headers)

    def recognised(self, places: Iterable[tuple[bytes, bytes]]) -> bool:
        """Learn each text that a placeholder of the tape is of; whether there was one.

        Args:
            places: (placeholder, what stands there in the live run) pairs.
        """
        redactor = self._redactor
        if redactor is None:
            return False
        before = redactor.version
        for stands, live in places:
            whole = redactor.real(live)  # a part of it may be known as a secret here
            for secret in {live, whole, _unspelled(whole)}:
                if redactor.placeholder(secret) == stands:
                    redactor.learn(secret)
        return redactor.version != before


def _unspelled(live: bytes) -> bytes:
    """What a piece of a JSON string says."""
    try:
        value = orjson.loads(b'"%b"' % live) if b"\\" in live else live
    except ValueError:
        return live
    return value.encode() if isinstance(value, str) else live


def _blank(fields: Headers) -> Headers:
    return tuple((name, REDACTED) if is_secret_header(name) else (name, value) for name, value in fields)
