"""What holds for the streams of every wire: cutting is noticed, chunking is not, and no edit is no change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.core.call import Headers, Reply
from flakestorm.core.stream import pump, read
from flakestorm.wire.base import Edit, Wire
from flakestorm.wire.eventstream import Messages
from flakestorm.wire.frames import Lines, frames
from flakestorm.wire.protocols import wire_of, wires
from flakestorm.wire.sse import Parser
from wire_ollama import chat, streamed
from wire_support import DATA, Fired, chunked, recorded

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")

SSE: Headers = (("content-type", "text/event-stream"),)
JSON: Headers = (("content-type", "application/json"),)
BINARY: Headers = (("content-type", "application/vnd.amazon.eventstream"),)
OLLAMA = [
    chat("The weather in Paris is sunny.", thinking="Let me think."),
    chat("I will look.", ("weather", {"city": "Paris"}), ("news", {})),
]
Stream = tuple[Wire, Headers, bytes]
EDITS = [
    Edit(max_tokens=3),
    Edit(text=str.upper, max_tokens=9),
    Edit(text=lambda _: "No.", drop_tool_calls=True, finish="refusal"),
    Edit(max_tokens=3, finish="content_filter"),
]
NO_CHANGE = [{"max_tokens": 10**6}, {"text": str}, {"text": str, "max_tokens": 10**6, "finish": "length"}]


@cache
def streams(name: str) -> list[Stream]:
    """Whole streams of a wire that ended well, each of one answer."""
    wire = wire_of(name)
    assert wire is not None
    if name == "ollama":
        return [
            (wire, reply.headers, read(reply)) for doc in OLLAMA for reply in (streamed(doc), streamed(doc, size=1))
        ]
    found: list[Stream] = []
    for exchange in recorded():
        listed = exchange.body.startswith(b"[") and exchange.wire.name == "gemini"
        if exchange.wire is not wire or not (exchange.stream or listed) or len(exchange.body) > 60_000:
            continue
        starts = exchange.body.count(b"event: message_start") + exchange.body.count(b"event: response.created")
        said = wire.said(exchange.body, stream=exchange.stream)
        if said.complete and said.error is None and starts < 2:
            kind = BINARY if name == "bedrock" else JSON if listed else SSE
            found.append((wire, kind, exchange.body))
    return found


STREAMING = [
    wire.name for wire in wires() if wire.name not in ("bedrock_invoke", "embeddings", "completions", "interactions")
]


def each_wire(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.parametrize("name", STREAMING)(test)


@each_wire
@given(data=st.data())
@settings(max_examples=150)
def test_a_stream_that_is_cut_anywhere_is_incomplete(name: str, data: st.DataObject) -> None:
    wire, headers, body = data.draw(st.sampled_from(streams(name)))
    end = len(body if headers is BINARY else body.rstrip())
    at = data.draw(st.integers(0, end - 1) | st.integers(max(0, end - 200), end - 1))
    assert not wire.said(body[:at], stream=headers is not JSON).complete


@each_wire
@given(data=st.data())
@settings(max_examples=60)
def test_an_edited_stream_is_the_same_however_it_is_chunked(name: str, data: st.DataObject) -> None:
    wire, headers, body = data.draw(st.sampled_from(streams(name)))
    edit = data.draw(st.sampled_from(EDITS))
    sizes = data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=8))
    expected = read(wire.edit(Reply(200, headers, body), edit))
    assert read(wire.edit(Reply(200, headers, list(chunked(body, *sizes))), edit)) == expected


@each_wire
@given(data=st.data())
@settings(max_examples=60)
def test_an_edit_that_changes_nothing_gives_the_same_bytes(name: str, data: st.DataObject) -> None:
    wire, headers, body = data.draw(st.sampled_from(streams(name)))
    wish = data.draw(st.sampled_from(NO_CHANGE))
    sizes = data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=8))
    fired = Fired()
    reply = wire.edit(Reply(200, headers, list(chunked(body, *sizes))), Edit(**wish, on_change=fired))
    assert (read(reply), fired.times) == (body, 0)


@each_wire
@given(data=st.data())
@settings(max_examples=40)
def test_no_event_waits_for_the_next_one(name: str, data: st.DataObject) -> None:
    wire, headers, body = data.draw(st.sampled_from([stream for stream in streams(name) if stream[1] is not JSON]))
    framer = {SSE: Parser, BINARY: Messages}.get(headers, Lines)()
    chunks = [frame.raw for frame in frames(framer, body)]
    came: list[bytes] = []

    def source() -> Iterator[bytes]:
        for chunk in chunks:
            came.append(chunk)
            yield chunk

    out = pump(wire.edit(Reply(200, headers, source()), Edit(max_tokens=10**6)), lambda _: None)
    assert [(piece, len(came)) for piece in out] == [(chunk, at) for at, chunk in enumerate(chunks, start=1)]
