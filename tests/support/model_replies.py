"""One answer of a model as each protocol spells it, whole and streamed, and the request it answers.

`reply_of("anthropic", stream=True)` says `WORDS`; with `calls=[PAY]` the model asks for the tool as well. The request
offers two tools, and the schema of `pay` requires both of its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

import wire_anthropic
import wire_ollama
import wire_responses
from flakestorm.core.call import Call, Headers, Reply
from flakestorm.core.site import Site
from flakestorm.wire.eventstream import MEDIA_TYPE, encode
from flakestorm.wire.sse import events

__all__ = ["PAY", "TOOLS", "URLS", "WIRES", "WORDS", "call_of", "reply_of", "request_of"]

Doc = dict[str, Any]
ToolCall = tuple[str, Doc]

WORDS = "Your flight to Oslo is booked for Monday morning at nine, and a window seat has been reserved for you too."
PAY: ToolCall = ("pay", {"eur": 120, "to": "Oslo Air"})
PAY_SCHEMA: Doc = {
    "type": "object",
    "properties": {"eur": {"type": "number"}, "to": {"type": "string"}},
    "required": ["eur", "to"],
}
TOOLS: dict[str, Doc] = {"pay": PAY_SCHEMA, "search": {"type": "object", "properties": {"q": {"type": "string"}}}}

URLS = {
    "openai_chat": "https://api.openai.com/v1/chat/completions",
    "openai_responses": "https://api.openai.com/v1/responses",
    "anthropic": "https://api.anthropic.com/v1/messages",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent",
    "ollama": "http://127.0.0.1:11434/api/chat",
    "bedrock": "https://bedrock-runtime.eu-west-1.amazonaws.com/model/claude/converse",
}
WIRES = tuple(URLS)

_JSON: Headers = (("content-type", "application/json"),)
_SSE: Headers = (("content-type", "text/event-stream"),)


def reply_of(
    wire: str, text: str | None = WORDS, calls: Sequence[ToolCall] = (), *, stream: bool = False, size: int = 9
) -> Reply:
    """The model says this text (None: nothing), then asks for these tools; streamed in pieces of so many characters."""
    headers, frames = _MAKERS[wire](text or "", list(calls), stream, size)
    return Reply(200, headers, list(frames) if stream else b"".join(frames))


def request_of(wire: str, *, stream: bool = False) -> Doc:
    """The body of the request, as the provider wants it."""
    prompt = {"role": "user", "content": "Book it."}
    functions = [{"name": name, "parameters": schema} for name, schema in TOOLS.items()]
    if wire == "gemini":
        return {
            "contents": [{"role": "user", "parts": [{"text": "Book it."}]}],
            "tools": [{"functionDeclarations": functions}],
        }
    if wire == "bedrock":
        specs = [{"toolSpec": {"name": name, "inputSchema": {"json": schema}}} for name, schema in TOOLS.items()]
        return {"messages": [{"role": "user", "content": [{"text": "Book it."}]}], "toolConfig": {"tools": specs}}
    if wire == "anthropic":
        tools = [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()]
        return {"model": "m", "max_tokens": 99, "stream": stream, "messages": [prompt], "tools": tools}
    if wire == "openai_responses":
        return {
            "model": "m",
            "stream": stream,
            "input": "Book it.",
            "tools": [{"type": "function", **f} for f in functions],
        }
    tools = [{"type": "function", "function": function} for function in functions]
    return {"model": "m", "stream": stream, "messages": [prompt], "tools": tools}


def call_of(wire: str, *, stream: bool = False, url: str = "", n: int = 1) -> Call:
    """The call, as the classify stage leaves it."""
    where = url or URLS[wire]
    if stream and wire == "gemini":
        where = where.replace(":generateContent", ":streamGenerateContent") + "?alt=sse"
    if stream and wire == "bedrock":
        where += "-stream"
    body = orjson.dumps(request_of(wire, stream=stream))
    return Call("POST", where, _JSON, body, kind="llm", name="m", wire=wire, site=Site("llm", "m", n))


_Made = tuple[Headers, list[bytes]]


def _pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _sse(docs: Sequence[object]) -> list[bytes]:
    return [b"data: " + (doc if isinstance(doc, bytes) else orjson.dumps(doc)) + b"\n\n" for doc in docs]


def _chat(text: str, calls: list[ToolCall], stream: bool, size: int) -> _Made:
    asked = [
        {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": orjson.dumps(given).decode()}}
        for at, (name, given) in enumerate(calls)
    ]
    finish, head = "tool_calls" if calls else "stop", {"id": "chatcmpl-1", "created": 1, "model": "gpt-4o"}
    usage = {"prompt_tokens": 9, "completion_tokens": 90, "total_tokens": 99}
    if not stream:
        message = {
            "role": "assistant",
            "content": text or None,
            "refusal": None,
            **({"tool_calls": asked} if asked else {}),
        }
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return _JSON, [orjson.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage})]
    deltas: list[Doc] = [{"role": "assistant", "content": "", "refusal": None}]
    deltas += [{"content": piece} for piece in _pieces(text, size)]
    for at, call in enumerate(asked):
        function = call["function"]
        deltas.append({"tool_calls": [{"index": at, **call, "function": {"name": function["name"], "arguments": ""}}]})
        for piece in _pieces(function["arguments"], size):
            deltas.append({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    docs = [{**head, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    return _SSE, _sse([*docs, b"[DONE]"])


def _responses(text: str, calls: list[ToolCall], stream: bool, size: int) -> _Made:
    items = [wire_responses.message(text)] if text else []
    items += [wire_responses.tool(name, orjson.dumps(given).decode()) for name, given in calls]
    if not stream:
        return _JSON, [wire_responses.whole(*items)]
    return _SSE, [event.raw for event in events(wire_responses.streamed(*items, size=size))]


def _messages(text: str, calls: list[ToolCall], stream: bool, size: int) -> _Made:
    blocks = [wire_anthropic.text(text)] if text else []
    blocks += [wire_anthropic.tool(name, **given) for name, given in calls]
    stop = "tool_use" if calls else "end_turn"
    if not stream:
        return _JSON, [wire_anthropic.whole(*blocks, stop=stop)]
    return _SSE, [event.raw for event in events(wire_anthropic.streamed(*blocks, stop=stop, size=size))]


def _gemini(text: str, calls: list[ToolCall], stream: bool, size: int) -> _Made:
    parts = [{"functionCall": {"name": name, "args": given}} for name, given in calls]
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 90, "totalTokenCount": 99}
    head = {"modelVersion": "gemini-2.5-pro", "responseId": "r1"}

    def doc(parts: list[Doc], **more: object) -> Doc:
        return {"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, **more}], **head}

    if not stream:
        said = [{"text": text}] if text else []
        return _JSON, [orjson.dumps({**doc([*said, *parts], finishReason="STOP"), "usageMetadata": usage})]
    docs = [doc([{"text": piece}]) for piece in _pieces(text, size)] + [doc([part]) for part in parts]
    last = {**doc([{"text": ""}], finishReason="STOP"), "usageMetadata": usage}
    return _SSE, _sse([*docs, last])


def _ollama(text: str, calls: list[ToolCall], stream: bool, size: int) -> _Made:
    doc = wire_ollama.chat(text, *calls)
    if not stream:
        return wire_ollama.JSON, [orjson.dumps(doc)]
    return wire_ollama.NDJSON, wire_ollama.lines(doc, size=size)


def _converse(text: str, calls: list[ToolCall], stream: bool, size: int) -> _Made:
    uses = [{"toolUseId": f"t{at}", "name": name, "input": given} for at, (name, given) in enumerate(calls)]
    stop = "tool_use" if calls else "end_turn"
    usage = {"inputTokens": 9, "outputTokens": 90, "totalTokens": 99}
    if not stream:
        content = [*([{"text": text}] if text else []), *({"toolUse": use} for use in uses)]
        message = {"role": "assistant", "content": content}
        doc = {"output": {"message": message}, "stopReason": stop, "usage": usage, "metrics": {"latencyMs": 9}}
        return _JSON, [orjson.dumps(doc)]
    named: list[tuple[str, Doc]] = [("messageStart", {"role": "assistant"})]
    blocks: list[tuple[Doc, list[Doc]]] = [({}, [{"text": piece} for piece in _pieces(text, size)])] if text else []
    for use in uses:
        start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
        said = _pieces(orjson.dumps(use["input"]).decode(), size)
        blocks.append((start, [{"toolUse": {"input": piece}} for piece in said]))
    for at, (begun, deltas) in enumerate(blocks):
        named += [("contentBlockStart", {"contentBlockIndex": at, "start": begun})] if begun else []
        named += [("contentBlockDelta", {"contentBlockIndex": at, "delta": delta}) for delta in deltas]
        named.append(("contentBlockStop", {"contentBlockIndex": at}))
    named += [("messageStop", {"stopReason": stop}), ("metadata", {"usage": usage})]
    head = {":content-type": "application/json", ":message-type": "event"}
    frames = [encode(orjson.dumps(doc), {":event-type": name, **head}) for name, doc in named]
    return (("content-type", MEDIA_TYPE),), frames


_MAKERS = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic": _messages,
    "gemini": _gemini,
    "ollama": _ollama,
    "bedrock": _converse,
}
