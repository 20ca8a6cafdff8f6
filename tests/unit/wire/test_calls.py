"""What holds for the tool calls of every protocol, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.core.call import Reply
from flakestorm.core.stream import pump, read
from flakestorm.wire.base import Edit, Said, ToolCall, Wire
from flakestorm.wire.protocols import wire_of
from model_replies import PAY, WIRES, WORDS, reply_of
from wire_support import Fired, chunked

SEARCH = ("search", {"q": "Oslo"})
FORMS = [(wire, stream) for wire in WIRES for stream in (False, True)]
each = pytest.mark.parametrize(
    ("name", "stream"), FORMS, ids=lambda v: v if isinstance(v, str) else ("", "streamed")[v]
)
ARGUMENTS = st.dictionaries(
    st.text('abcé"{', max_size=4), st.integers(-9, 9) | st.text("xyü\\", max_size=9), max_size=3
)


def wire(name: str) -> Wire:
    found = wire_of(name)
    assert found is not None
    return found


def other(call: ToolCall) -> ToolCall:
    return replace(call, name="other", arguments='{"n":1,"words":"something rather longer than before"}')


def edited(name: str, reply: Reply, edit: Edit) -> Said:
    return wire(name).said(read(wire(name).edit(reply, edit)), stream=reply.streamed)


@each
def test_a_call_that_is_not_changed_leaves_every_byte(name: str, stream: bool) -> None:
    fired, reply, seen = Fired(), reply_of(name, calls=[PAY, SEARCH], stream=stream), list[ToolCall]()

    def look(call: ToolCall) -> ToolCall:
        seen.append(call)
        return call

    body = read(wire(name).edit(reply, Edit(calls=look, on_change=fired)))
    assert body == (reply.body if isinstance(reply.body, bytes) else b"".join(reply.body))  # type: ignore[arg-type]
    assert [(call.name, orjson.loads(call.arguments)) for call in seen] == [PAY, SEARCH]
    assert fired.times == 0


@each
def test_a_call_is_changed_and_all_around_it_stays(name: str, stream: bool) -> None:
    fired, reply = Fired(), reply_of(name, calls=[PAY, SEARCH], stream=stream)
    before, after = edited(name, reply, Edit()), edited(name, reply, Edit(calls=other, on_change=fired))
    assert after == replace(before, tool_calls=tuple(other(call) for call in before.tool_calls))
    assert (after.text, fired.times) == (WORDS, 1)


@each
@given(data=st.data())
@settings(max_examples=30)
def test_whatever_is_put_in_comes_out_the_same_however_it_was_chunked(
    name: str, stream: bool, data: st.DataObject
) -> None:
    arguments = data.draw(ARGUMENTS)
    sizes = data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=4))
    edit = Edit(calls=lambda call: replace(call, arguments=orjson.dumps(arguments).decode()))
    reply = reply_of(name, calls=[PAY, SEARCH], stream=stream, size=data.draw(st.integers(1, 30)))
    expected = read(wire(name).edit(reply, edit))
    said = wire(name).said(expected, stream=stream)
    assert [orjson.loads(call.arguments) for call in said.tool_calls] == [arguments, arguments]
    body = reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)  # type: ignore[arg-type]
    assert read(wire(name).edit(replace(reply, body=list(chunked(body, *sizes))), edit)) == expected


@pytest.mark.parametrize("name", WIRES)
def test_a_stream_is_held_back_from_its_first_tool_call_only(name: str) -> None:
    reply = reply_of(name, calls=[PAY], stream=True)
    came: list[bytes] = []

    def source() -> Iterator[bytes]:
        for chunk in reply.body:  # type: ignore[union-attr]
            came.append(chunk)
            yield chunk

    pieces = list(pump(wire(name).edit(replace(reply, body=source()), Edit(calls=other)), lambda _: came.append(b"")))
    words = pieces[: next(at for at, piece in enumerate(pieces) if b"other" in piece)]
    assert not any(b"pay" in piece for piece in words)
    assert len(words) > len(WORDS) // 9
    assert words == list(reply.body)[: len(words)]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "anthropic"])
def test_and_let_out_with_its_last_event(name: str) -> None:
    reply = reply_of(name, calls=[PAY], stream=True)
    chunks = list(reply.body)  # type: ignore[arg-type]

    def source() -> Iterator[bytes]:
        yield from chunks
        raise RuntimeError("the connection stays open")

    out, came = pump(wire(name).edit(replace(reply, body=source()), Edit(calls=other)), lambda _: None), list[bytes]()
    with pytest.raises(RuntimeError):
        came.extend(out)
    said = wire(name).said(b"".join(came), stream=True)
    assert (said.complete, said.tool_calls[0].name) == (True, "other")


@each
def test_other_changes_may_go_with_it(name: str, stream: bool) -> None:
    said = edited(name, reply_of(name, calls=[PAY], stream=stream), Edit(calls=other, text=str.upper))
    assert (said.text, [call.name for call in said.tool_calls]) == (WORDS.upper(), ["other"])


def test_an_error_is_left_alone() -> None:
    reply = Reply(500, (("content-type", "application/json"),), read(reply_of("openai_chat", calls=[PAY])))
    assert wire("openai_chat").edit(reply, Edit(calls=other)) is reply
