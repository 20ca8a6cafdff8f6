from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import Reply
from flakestorm.core.stream import pump
from flakestorm.wire.base import Edit
from flakestorm.wire.sse import events
from wire_anthropic import (
    EDITS,
    KEYS,
    SSE,
    THINKING,
    WIRE,
    Block,
    blocks_of,
    docs,
    edited,
    event,
    said,
    streamed,
    text,
    tool,
    whole,
)
from wire_support import Fired, edit_bytes, hostile_json


def test_a_streamed_text_is_cut_within_its_event_and_its_block_ends() -> None:
    fired = Fired()
    body = streamed(THINKING, text("The weather in Paris"), tool("f", a=1), size=6)
    out = edited(body, Edit(max_tokens=2, on_change=fired))
    assert fired.times == 1
    assert blocks_of(out) == [(0, "thinking"), (1, "text")]
    assert [doc["type"] for doc in docs(out)][-4:] == [
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert docs(out)[-2]["delta"] == {"stop_reason": "max_tokens", "stop_sequence": None}
    assert docs(out)[-2]["usage"] == {"output_tokens": 2}
    untouched = out.index(b'"text":"The we"')
    assert body.startswith(out[:untouched])


def test_a_stream_passes_at_once_up_to_the_cut() -> None:
    chunks = [raw.raw for raw in events(streamed(THINKING, text("some text")))]
    reply = WIRE.edit(Reply(200, SSE, list(chunks)), Edit(max_tokens=100))
    assert list(pump(reply, lambda _: None)) == chunks


def test_mapped_text_comes_in_as_many_pieces_as_before() -> None:
    out = edited(streamed(text("abcdef"), size=2), Edit(text=str.upper))
    assert [doc["delta"]["text"] for doc in docs(out) if doc["type"] == "content_block_delta"] == ["AB", "CD", "EF"]


def test_no_text_leaves_no_block() -> None:
    answer = (THINKING, text("one"), tool("f", a=1))
    assert blocks_of(edited(streamed(*answer), Edit(text=lambda _: ""))) == [(0, "thinking"), (1, "tool_use")]
    silence = Edit(text=lambda _: "", drop_tool_calls=True, finish="stop")
    out = edited(streamed(*answer, stop="tool_use"), silence)
    assert blocks_of(out) == [(0, "thinking")]
    assert said(out).finish == "end_turn"
    assert orjson.loads(edited(whole(*answer), silence))["content"] == [THINKING]


@pytest.mark.parametrize("answer", [(), (THINKING,), (tool("f", a=1),), (THINKING, tool("f"), tool("g"))], ids=str)
def test_text_is_put_into_an_answer_that_had_none(answer: tuple[Block, ...]) -> None:
    for drop in (True, False):
        edit = Edit(text=lambda old: old + "I cannot.", drop_tool_calls=drop)
        one, other = edited(whole(*answer), edit), edited(streamed(*answer), edit)
        assert said(one).text == said(other).text == "I cannot."
        kinds = [kind for _, kind in blocks_of(other)]
        assert kinds == [block["type"] for block in orjson.loads(one)["content"]]
        assert ("tool_use" in kinds) is (not drop and bool(said(whole(*answer)).tool_calls))


def test_an_answer_without_an_end_is_mapped_when_the_stream_ends() -> None:
    body = event("content_block_start", index=0, content_block=text("")) + event(
        "content_block_delta", index=0, delta={"type": "text_delta", "text": "abc"}
    )
    assert said(edited(body, Edit(text=str.upper))).text == "ABC"
    assert said(edited(event("ping"), Edit(text=lambda _: "new"))).text == ""


def test_dropped_tools_leave_no_gap_in_the_numbers() -> None:
    out = edited(streamed(tool("f", a=1), text("one"), tool("g"), text("two")), Edit(drop_tool_calls=True))
    assert blocks_of(out) == [(0, "text"), (1, "text")]
    assert said(out).text == "onetwo"


def test_text_that_comes_with_the_start_of_its_block_is_counted() -> None:
    body = event("content_block_start", index=0, content_block=text("one two")) + event("content_block_stop", index=0)
    assert said(edited(body, Edit(max_tokens=1))).text == "one"
    assert edited(body, Edit(max_tokens=2)) == body


def test_an_error_in_the_stream_ends_what_is_held() -> None:
    body = streamed(text("abc")).split(b"event: content_block_stop")[0] + event("error", error={"message": "x"})
    after = said(edited(body, Edit(text=str.upper)))
    assert (after.text, after.error, after.complete) == ("ABC", "x", False)


def test_a_broken_event_after_the_cut_does_not_leak() -> None:
    body = streamed(text("one two")).replace(b"event: message_stop", b'data: {"secret\n\nevent: message_stop')
    assert b"secret" not in edited(body, Edit(max_tokens=1))
    assert edited(body, Edit(max_tokens=9)) == body


KINDS = st.sampled_from(["content_block_start", "content_block_delta", "content_block_stop", "message_delta"])


@given(st.lists(st.tuples(KINDS, hostile_json(KEYS)), max_size=5), EDITS)
def test_hostile_replies_are_edited_without_an_exception(values: list[tuple[str, Any]], edit: Edit) -> None:
    edited(orjson.dumps({"type": "message", "content": [value for _, value in values]}), edit)
    body = b""
    for kind, value in values:
        body += event(kind, index=0, content_block=value, delta=value, usage=value) + b"data: "
        body += orjson.dumps(value) + b"\n\n"
    edit_bytes(WIRE, Reply(200, SSE, body), edit)
