"""What every wire protocol can do: read a request, read a reply, and change a reply while it stays valid.

Faults speak meaning ("cut this reply after 20 tokens", "be rate-limited"); a wire makes it bytes that the provider's
own SDK accepts. Nothing here does I/O, and a reply that no fault touches is never re-encoded: it passes as the bytes
it came in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from msgspec import field

from flakestorm.core.call import Call, Reply
from flakestorm.core.record import Record
from flakestorm.wire.frames import Framer

__all__ = ["Asked", "Edit", "Failure", "Finish", "Said", "ToolCall", "ToolResult", "Turn", "Usage", "Wire"]

Finish = Literal["length", "stop", "refusal", "content_filter"]
"""The ways in which an answer ends, in words of no provider."""


class ToolCall(Record, frozen=True):
    """The model asks for a tool.

    Args:
        id: the provider's call id, which the result must quote; empty where the protocol has none.
        name: the tool's name.
        arguments: JSON text, exactly as the provider sent it (streamed fragments joined).
    """

    id: str
    name: str
    arguments: str


class ToolResult(Record, frozen=True):
    """A tool's result on its way to the model, inside a later request."""

    call_id: str
    name: str
    text: str


class Usage(Record, frozen=True):
    """Tokens the provider counted: `input` is its input_tokens or prompt_tokens, `output` likewise."""

    input: int | None = None
    output: int | None = None


class Turn(Record, frozen=True):
    """One message of a conversation: its role, its text, and any tool calls or results it carries."""

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()


class Asked(Record, frozen=True):
    """A model request, understood.

    Args:
        model: the model's name as asked for; empty if absent.
        stream: whether a streamed reply was asked for.
        turns: system and conversation messages, in order.
        tools: names of the tools offered.
        parameters: JSON Schema of the arguments each of them takes; a tool that states none is left out.
    """

    model: str = ""
    stream: bool = False
    turns: tuple[Turn, ...] = ()
    tools: tuple[str, ...] = ()
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Said(Record, frozen=True):
    """A model reply, understood.

    Args:
        text: what the model said to the user; reasoning is left out.
        tool_calls: tools it asks the agent to run; provider-run tools are left out.
        finish: the provider's own word (`stop`, `end_turn`, `length`, ...), None if it never said.
        usage: tokens counted, None if not stated.
        model: the model that answered, as stated.
        error: the provider's error message where the reply is one.
        complete: False when a stream ended before its end marker, or a document is cut.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: str | None = None
    usage: Usage | None = None
    model: str = ""
    error: str | None = None
    complete: bool = True


class Failure(Record, frozen=True):
    """An error a provider answers with, in words every wire knows how to spell.

    Args:
        kind: what went wrong.
        status: HTTP status, where the caller wants another than the provider's usual one.
        message: the error text; the provider's usual one when empty.
        retry_after_ms: what the provider asks the client to wait, None to say nothing.
    """

    kind: Literal["rate_limit", "overloaded", "server_error", "timeout"]
    status: int | None = None
    message: str = ""
    retry_after_ms: int | None = None


def _unheard() -> None:
    pass


class Edit(Record, frozen=True):
    """A change to a reply's meaning; `Wire.edit` spells it for a whole or a streamed reply.

    Args:
        max_tokens: keep only this much of the answer and say it ended for length. Tokens are counted as
            `count_tokens` of this room does. An answer that is not longer is left alone, its finish too.
        text: maps the whole text of the answer to another, before it is cut; a stream is then gathered and re-emitted.
            It is asked about an answer without text (`""`) as well, and what it gives is put in.
        drop_tool_calls: leave out the tool calls too.
        calls: maps each tool call, in order, to what the agent is asked for instead: another name, other arguments, the
            same id. Arguments that are no JSON are spelled as the provider does where a model wrote such. A stream is
            gathered from its first tool call on.
        finish: how the answer ends, spelled in the provider's word; None leaves that alone. `refusal` says besides that
            the text is one, and puts it where the provider has refusals. With `max_tokens` it is `content_filter` or
            else `length`, and only where something was cut.
        on_change: called once, at the moment the reply is really altered.
    """

    max_tokens: int | None = None
    text: Callable[[str], str] | None = None
    drop_tool_calls: bool = False
    calls: Callable[[ToolCall], ToolCall] | None = None
    finish: Finish | None = None
    on_change: Callable[[], None] = _unheard

    def ending(self, *, cut: bool) -> Finish | None:
        """How an answer ends of which something was cut, or nothing; None to leave alone how it did."""
        if self.max_tokens is None:
            return self.finish
        return None if not cut else "content_filter" if self.finish == "content_filter" else "length"


class Wire(Protocol):
    """One protocol, both directions."""

    name: str
    """What `Call.wire` says for it, e.g. `openai_chat`."""

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if the call does not speak this protocol.

        This is `recognises` and the first thing everybody wants to know, for one reading of the body. The answer is
        empty where the protocol is spoken and no model is named.
        """
        ...

    def recognises(self, call: Call) -> bool:
        """Whether this call speaks this protocol, by method, URL path and the shape of its body."""
        ...

    def asked(self, body: bytes) -> Asked:
        """Read a request body. Anything unreadable gives what could be read, never an exception."""
        ...

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read a reply body (chunks joined). Anything unreadable gives what could be read, never an exception."""
        ...

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The provider-exact error reply: status, headers (request id, retry-after, rate-limit) and body."""
        ...

    def failure_event(self, failure: Failure, call: Call, *, after: int) -> bytes | None:
        """The same error where it comes in the middle of a stream: the last frame, after so many others.

        None where the provider has no such thing.
        """
        ...

    def blocked(self, call: Call, message: str = "") -> Reply | None:
        """What the provider answers when its content filter stops the prompt, in these words or its usual ones.

        None where the provider has no such answer.
        """
        ...

    def framing(self, start: bytes, media_type: str) -> Framer | None:
        """How a stream of this protocol is taken apart; None where the body is one document. See `frames.Framing`."""
        ...

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """The same reply with its meaning changed; whole or streamed as it was, valid for the official SDK."""
        ...
