"""Replies as Ollama sends them: the same answer whole and as lines."""

from __future__ import annotations

from typing import Any

import orjson

from flakestorm.core.call import Reply

Doc = dict[str, Any]
NDJSON = (("content-type", "application/x-ndjson"),)
JSON = (("content-type", "application/json; charset=utf-8"),)
HEAD: Doc = {"model": "qwen3:8b", "created_at": "2025-10-17T23:14:07.414671Z"}
END: Doc = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 174560334,
    "load_duration": 101397084,
    "prompt_eval_count": 11,
    "prompt_eval_duration": 13074791,
    "eval_count": 18,
    "eval_duration": 52479709,
}


def chat(content: str, *calls: tuple[str, Doc], thinking: str = "") -> Doc:
    """A whole answer of `/api/chat`."""
    message: Doc = {"role": "assistant", "content": content}
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{name}", "function": {"index": at, "name": name, "arguments": arguments}}
            for at, (name, arguments) in enumerate(calls)
        ]
    return {**HEAD, "message": message, **END}


def generation(doc: Doc) -> Reply:
    """A document as the whole reply it is."""
    return Reply(200, JSON, orjson.dumps(doc))


def lines(doc: Doc, *, size: int = 4) -> list[bytes]:
    """A whole answer cut into the lines Ollama would stream it in: thoughts, text, each call, the end."""
    message = doc["message"]
    deltas: list[Doc] = []
    for key in ("thinking", "content"):
        said = message.get(key, "")
        empty = {"role": "assistant", "content": ""}
        deltas += [{**empty, key: said[at : at + size]} for at in range(0, len(said), size)]
    deltas += [{"role": "assistant", "content": "", "tool_calls": [call]} for call in message.get("tool_calls", ())]
    docs = [{**HEAD, "message": delta, "done": False} for delta in deltas]
    last = {**doc, "message": {"role": "assistant", "content": ""}}
    return [orjson.dumps(each) + b"\n" for each in [*docs, last]]


def streamed(doc: Doc, *, size: int = 4) -> Reply:
    """A whole answer as the stream it would be."""
    return Reply(200, NDJSON, b"".join(lines(doc, size=size)))
