"""Anthropic Messages.

Text is what the `text` blocks say; thinking is left out, and so are the tools Anthropic runs itself (`server_tool_use`
and their results). In a stream the first `message_start` counts, as for the official SDK, and a delta belongs to the
block that began last with its number.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from flakestorm.core.call import Call, Reply
from flakestorm.wire.anthropic.calls import MESSAGES_CALLS
from flakestorm.wire.anthropic.edit import rewrite_body
from flakestorm.wire.anthropic.stream import MessagesRewriter
from flakestorm.wire.base import Asked, Edit, Failure, Said, ToolCall, ToolResult, Usage
from flakestorm.wire.blocks import turns_of
from flakestorm.wire.calls import remade
from flakestorm.wire.failures import error_reply, request_token, retry_headers
from flakestorm.wire.frames import Framer, sse_framing
from flakestorm.wire.provider_errors import google_error
from flakestorm.wire.shape import (
    Doc,
    bare_error,
    dump,
    error_of,
    number,
    obj,
    objects,
    offered,
    outline,
    parse,
    string,
    text_of,
)
from flakestorm.wire.sse import encode, events, looks_like_sse

__all__ = ["Anthropic"]


_VERTEX = re.compile(r"/publishers/anthropic/models/([^/:]+):(?:r|streamR)awPredict$")


class Anthropic:
    """The `anthropic` wire. It holds no state; one object serves every run."""

    name = "anthropic"

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if the call is not one of this protocol. Reads the body once."""
        path = call.url.partition("?")[0].rstrip("/") if call.method == "POST" else ""
        vertex = None if path.endswith("/v1/messages") else _VERTEX.search(path)
        if vertex is None and not path.endswith("/v1/messages"):
            return None
        body = outline(call.body)
        if body is None or not isinstance(body.get("messages"), list):
            return None
        return unquote(vertex[1]) if vertex else string(body.get("model"))

    def recognises(self, call: Call) -> bool:
        """Whether this is a POST to `.../v1/messages` with messages in it (counting tokens and batches are not), or the
        same by way of Google's Vertex, which has the model in the path."""
        return self.model_of(call) is not None

    def asked(self, body: bytes) -> Asked:
        """Read a request body."""
        doc = parse(body) or {}
        turns = turns_of(doc, text=text_of, calls=_tool_calls, results=_tool_results)
        tools, parameters = offered((tool, tool.get("input_schema")) for tool in objects(doc.get("tools")))
        return Asked(string(doc.get("model")), doc.get("stream") is True, turns, tools, parameters)

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read a reply body. An error answered as plain JSON to a streamed request is read as what it is."""
        return _said_stream(body) if looks_like_sse(body, stream=stream) else _said_whole(body)

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The error Anthropic answers with, or Google, where its models are asked for there.

        Of the rate-limit headers those that name a time of day (`-reset`) are left out: this room knows no clock.
        """
        if vertex := _VERTEX.search(call.url.partition("?")[0]):
            return google_error(failure, model=unquote(vertex[1]), call=call)
        headers = [("x-should-retry", "true"), *retry_headers(failure.retry_after_ms)]
        if failure.kind == "rate_limit":
            headers += [
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-tokens-limit", "40000"),
                ("anthropic-ratelimit-tokens-remaining", "39000"),
            ]
        usual_status, kind, usual_message = _FAILURES[failure.kind]
        return _error_reply(failure.status or usual_status, kind, failure.message or usual_message, call, *headers)

    def failure_event(self, failure: Failure, call: Call, *, after: int) -> bytes:
        """An event of type `error`; no other follows it."""
        _, kind, usual_message = _FAILURES[failure.kind]
        return encode(dump(_error_document(kind, failure.message or usual_message, call)), name="error")

    def blocked(self, call: Call, message: str = "") -> Reply:
        """The 400 with which its API refuses a prompt, before any model has seen it."""
        return _error_reply(400, "invalid_request_error", message or "Output blocked by content filtering policy", call)

    def framing(self, start: bytes, media_type: str) -> Framer | None:
        """Events."""
        return sse_framing(start, media_type)

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """The reply with its meaning changed: see `anthropic_edit`."""
        return remade(reply, edit, MESSAGES_CALLS, body=rewrite_body, events=MessagesRewriter)


_FAILURES: dict[str, tuple[int, str, str]] = {
    # kind: status, type, message
    "rate_limit": (
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 50 requests per minute. For details, refer to: "
        "https://docs.claude.com/en/api/rate-limits.",
    ),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "server_error": (500, "api_error", "Internal server error"),
    "timeout": (504, "timeout_error", "Request timed out. Try again or reduce the size of the request."),
}


def _error_document(kind: str, message: str, call: Call) -> Doc:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": _request_id(call)}


def _error_reply(status: int, kind: str, message: str, call: Call, *headers: tuple[str, str]) -> Reply:
    return error_reply(status, _error_document(kind, message, call), ("request-id", _request_id(call)), *headers)


def _request_id(call: Call) -> str:
    return f"req_011C{request_token(call)[:20]}"


def _tool_call(block: Doc) -> ToolCall:
    return ToolCall(string(block.get("id")), string(block.get("name")), dump(block.get("input") or {}).decode())


def _tool_calls(blocks: list[Doc]) -> tuple[ToolCall, ...]:
    return tuple(_tool_call(block) for block in blocks if block.get("type") == "tool_use")


def _tool_results(blocks: list[Doc], names: dict[str, str]) -> tuple[ToolResult, ...]:
    return tuple(_tool_result(block, names) for block in blocks if block.get("type") == "tool_result")


def _tool_result(block: Doc, names: dict[str, str]) -> ToolResult:
    call_id = string(block.get("tool_use_id"))
    return ToolResult(call_id, names.get(call_id, ""), text_of(block.get("content")))


def _error(doc: Doc) -> str | None:
    """The message of an error document or event."""
    return error_of(doc, "type") or bare_error(doc)


def _usage(*stated: object) -> Usage | None:
    """What a reply states about usage: the input as it was stated first, the output as it was stated last.

    A `message_delta` may state the input again, with the results of provider-run tools in it. What the agent itself
    sent is in `message_start`.
    """
    inputs = [count for usage in stated if (count := number(obj(usage).get("input_tokens"))) is not None]
    outputs = [count for usage in stated if (count := number(obj(usage).get("output_tokens"))) is not None]
    return Usage(inputs[0] if inputs else None, outputs[-1] if outputs else None) if inputs or outputs else None


def _said_whole(body: bytes) -> Said:
    doc = parse(body)
    if doc is None:
        return Said(complete=False)
    blocks = objects(doc.get("content"))
    return Said(
        text=text_of(blocks),
        tool_calls=_tool_calls(blocks),
        finish=string(doc.get("stop_reason")) or None,
        usage=_usage(doc.get("usage")),
        model=string(doc.get("model")),
        error=None if doc.get("type") == "message" or "content" in doc else _error(doc),
    )


def _said_stream(body: bytes) -> Said:
    message: Doc | None = None
    blocks: list[tuple[Doc, list[str]]] = []  # as it began, and what its deltas added: text, or JSON of the input
    begun: dict[int, tuple[Doc, list[str]]] = {}
    usages: list[object] = []
    finish, error, complete = None, None, False
    for event in events(body):
        doc = {} if event.data is None else parse(event.data) or {}
        kind = doc.get("type")
        if kind == "message_start" and message is None:
            message = obj(doc.get("message"))
            usages.append(message.get("usage"))
        elif kind == "content_block_start":
            begun[number(doc.get("index")) or 0] = started = obj(doc.get("content_block")), list[str]()
            blocks.append(started)
        elif kind == "content_block_delta" and (number(doc.get("index")) or 0) in begun:
            block, added = begun[number(doc.get("index")) or 0]
            added.append(_added(block, obj(doc.get("delta"))))
        elif kind == "message_delta":
            finish = string(obj(doc.get("delta")).get("stop_reason")) or finish
            usages.append(doc.get("usage"))
        elif kind == "message_stop":
            complete = True
        elif kind == "error" or event.name == "error":
            error = error or _error(doc) or "error"
    text: list[str] = []
    calls: list[ToolCall] = []
    for block, added in blocks:
        if block.get("type") == "text":
            text += [string(block.get("text")), *added]
        elif block.get("type") == "tool_use":
            call = _tool_call(block)
            calls.append(ToolCall(call.id, call.name, "".join(added) or call.arguments))
    model = string(obj(message).get("model"))
    return Said("".join(text), tuple(calls), finish, _usage(*usages), model, error, complete)


def _added(block: Doc, delta: Doc) -> str:
    if block.get("type") == "text" and delta.get("type") == "text_delta":
        return string(delta.get("text"))
    if block.get("type") == "tool_use" and delta.get("type") == "input_json_delta":
        return string(delta.get("partial_json"))
    return ""
