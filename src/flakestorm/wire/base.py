"""What every wire protocol can do: read a request, read a reply, and change a reply while it stays valid.

Faults speak meaning ("cut this reply after 20 tokens", "be rate-limited"); a wire makes it bytes that the provider's
own SDK accepts. Nothing here does I/O, and a reply that no fault touches is never re-encoded: it passes as the bytes
it came in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from flakestorm.core.call import Call, Reply

__all__ = ["Asked", "Edit", "Failure", "Said", "ToolCall", "ToolResult", "Turn", "Usage", "Wire"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model asks for a tool.

    Args:
        id: the provider's call id, which the result must quote; empty where the protocol has none.
        name: the tool's name.
        arguments: JSON text, exactly as the provider sent it (streamed fragments joined).
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's result on its way to the model, inside a later request."""

    call_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens the provider counted: `input` is its input_tokens or prompt_tokens, `output` likewise."""

    input: int | None = None
    output: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation: its role, its text, and any tool calls or results it carries."""

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A model request, understood.

    Args:
        model: the model's name as asked for; empty if absent.
        stream: whether a streamed reply was asked for.
        turns: system and conversation messages, in order.
        tools: names of the tools offered.
    """

    model: str = ""
    stream: bool = False
    turns: tuple[Turn, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
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


@dataclass(frozen=True, slots=True)
class Failure:
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


@dataclass(frozen=True, slots=True)
class Edit:
    """A change to a reply's meaning; `Wire.edit` spells it for a whole or a streamed reply.

    Args:
        max_tokens: keep only this much of the answer and say it ended for length. Tokens are counted as
            `count_tokens` of this room does. An answer that is not longer is left alone, its finish too.
        text: maps the whole text of the answer to another, before it is cut; a stream is then gathered and re-emitted.
            It is asked about an answer without text (`""`) as well, and what it gives is put in.
        drop_tool_calls: leave out the tool calls too.
        finish: `length` or `stop`, spelled in the provider's word; None leaves it alone. With `max_tokens` it is
            always `length`, and only where something was cut.
        on_change: called once, at the moment the reply is really altered.
    """

    max_tokens: int | None = None
    text: Callable[[str], str] | None = None
    drop_tool_calls: bool = False
    finish: Literal["length", "stop"] | None = None
    on_change: Callable[[], None] = field(default=lambda: None, repr=False)


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

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """The same reply with its meaning changed; whole or streamed as it was, valid for the official SDK."""
        ...
