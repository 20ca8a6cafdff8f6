"""What every wire's `edit` does the same way: which replies are edited at all, and how a stream is.

A wire brings two things: a function from a whole body to a whole body, and a `Rewriter` that is given the events of a
stream one by one and says what goes out. Everything else is here: errors and unreadable encodings pass untouched, the
content length goes (the new one is not known before the body is), and a stream is rewritten while it arrives, one
chunk out for one chunk in. What a body is, a stream or a document, is told by its first bytes (`streaming`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from flakestorm.core.call import PULL, Chunks, Reply, without_headers
from flakestorm.core.stream import whole
from flakestorm.wire.base import Edit
from flakestorm.wire.encoding import decoded
from flakestorm.wire.frames import Framer, Framing, sse_framing
from flakestorm.wire.shape import Doc, dump
from flakestorm.wire.sse import Event
from flakestorm.wire.streaming import media_type, opening

__all__ = ["Body", "Change", "Events", "Holding", "Rewriter", "edited", "redone", "rewriting", "spread"]


Document = TypeVar("Document")


class Change:
    """Tells an edit's `on_change` the first time something is altered, and only then."""

    __slots__ = ("_tell", "made")

    def __init__(self, edit: Edit) -> None:
        self._tell, self.made = edit.on_change, False

    def mark(self) -> None:
        """Something is altered now."""
        if not self.made:
            self.made = True
            self._tell()


class Rewriter(Protocol):
    """One stream being edited."""

    def event(self, event: Event) -> Iterator[bytes]:
        """What goes out when this event has come in: often its own `raw`."""
        ...

    def end(self) -> Iterator[bytes]:
        """What was held back and goes out because nothing more will come in."""
        ...


class Holding(ABC, Generic[Document]):
    """A rewriter that holds a stream back from its first words, where its text is to be mapped, up to its end.

    Attributes:
        _edit, _change: what is asked for, and what is told of it.
        _held: what is held back, each event with the document it carries.
        _holds: whether events that come are to be held back from the first words on.
    """

    def __init__(self, edit: Edit, change: Change) -> None:
        self._edit, self._change = edit, change
        self._held: list[tuple[Event, Document]] = []
        self._holds = edit.text is not None

    def end(self) -> Iterator[bytes]:
        """What was held back for its text, mapped."""
        held, self._held, self._holds = self._held, [], False
        for event, doc in self._mapped(held):
            yield from self._trimmed(event, doc)

    @abstractmethod
    def _mapped(self, held: list[tuple[Event, Document]]) -> list[tuple[Event, Document]]:
        """The events that were held back, with their text mapped."""

    @abstractmethod
    def _trimmed(self, event: Event, doc: Document) -> Iterator[bytes]:
        """What goes out for an event apart from the mapping: it is cut, and its tool calls and end are changed."""


Body = Callable[[bytes, Edit, Change], bytes]
"""Rewrites a whole body; gives back the very bytes it got when nothing is to be altered."""

Events = Callable[[Edit, Change], Rewriter]
"""Makes the rewriter of one stream."""


def edited(
    reply: Reply,
    edit: Edit,
    *,
    body: Body,
    events: Events,
    announced_as: str = "text/event-stream",
    framing: Framing = sse_framing,
) -> Reply:
    """The reply with an edit applied on its way out; the same object where there is nothing to edit.

    What the edit does to tool calls is not done here but in `calls`.

    Args:
        reply: whole or streamed.
        edit: the change. One that asks for nothing does nothing.
        body: for a reply that is one document.
        events: for one that is a stream.
        announced_as: media type under which this protocol streams. Streams of another type are not its answers.
        framing: how a stream of this protocol is told from a document, and taken apart.
    """
    if not _asks(edit):
        return reply
    return rewriting(reply, edit, body=body, events=events, announced_as=announced_as, framing=framing)


def rewriting(
    reply: Reply,
    edit: Edit,
    *,
    body: Body,
    events: Events,
    announced_as: str,
    framing: Framing,
) -> Reply:
    """As `edited`, whatever the edit asks for."""
    if reply.status >= 400 or (plain := decoded(reply)) is None:
        return reply
    kind = media_type(plain)
    announced = kind == announced_as
    if plain.streamed and not announced:  # another kind of stream, which holding back would only delay
        return reply

    def change_it() -> Chunks:
        change = Change(edit)
        start, framer = yield from opening(framing, kind, announced=announced)
        if framer is not None:
            yield from _each(start, framer, events(edit, change), change)
        else:
            yield from whole(lambda data: _restated(data, edit, change, body), start)()

    return replace(plain, headers=without_headers(plain.headers, "content-length")).pipe(change_it)


def spread(text: str, parts: int) -> list[str]:
    """The text cut into this many pieces of about the same length; the last ones may be empty."""
    size = max(1, -(-len(text) // parts))
    return [text[at * size : (at + 1) * size] for at in range(parts)]


def redone(event: Event, document: Doc) -> bytes:
    """The bytes of an event that now says this document."""
    try:
        return event.with_data(dump(document)).raw
    except RecursionError:  # as in `_restated`
        return event.raw


def _asks(edit: Edit) -> bool:
    return edit.max_tokens is not None or edit.text is not None or edit.drop_tool_calls or edit.finish is not None


def _each(start: bytes, parser: Framer, rewriter: Rewriter, change: Change) -> Chunks:
    """A stream: what comes in goes out at once, as far as the rewriter lets it."""
    chunk = start
    while True:
        if out := b"".join(raw for event in parser.feed(chunk) for raw in rewriter.event(event)):
            yield out
        try:
            pulled = yield PULL
        except Exception:  # the world's stream broke: what came before the break goes out before it
            rest = b"".join(rewriter.end())
            if not change.made:  # half an event, which after a change might say what was cut
                rest += parser.pending
            if rest:
                yield rest
            raise
        if pulled is None:
            break
        chunk = pulled
    ending = [raw for event in parser.end() for raw in rewriter.event(event)]
    if out := b"".join([*ending, *rewriter.end()]):
        yield out


def _restated(data: bytes, edit: Edit, change: Change, body: Body) -> bytes:
    """A document, edited."""
    with suppress(RecursionError):  # JSON nested so deep that it can be read but not written again
        return body(data, edit, change)
    return data
