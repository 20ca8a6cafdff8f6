"""A whole reply, told as the stream in which its provider would have sent it.

Somebody who puts another reply in the place of a recorded one writes it as a document; an agent that asked for a stream
wants its events. Deltas are as few as the protocol allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from flakestorm.wire.shape import Doc, dump, objects, parse, string

__all__ = ["body_for"]

_Events = Iterator[tuple[str, Any]]
"""Of each event its name, empty where the protocol has none, and its document."""


def body_for(wire: str, body: bytes, *, stream: bool) -> bytes:
    """The body to give: the same, or the events of a document where a stream is wanted and the wire has them.

    Args:
        wire: name of the protocol.
        body: a whole reply, or a stream's events, which are left as they are.
        stream: whether the agent is given a stream.
    """
    document = parse(body) if stream else None
    if document is None:
        return body
    if wire == "ollama":
        return b"".join(dump(each) + b"\n" for each in _ollama(document))
    tell = _TOLD.get(wire)
    if tell is None:
        return body
    told = b"".join(_event(name, data) for name, data in tell(document))
    return told or body


def _event(name: str, data: Any) -> bytes:
    text = data.encode() if isinstance(data, str) else orjson.dumps(data)
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + text + b"\n\n"


def _openai_chat(document: Doc) -> _Events:
    head = {k: v for k, v in document.items() if k not in ("choices", "usage")} | {"object": "chat.completion.chunk"}

    def chunk(choice: Doc, delta: Doc, finish: object = None) -> tuple[str, Doc]:
        return "", {**head, "choices": [{"index": choice.get("index", 0), "delta": delta, "finish_reason": finish}]}

    choices = objects(document.get("choices"))
    for choice in choices:
        message = choice.get("message")
        said: Doc = dict(message) if isinstance(message, dict) else {}
        if calls := objects(said.get("tool_calls")):
            said["tool_calls"] = [{"index": at, **call} for at, call in enumerate(calls)]
        else:
            said.pop("tool_calls", None)
        yield chunk(choice, {key: value for key, value in said.items() if value is not None})
        yield chunk(choice, {}, choice.get("finish_reason"))
    if choices:
        yield "", "[DONE]"


def _openai_responses(document: Doc) -> _Events:
    number = iter(range(1_000_000))

    def event(kind: str, **more: Any) -> tuple[str, Doc]:
        return kind, {"type": kind, "sequence_number": next(number), **more}

    items = objects(document.get("output"))
    begun = {**document, "status": "in_progress", "output": [], "usage": None}
    if "output" not in document:
        return
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for at, item in enumerate(items):
        place = {"item_id": string(item.get("id")), "output_index": at}
        bare = dict(item) | {"status": "in_progress"} if "status" in item else dict(item)
        if "content" in item and item.get("type") == "message":
            bare["content"] = []
        if "arguments" in item:
            bare["arguments"] = ""
        yield event("response.output_item.added", output_index=at, item=bare)
        if item.get("type") == "message":
            yield from _parts(item, place, event)
        elif item.get("type") == "function_call":
            arguments = string(item.get("arguments"))
            yield event("response.function_call_arguments.delta", **place, delta=arguments)
            yield event("response.function_call_arguments.done", **place, arguments=arguments)
        yield event("response.output_item.done", output_index=at, item=item)
    status = string(document.get("status")) or "completed"
    ending = status if status in ("completed", "incomplete", "failed") else "completed"
    yield event(f"response.{ending}", response=document)


def _parts(item: Doc, place: Doc, event: Callable[..., tuple[str, Doc]]) -> _Events:
    for n, part in enumerate(objects(item.get("content"))):
        here = {**place, "content_index": n}
        key = "refusal" if part.get("type") == "refusal" else "text"
        kind = "response.refusal" if key == "refusal" else "response.output_text"
        yield event("response.content_part.added", **here, part={**part, key: ""})
        more: Doc = {} if key == "refusal" else {"logprobs": []}
        yield event(f"{kind}.delta", **here, **more, delta=string(part.get(key)))
        yield event(f"{kind}.done", **here, **more, **{key: string(part.get(key))})
        yield event("response.content_part.done", **here, part=part)


def _anthropic(document: Doc) -> _Events:
    if document.get("type") != "message":
        return
    usage = document.get("usage")
    counted: Doc = usage if isinstance(usage, dict) else {"input_tokens": 0, "output_tokens": 0}
    begun = {
        **document,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**counted, "output_tokens": 0},
    }
    yield "message_start", {"type": "message_start", "message": begun}
    for at, block in enumerate(objects(document.get("content"))):
        bare, deltas = _block(block)
        yield "content_block_start", {"type": "content_block_start", "index": at, "content_block": bare}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": at, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": at}
    ended = {"stop_reason": document.get("stop_reason"), "stop_sequence": document.get("stop_sequence")}
    said = {"output_tokens": counted.get("output_tokens", 0)}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": said}
    yield "message_stop", {"type": "message_stop"}


def _block(block: Doc) -> tuple[Doc, list[Doc]]:
    """How a block begins, and what is added to it."""
    kind = block.get("type")
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": string(block.get("text"))}]
    if kind == "tool_use":
        given = orjson.dumps(block.get("input") or {}).decode()
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": given}]
    if kind == "thinking":
        deltas: list[Doc] = [{"type": "thinking_delta", "thinking": string(block.get("thinking"))}]
        if "signature" in block:
            deltas.append({"type": "signature_delta", "signature": string(block["signature"])})
        return {**block, "thinking": "", "signature": ""}, deltas
    return dict(block), []


def _gemini(document: Doc) -> _Events:
    yield "", document


def _ollama(document: Doc) -> Iterator[Doc]:
    last = dict(document)
    ended = ("done_reason", "context", "total_duration", "load_duration", "prompt_eval_count", "eval_count")
    first = {key: value for key, value in document.items() if key not in ended and not key.endswith("_duration")}
    if "message" in document:
        last["message"] = {"role": "assistant", "content": ""}
    elif "response" in document:
        last["response"] = ""
    else:
        yield document
        return
    yield {**first, "done": False}
    yield last


_TOLD: dict[str, Callable[[Doc], _Events]] = {
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
