"""What every wire's `edit` does the same way: which replies are edited at all, and how a stream is.

A wire brings two things: a function from a whole body to a whole body, and a `Rewriter` that is given the events of a
stream one by one and says what goes out. Everything else is here: errors and unreadable encodings pass untouched, the
content length goes (the new one is not known before the body is), and a stream is rewritten while it arrives, one
chunk out for one chunk in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from flakestorm.core.call import PULL, Chunks, Reply, Transducer, without_headers
from flakestorm.core.stream import whole
from flakestorm.wire.base import Edit
from flakestorm.wire.encoding import decoded
from flakestorm.wire.shape import Doc, dump
from flakestorm.wire.sse import Event, Parser

__all__ = ["Change", "Rewriter", "edited", "redone", "spread"]


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


def edited(
    reply: Reply, edit: Edit, *, body: Callable[[bytes, Change], bytes], events: Callable[[Change], Rewriter]
) -> Reply:
    """The reply with an edit applied on its way out; the same object where there is nothing to edit.

    Args:
        reply: whole or streamed; told apart by its content type.
        edit: the change. One that asks for nothing does nothing.
        body: rewrites a whole body; gives back the very bytes it got when nothing is to be altered.
        events: makes the rewriter of one stream.
    """
    if reply.status >= 400 or not _asks(edit) or (plain := decoded(reply)) is None:
        return reply
    plain = replace(plain, headers=without_headers(plain.headers, "content-length"))
    if plain.streamed:
        return plain.pipe(_rewritten(edit, events))

    def change(data: bytes) -> bytes:
        try:
            return body(data, Change(edit))
        except RecursionError:  # JSON nested so deep that it can be read but not written again
            return data

    return plain.pipe(whole(change))


def spread(text: str, parts: int) -> list[str]:
    """The text cut into this many pieces of about the same length; the last ones may be empty."""
    size = max(1, -(-len(text) // parts))
    return [text[at * size : (at + 1) * size] for at in range(parts)]


def redone(event: Event, document: Doc) -> bytes:
    """The bytes of an event that now says this document."""
    try:
        return event.with_data(dump(document)).raw
    except RecursionError:  # as in `edited`
        return event.raw


def _asks(edit: Edit) -> bool:
    return edit.max_tokens is not None or edit.text is not None or edit.drop_tool_calls or edit.finish is not None


def _rewritten(edit: Edit, make: Callable[[Change], Rewriter]) -> Transducer:
    def rewrite() -> Chunks:
        change, parser = Change(edit), Parser()
        rewriter = make(change)
        while True:
            try:
                chunk = yield PULL
            except Exception:  # the world's stream broke: what came before the break goes out before it
                out = b"".join(rewriter.end())
                if not change.made:  # half an event, which after a change might say what was cut
                    out += parser.pending
                if out:
                    yield out
                raise
            found = parser.end() if chunk is None else parser.feed(chunk)
            out = b"".join(raw for event in found for raw in rewriter.event(event))
            if chunk is None:
                out += b"".join(rewriter.end())
            if out:
                yield out
            if chunk is None:
                return

    return rewrite
