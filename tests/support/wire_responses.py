"""Responses replies to edit: the same answer whole and streamed."""

from __future__ import annotations

from typing import Any

import orjson

from flakestorm.core.call import Reply
from flakestorm.wire.base import Edit, Said
from flakestorm.wire.openai_responses.protocol import OpenAIResponses
from flakestorm.wire.sse import encode, events
from wire_support import edit_bytes

WIRE = OpenAIResponses()
SSE = (("content-type", "text/event-stream"),)
Item = dict[str, Any]
REASONING: Item = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "secret"}
SEARCH: Item = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "a long query"}}


def message(*texts: str, item_id: str = "msg_a") -> Item:
    content = [{"type": "output_text", "annotations": [], "logprobs": [], "text": text} for text in texts]
    return {"id": item_id, "type": "message", "status": "completed", "content": content, "role": "assistant"}


def tool(name: str, arguments: str) -> Item:
    return {
        "id": f"fc_{name}",
        "type": "function_call",
        "status": "completed",
        "arguments": arguments,
        "call_id": f"call_{name}",
        "name": name,
    }


def response(*items: Item, status: str = "completed") -> dict[str, Any]:
    usage = {
        "input_tokens": 7,
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 57,
    }
    head = {"id": "resp_1", "object": "response", "model": "gpt-5", "error": None, "incomplete_details": None}
    return {**head, "status": status, "output": list(items), "usage": usage}


def whole(*items: Item) -> bytes:
    return orjson.dumps(response(*items))


def streamed(*items: Item, size: int = 3) -> bytes:
    """The answer as OpenAI streams it."""
    docs: list[Item] = []

    def say(kind: str, **fields: object) -> None:
        docs.append({"type": f"response.{kind}", **fields, "sequence_number": len(docs)})

    start = {**response(status="in_progress"), "usage": None}
    say("created", response=start)
    say("in_progress", response=start)
    for index, item in enumerate(items):
        at = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            say("output_item.added", output_index=index, item={**item, "status": "in_progress", "content": []})
            for place, part in enumerate(item["content"]):
                here = {**at, "content_index": place}
                say("content_part.added", **here, part={**part, "text": ""})
                for first in range(0, len(part["text"]), size):
                    say("output_text.delta", **here, delta=part["text"][first : first + size], logprobs=[])
                say("output_text.done", **here, text=part["text"], logprobs=[])
                say("content_part.done", **here, part=part)
        elif item["type"] == "function_call":
            say("output_item.added", output_index=index, item={**item, "status": "in_progress", "arguments": ""})
            for first in range(0, len(item["arguments"]), size):
                say("function_call_arguments.delta", **at, delta=item["arguments"][first : first + size])
            say("function_call_arguments.done", **at, arguments=item["arguments"])
        else:
            say("output_item.added", output_index=index, item=item)
        say("output_item.done", output_index=index, item=item)
    say("completed", response=response(*items))
    return b"".join(encode(orjson.dumps(doc), name=doc["type"]) for doc in docs)


def edited(body: bytes, edit: Edit) -> bytes:
    headers = SSE if body.startswith(b"event:") else (("content-type", "application/json"),)
    return edit_bytes(WIRE, Reply(200, headers, body), edit)


def said(body: bytes) -> Said:
    return WIRE.said(body, stream=body.startswith(b"event:"))


def documents(body: bytes) -> list[Item]:
    """What the events of a stream state."""
    return [orjson.loads(event.data) for event in events(body) if event.data is not None]
