"""Changing which tools a reply asks for, and with what.

A tool call comes whole, in fragments, or stated several times over; a wire's `CallForm` knows which, in a whole reply
as in the documents of a stream. A stream passes untouched up to its first tool call, and is then gathered: arguments
may only be changed when all of them are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from flakestorm.core.call import Reply
from flakestorm.wire.base import Edit, ToolCall
from flakestorm.wire.editing import Body, Change, Events, edited, redone, rewriting
from flakestorm.wire.frames import Framing, sse_framing
from flakestorm.wire.shape import Doc, dump, parse
from flakestorm.wire.sse import Event

__all__ = ["CallForm", "CallsRewriter", "Mapped", "remade"]

Mapped = Callable[[ToolCall], ToolCall]
"""What `Edit.calls` holds."""


@dataclass(frozen=True, slots=True)
class CallForm:
    """How one protocol spells tool calls.

    Args:
        has: whether a document of a stream begins, or states, a tool call.
        ends: whether this event is the last of a stream, so that nothing after it need be waited for.
        put: maps the tool calls in these documents, which are changed in place: of a stream from its first tool call
            on, or the one of a whole reply. Gives the positions of the documents that changed.
    """

    has: Callable[[Doc], bool]
    ends: Callable[[Event, Doc], bool]
    put: Callable[[Sequence[Doc], Mapped], set[int]]


def remade(
    reply: Reply,
    edit: Edit,
    form: CallForm,
    *,
    body: Body,
    events: Events,
    announced_as: str = "text/event-stream",
    framing: Framing = sse_framing,
) -> Reply:
    """The reply with all that an edit asks for: its tool calls by their form, then the rest by a wire's own rules.

    Args:
        reply, edit, body, events, announced_as, framing: as for `editing.edited`.
        form: how this protocol spells tool calls.
    """
    reply = _recalled(reply, edit, form, announced_as, framing)
    return edited(reply, edit, body=body, events=events, announced_as=announced_as, framing=framing)


def _recalled(reply: Reply, edit: Edit, form: CallForm, announced_as: str, framing: Framing) -> Reply:
    to = edit.calls
    if to is None:
        return reply
    return rewriting(
        reply,
        edit,
        body=lambda data, _, change: _whole(data, to, change, form),
        events=lambda _, change: CallsRewriter(to, change, form),
        announced_as=announced_as,
        framing=framing,
    )


def _whole(body: bytes, to: Mapped, change: Change, form: CallForm) -> bytes:
    doc = parse(body)
    if doc is None or not form.put([doc], to):
        return body
    out = dump(doc)
    change.mark()
    return out


class CallsRewriter:
    """Maps the tool calls of one stream; see `editing.Rewriter`."""

    def __init__(self, to: Mapped, change: Change, form: CallForm) -> None:
        self._to, self._change, self._form = to, change, form
        self._held: list[tuple[Event, Doc]] = []

    def event(self, event: Event) -> Iterator[bytes]:
        """What goes out for this event."""
        doc = {} if event.data is None else parse(event.data) or {}
        if not self._held and not self._form.has(doc):
            yield event.raw
            return
        self._held.append((event, doc))
        if self._form.ends(event, doc):
            yield from self.end()

    def end(self) -> Iterator[bytes]:
        """What was held back, its tool calls mapped."""
        held, self._held = self._held, []
        changed = self._form.put([doc for _, doc in held], self._to)
        if changed:
            self._change.mark()
        for at, (event, doc) in enumerate(held):
            yield redone(event, doc) if at in changed else event.raw
