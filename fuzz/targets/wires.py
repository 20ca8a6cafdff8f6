"""Replies in every protocol: reading never raises, framing loses no byte, and editing gives bytes, whatever came."""

from __future__ import annotations

from functools import cache

import orjson

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import pump
from flakestorm.wire.base import Edit, Failure, ToolCall, Wire
from flakestorm.wire.eventstream import encode as encode_message
from flakestorm.wire.protocols import wire_of, wires
from flakestorm.wire.sse import encode
from flakestorm.wire.whole import body_for
from fuzz.material import Bytes, jsonlike

__all__ = ["WORDS", "check"]

WORDS = (
    "choices", "message", "delta", "content", "tool_calls", "function", "function_call", "name", "arguments", "index",
    "id", "usage", "finish_reason", "type", "text", "error", "role", "assistant", "tool", "refusal", "logprobs",
    "output", "response.completed", "response.output_text.delta", "response.output_item.added", "output_text", "item",
    "response", "status", "sequence_number", "output_index", "content_index", "function_call_output", "call_id",
    "content_block", "content_block_start", "content_block_delta", "content_block_stop", "message_start",
    "message_delta", "message_stop", "text_delta", "input_json_delta", "partial_json", "tool_use", "tool_result",
    "input", "stop_reason", "candidates", "parts", "functionCall", "functionResponse", "args", "finishReason",
    "usageMetadata", "promptTokenCount", "message", "done", "done_reason", "eval_count", "messageStop", "toolUse",
    "contentBlockDelta", "stopReason", "metrics", "embedding", "data", "model", "stream", "incomplete_details",
    "thinking", "reasoning", "annotations", "custom_tool_call", "result", "jsonrpc", "2.0", "structuredContent",
    "isError", "contents", "messages", "prompt", "summary", "generation", "completion",
)  # fmt: skip

_EDITS: tuple[Edit, ...] = (
    Edit(max_tokens=0), Edit(max_tokens=1), Edit(max_tokens=3, finish="content_filter"), Edit(text=str.upper),
    Edit(text=lambda _: ""), Edit(text=lambda text: f"{text}\n\x00more"), Edit(drop_tool_calls=True),
    Edit(finish="refusal"), Edit(finish="stop"), Edit(max_tokens=2, text=str.lower, drop_tool_calls=True),
    Edit(calls=lambda call: ToolCall(call.id, f"{call.name}_", '{"n": 1, "what": "wor')),
    Edit(calls=lambda call: ToolCall(call.id, call.name, "{}")),
)  # fmt: skip
_MEDIA = ("application/json", "text/event-stream", "application/vnd.amazon.eventstream", "application/x-ndjson", "")
_CALL = Call("POST", "https://api.example/v1/chat/completions", body=b'{"model":"m"}')
_KINDS = ("rate_limit", "overloaded", "server_error", "timeout")


@cache
def _all() -> tuple[Wire, ...]:
    mcp = wire_of("mcp")
    return (*wires(), *([mcp] if mcp is not None else []))


def check(data: bytes) -> None:
    source = Bytes(data)
    wire, edit = _all()[source.below(len(_all()))], _EDITS[source.below(len(_EDITS))]
    media, step, streamed = _MEDIA[source.below(len(_MEDIA))], source.below(64), source.below(2) == 1
    body = _body(source, media)
    wire.asked(body)
    wire.said(body, stream=streamed)
    framer = wire.framing(body[:64], media)
    if framer is not None:
        pieces = [body[at : at + step] for at in range(0, len(body), step)] if step else [body]
        frames = [frame for piece in pieces for frame in framer.feed(piece)] + framer.end()
        assert b"".join(frame.raw for frame in frames) == body
    kind = _KINDS[source.below(len(_KINDS))]
    wire.failure(Failure(kind), _CALL)  # type: ignore[arg-type]
    headers = (("content-type", media),) if media else ()
    chunks = [body[: len(body) // 2], body[len(body) // 2 :]]
    made = wire.edit(Reply(200, headers, chunks if step % 2 else body), edit)
    changed = b"".join(pump(made, lambda _: None))
    wire.said(changed, stream=streamed)
    body_for(wire.name, body, stream=streamed)


def _body(source: Bytes, media: str) -> bytes:
    way = source.below(4)
    if way == 0:
        return source.rest()
    if way == 1:
        return jsonlike(source, WORDS)
    documents = [source.value(WORDS) for _ in range(1 + source.below(4)) if source.left]
    each = [orjson.dumps(document, default=str) if _fits(document) else b"{}" for document in documents]
    if media.startswith("application/vnd"):
        return b"".join(encode_message(one, {":event-type": "contentBlockDelta"}) for one in each)
    if way == 2:
        return b"".join(encode(one, name=str(next(iter(doc), "")) if isinstance(doc, dict) and way == 3 else "")
                        for one, doc in zip(each, documents, strict=True))  # fmt: skip
    return b"[" + b",".join(each) + b"]" if source.below(2) else b"\n".join(each)


def _fits(document: object) -> bool:
    try:
        orjson.dumps(document)
    except TypeError:
        return False
    return True
