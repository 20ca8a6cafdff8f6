"""Anthropic replies to edit: the same answer whole and streamed."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import strategies as st

from flakestorm.core.call import Reply
from flakestorm.wire.anthropic.protocol import Anthropic
from flakestorm.wire.base import Edit, Said
from flakestorm.wire.sse import events
from wire_support import edit_bytes

WIRE = Anthropic()
SSE = (("content-type", "text/event-stream"),)
Block = dict[str, Any]
THINKING: Block = {"type": "thinking", "thinking": "let me think", "signature": "sig"}
SEARCH: Block = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "long query text"}}


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def tool(name: str, **arguments: object) -> Block:
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": arguments}


def whole(*blocks: Block, stop: str = "end_turn") -> bytes:
    usage = {"input_tokens": 7, "output_tokens": 50}
    doc = {"id": "m1", "type": "message", "role": "assistant", "model": "claude", "content": blocks}
    return orjson.dumps({**doc, "stop_reason": stop, "stop_sequence": None, "usage": usage})


def event(kind: str, **doc: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps({"type": kind, **doc}))


def begin(index: int, block: Block) -> bytes:
    empty = {"text": ""} if block["type"] == "text" else {"input": {}} if "input" in block else {"thinking": ""}
    return event("content_block_start", index=index, content_block={**block, **empty})


def deltas(index: int, block: Block, size: int) -> list[bytes]:
    kind, key, said = {
        "text": ("text_delta", "text", block.get("text", "")),
        "thinking": ("thinking_delta", "thinking", block.get("thinking", "")),
    }.get(block["type"]) or ("input_json_delta", "partial_json", orjson.dumps(block["input"]).decode())
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    return [event("content_block_delta", index=index, delta={"type": kind, key: piece}) for piece in pieces]


def streamed(*blocks: Block, stop: str = "end_turn", size: int = 4) -> bytes:
    """The same answer as `whole`, as Anthropic streams it."""
    usage = {"input_tokens": 7, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "claude", "content": [], "usage": usage}
    out = [event("message_start", message=message), event("ping")]
    for index, block in enumerate(blocks):
        out += [begin(index, block), *deltas(index, block, size), event("content_block_stop", index=index)]
    delta = {"stop_reason": stop, "stop_sequence": None}
    out += [event("message_delta", delta=delta, usage={"output_tokens": 50}), event("message_stop")]
    return b"".join(out)


def edited(body: bytes, edit: Edit) -> bytes:
    headers = SSE if body.startswith(b"event:") else (("content-type", "application/json"),)
    return edit_bytes(WIRE, Reply(200, headers, body), edit)


def said(body: bytes) -> Said:
    return WIRE.said(body, stream=body.startswith(b"event:"))


def docs(body: bytes) -> list[Any]:
    return [orjson.loads(event.data or b"") for event in events(body)]


def blocks_of(body: bytes) -> list[tuple[int, str]]:
    """Number and type of each block; every event must belong to a block that is open."""
    found: list[tuple[int, str]] = []
    open_now: int | None = None
    for doc in docs(body):
        if doc["type"] == "content_block_start":
            assert open_now is None
            open_now = doc["index"]
            found.append((doc["index"], doc["content_block"]["type"]))
        elif doc["type"] in ("content_block_delta", "content_block_stop"):
            assert doc["index"] == open_now
            open_now = None if doc["type"] == "content_block_stop" else open_now
    assert open_now is None
    assert [index for index, _ in found] == list(range(len(found)))
    return found


ANSWERS = st.lists(
    st.one_of(
        st.text("ab ,\n", min_size=1, max_size=12).map(text),
        st.dictionaries(st.sampled_from("xyz"), st.text("ab ", max_size=6), max_size=2).map(lambda a: tool("f", **a)),
        st.just(THINKING),
        st.just(SEARCH),
    ),
    max_size=5,
)
"""Answers of a few blocks."""

KEYS = [
    *("type", "message", "content", "index", "content_block", "delta", "text", "partial_json", "usage", "stop_reason"),
    *("tool_use", "input", "output_tokens", "content_block_start", "content_block_delta", "content_block_stop"),
    *("message_start", "message_delta", "message_stop", "text_delta", "input_json_delta", "thinking", "error"),
]
EDITS = st.builds(
    Edit,
    max_tokens=st.none() | st.integers(0, 3),
    text=st.sampled_from([None, str.upper, lambda _: ""]),
    drop_tool_calls=st.booleans(),
    finish=st.sampled_from([None, "length", "stop", "refusal", "content_filter"]),
)
"""Edits of every kind."""
