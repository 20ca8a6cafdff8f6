"""Changing what a stream of Bedrock's `invoke` says, where one of Anthropic's models speaks.

Each message of the binary stream holds one event of Anthropic's, as base64. So the stream is taken for one of
Anthropic's own on its way to the edit, and put into messages again behind it. A message that says what it said goes on
as it came, byte for byte; so does everything in a stream of another model, which no edit gets to see.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from flakestorm.core.call import PULL, Chunks, Reply, with_header
from flakestorm.wire.encoding import decoded
from flakestorm.wire.eventstream import MEDIA_TYPE, Messages, encode
from flakestorm.wire.shape import dump, parse, string
from flakestorm.wire.sse import Event, Parser
from flakestorm.wire.sse import encode as spelled
from flakestorm.wire.streaming import media_type

__all__ = ["edited_chunks"]

_HEADERS = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
_NUMBER = re.compile(rb": (\d+)\n")
_BROKEN = b'{"type":"error"}'
"""What an exception in the middle is to the edit: an event after which nothing comes."""


def edited_chunks(reply: Reply, edit: Callable[[Reply], Reply]) -> Reply:
    """The reply edited by way of Anthropic's own stream; any reply that is no binary stream is left as it is.

    Args:
        reply: of `invoke`.
        edit: changes a stream of Anthropic's.
    """
    plain = decoded(reply)
    if plain is None or plain.status >= 400 or media_type(plain) != MEDIA_TYPE:
        return reply
    passing = _Passing()
    own = replace(plain, headers=with_header(plain.headers, "content-type", "text/event-stream"))
    told = edit(own.pipe(passing.opened))
    return replace(told.pipe(passing.closed), headers=with_header(told.headers, "content-type", MEDIA_TYPE))


class _Passing:
    """One stream: the messages that are on their way through the edit, by number."""

    def __init__(self) -> None:
        self._on_their_way: dict[int, Event] = {}
        self._told: dict[int, bytes | None] = {}
        self._count = 0
        self._known: bool | None = None  # whether this is Anthropic's, as its first message says

    def opened(self) -> Chunks:
        """Messages in, events out."""
        framer = Messages()
        while (chunk := (yield PULL)) is not None:
            if out := b"".join(map(self._open, framer.feed(chunk))):
                yield out
        if out := b"".join(map(self._open, framer.end())):
            yield out

    def closed(self) -> Chunks:
        """Events in, messages out."""
        parser = Parser()
        while (chunk := (yield PULL)) is not None:
            if out := b"".join(self._close(event) for event in parser.feed(chunk)):
                yield out
        if out := b"".join(self._close(event) for event in parser.end()):
            yield out

    def _open(self, message: Event) -> bytes:
        said = _event_in(message) if message.name == "chunk" else None
        name = "" if said is None else string((parse(said) or {}).get("type"))
        if self._known is None:
            self._known = name == "message_start"
        self._count += 1
        if said is None and self._known and message.name.endswith("Exception"):
            said, name = _BROKEN, "error"
        told = said if self._known and name else None
        self._on_their_way[self._count], self._told[self._count] = message, told
        head = b": %d\n" % self._count
        return head + (b"\n" if told is None else spelled(told, name=name))

    def _close(self, event: Event) -> bytes:
        numbered = _NUMBER.match(event.raw)
        if numbered:
            number = int(numbered[1])
            message, told = self._on_their_way.pop(number, None), self._told.pop(number, None)
            if message is not None and event.data == told:
                return message.raw
        return b"" if event.data is None else encode(dump({"bytes": b64encode(event.data).decode()}), _HEADERS)


def _event_in(message: Event) -> bytes | None:
    """The event that a message holds; None if it holds none that fits into one line."""
    held = string((parse(message.data or b"") or {}).get("bytes"))
    with suppress(ValueError):
        event = b64decode(held, validate=True)
        return event if event and b"\n" not in event and b"\r" not in event else None
    return None
