"""Input from strangers: whatever a body holds, every wire reads and edits it without an exception."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit, ToolCall, Wire
from flakestorm.wire.protocols import wires
from flakestorm.wire.shape import parse
from flakestorm.wire.sse import events
from wire_support import DATA, Recorded, hostile_json, recorded

KEYS = {
    "gemini": (
        "candidates content parts text thought functionCall functionResponse function_call name args id response index "
        "partialArgs jsonPath stringValue finishReason usageMetadata candidatesTokenCount totalTokenCount error "
        "message promptFeedback blockReason contents systemInstruction tools functionDeclarations role"
    ),
    "ollama": (
        "message content response thinking tool_calls function name arguments done done_reason eval_count error role "
        "prompt_eval_count messages prompt system tools tool_name tool_call_id id model"
    ),
    "bedrock": (
        "output message content text toolUse toolResult toolUseId input name type stopReason usage outputTokens "
        "totalTokens messages system toolConfig tools toolSpec json role"
    ),
    "openai_responses": (
        "type output output_index content_index item part delta text content response status arguments input call_id "
        "name annotations end_index logprobs usage output_tokens incomplete_details error message sequence_number id "
        "output_tokens_details reasoning_tokens instructions tools role"
    ),
    "embeddings": "input model usage prompt_tokens error message data embedding object",
    "bedrock_invoke": "message content anthropic_version messages role type text input name bytes usage",
    "interactions": (
        "input model agent steps step type content text delta index event_type interaction arguments id name call_id "
        "result usage total_input_tokens status error message tools parameters role system_instruction"
    ),
    "completions": (
        "prompt messages message model stream error id role content text type delta tool_calls function name arguments "
        "parameters index choices finish_reason usage meta tokens input_tokens event_type response chat_history tools"
    ),
}
"""The words of each protocol. (The other two have tests of their own.)"""
TYPES = [
    *("response.created", "response.output_item.added", "response.output_item.done", "response.content_part.added"),
    *("response.content_part.done", "response.output_text.delta", "response.output_text.done", "response.completed"),
    *("response.function_call_arguments.delta", "response.function_call_arguments.done", "response.failed", "error"),
    *("message", "output_text", "function_call", "custom_tool_call", "function_call_output", "completed"),
]
WIRE = {wire.name: wire for wire in wires()}
EDITS = st.builds(
    Edit,
    max_tokens=st.none() | st.integers(0, 3),
    text=st.sampled_from([None, str.upper, lambda _: "", lambda _: "new words"]),
    drop_tool_calls=st.booleans(),
    calls=st.sampled_from(
        [None, lambda call: ToolCall(call.id, "other", '{"a":1}'), lambda call: ToolCall("", "", "{")]
    ),
    finish=st.sampled_from([None, "length", "stop", "refusal", "content_filter"]),
)
SHELLS = {
    "gemini": lambda value: {"candidates": [{"content": {"parts": [value]}}, value]},
    "ollama": lambda value: {"message": value, "done": True},
    "bedrock": lambda value: {"output": {"message": {"content": [value]}}, "stopReason": "end_turn"},
    "openai_responses": lambda value: {
        "output": [value, {"type": "message", "content": [value]}],
        "status": "completed",
    },
}


def forms(name: str, values: list[object]) -> list[tuple[str, bytes]]:
    """The values as a document of the protocol, as lines, an array, and a stream of events."""
    shell = SHELLS.get(name, lambda value: {"data": value})
    docs = [orjson.dumps(doc) for value in values for doc in (value, shell(value))]
    return [
        *(("application/json", doc) for doc in docs),
        ("application/json", b"[" + b",".join(docs) + b"]"),
        ("application/x-ndjson", b"\n".join(docs)),
        ("text/event-stream", b"".join(b"data: " + doc + b"\n\n" for doc in docs)),
    ]


@pytest.mark.parametrize("name", KEYS)
@given(data=st.data(), edit=EDITS)
@settings(max_examples=60)
def test_hostile_replies_are_read_and_edited(name: str, data: st.DataObject, edit: Edit) -> None:
    values = data.draw(st.lists(hostile_json([*KEYS[name].split(), *TYPES]), min_size=1, max_size=4))
    wire: Wire = WIRE[name]
    for kind, body in forms(name, values):
        wire.said(body, stream=kind != "application/json")
        edited = read(wire.edit(Reply(200, (("content-type", kind),), body), edit))
        wire.said(edited, stream=kind != "application/json")


EVENTS = st.sampled_from(TYPES[:12])


@given(
    st.lists(
        st.tuples(EVENTS, st.integers(0, 2), hostile_json([*KEYS["openai_responses"].split(), *TYPES])), max_size=8
    ),
    EDITS,
)
def test_events_of_responses_in_any_order(events: list[tuple[str, int, object]], edit: Edit) -> None:
    docs = [
        {"type": kind, "output_index": index, "item": value, "part": value, "delta": value, "response": value}
        for kind, index, value in events
    ]
    body = b"".join(b"data: " + orjson.dumps(doc) + b"\n\n" for doc in docs)
    wire = WIRE["openai_responses"]
    wire.said(read(wire.edit(Reply(200, (("content-type", "text/event-stream"),), body), edit)), stream=True)


URLS = {
    "gemini": "https://g.test/v1beta/models/m:generateContent",
    "ollama": "http://o.test/api/chat",
    "bedrock": "https://b.test/model/m/converse",
    "openai_responses": "https://o.test/v1/responses",
    "embeddings": "https://o.test/v1/embeddings",
    "bedrock_invoke": "https://bedrock.test/model/m/invoke",
    "interactions": "https://g.test/v1beta/interactions",
    "completions": "https://o.test/v1/completions",
}


@pytest.mark.parametrize("name", KEYS)
@given(data=st.data())
@settings(max_examples=40)
def test_hostile_requests_are_read(name: str, data: st.DataObject) -> None:
    words = KEYS[name].split()
    value = data.draw(hostile_json([*words, *TYPES]))
    doc = data.draw(st.dictionaries(st.sampled_from([*words, "contents", "messages", "input"]), hostile_json(words)))
    for body in (
        orjson.dumps(value),
        orjson.dumps(doc),
        orjson.dumps({"messages": [value], "input": [value], "contents": [value]}),
    ):
        WIRE[name].asked(body)
        WIRE[name].recognises(Call("POST", URLS[name], body=body))


@pytest.mark.parametrize("name", KEYS)
@given(body=st.binary(), edit=EDITS)
def test_bytes_that_are_no_reply_stay_what_they_are(name: str, body: bytes, edit: Edit) -> None:
    for kind in ("application/json", "text/event-stream", "application/x-ndjson"):
        WIRE[name].said(body, stream=kind != "application/json")
        assert read(WIRE[name].edit(Reply(200, (("content-type", kind),), body), edit)) == body


JUNK = [None, True, 0, -1, 1.5, "", "junk", [], {}, [[]], [{}], {"type": []}, {"text": 1}]


def nodes(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value in a JSON document."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield from nodes(child, (*path, key))


def with_junk(value: Any, path: tuple[str | int, ...], junk: object) -> Any:
    """The document with the value at this path replaced."""
    if not path:
        return junk
    copy = value.copy()
    copy[path[0]] = with_junk(value[path[0]], path[1:], junk)
    return copy


@cache
def small(name: str) -> list[Recorded]:
    return [exchange for exchange in recorded() if exchange.wire.name == name and len(exchange.body) < 12_000]


@pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")
@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"])
@given(data=st.data(), edit=EDITS, junk=st.sampled_from(JUNK))
@settings(max_examples=300)
def test_one_wrong_value_in_a_real_reply(name: str, data: st.DataObject, edit: Edit, junk: object) -> None:
    exchange = data.draw(st.sampled_from(small(name)))
    if exchange.body.startswith((b"{", b"[")):
        doc = orjson.loads(exchange.body)
        body = orjson.dumps(with_junk(doc, data.draw(st.sampled_from(list(nodes(doc)))), junk))
    else:
        found = [(event, doc) for event in events(exchange.body) if (doc := parse(event.data or b"")) is not None]
        if not found:
            return
        event, doc = data.draw(st.sampled_from(found))
        changed = with_junk(doc, data.draw(st.sampled_from(list(nodes(doc)))), junk)
        body = exchange.body.replace(event.raw, event.with_data(orjson.dumps(changed)).raw)
    wire = WIRE[name]
    for source in (exchange.reply, Reply(200, (("content-type", "text/event-stream"),))):
        edited = read(wire.edit(Reply(200, source.headers, body), edit))
        for read_as in (body, edited):
            wire.said(read_as, stream=exchange.stream)


@pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")
@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"])
@given(data=st.data(), junk=st.sampled_from(JUNK))
def test_one_wrong_value_in_a_real_request(name: str, data: st.DataObject, junk: object) -> None:
    exchange = data.draw(st.sampled_from([e for e in small(name) if len(e.call.body) < 12_000 and parse(e.call.body)]))
    doc = orjson.loads(exchange.call.body)
    body = orjson.dumps(with_junk(doc, data.draw(st.sampled_from(list(nodes(doc)))), junk))
    WIRE[name].asked(body)
    WIRE[name].recognises(replace(exchange.call, body=body))
