from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.base import Edit
from flakestorm.wire.tokens import count_tokens
from wire_anthropic import ANSWERS, SEARCH, THINKING, Block, blocks_of, edited, said, streamed, text, tool, whole
from wire_support import Fired


def test_a_whole_text_is_cut_and_says_so() -> None:
    fired = Fired()
    doc = orjson.loads(edited(whole(THINKING, text("The weather in Paris")), Edit(max_tokens=2, on_change=fired)))
    assert fired.times == 1
    assert doc["content"] == [THINKING, text("The weat")]
    assert (doc["stop_reason"], doc["usage"]) == ("max_tokens", {"input_tokens": 7, "output_tokens": 2})


def test_cut_input_stays_a_json_prefix_in_a_stream_and_an_object_in_a_whole_reply() -> None:
    call = tool("search", city="Paris", units="metric")
    streamed_call = said(edited(streamed(call, stop="tool_use"), Edit(max_tokens=12))).tool_calls[0]
    assert streamed_call.arguments == '{"city":"Paris","unit'
    doc = orjson.loads(edited(whole(call, stop="tool_use"), Edit(max_tokens=12)))
    assert doc["content"][0]["input"] == {"city": "Paris"}
    assert doc["stop_reason"] == "max_tokens"
    assert orjson.loads(edited(whole(call), Edit(max_tokens=1)))["content"][0]["input"] == {}


def test_a_block_that_would_begin_after_the_end_is_left_out() -> None:
    for body in (whole(text("one two"), tool("f")), streamed(text("one two"), tool("f"))):
        after = said(edited(body, Edit(max_tokens=2)))
        assert (after.text, after.tool_calls, after.finish) == ("one two", (), "max_tokens")
        assert said(edited(body, Edit(max_tokens=0))).text == ""
    assert blocks_of(edited(streamed(text("one two"), tool("f")), Edit(max_tokens=0))) == []


def test_what_the_provider_ran_is_neither_cut_nor_counted() -> None:
    for body in (whole(SEARCH, text("one")), streamed(SEARCH, text("one"))):
        assert edited(body, Edit(max_tokens=1)) == body
        assert edited(body, Edit(drop_tool_calls=True)) == body


def test_mapped_text_is_one_block_in_the_place_of_the_first() -> None:
    answer = (THINKING, text("one "), SEARCH, text("two"), tool("f", a=1))
    for body in (whole(*answer), streamed(*answer)):
        after = said(edited(body, Edit(text=str.upper)))
        assert (after.text, after.tool_calls) == ("ONE TWO", said(body).tool_calls)
    out = edited(streamed(*answer, size=2), Edit(text=str.upper))
    assert blocks_of(out) == [(0, "thinking"), (1, "text"), (2, "server_tool_use"), (3, "tool_use")]
    kinds = [block["type"] for block in orjson.loads(edited(whole(*answer), Edit(text=str.upper)))["content"]]
    assert kinds == ["thinking", "text", "server_tool_use", "tool_use"]


def test_a_refusal_that_is_cut_is_no_refusal_any_more() -> None:
    doc = {**orjson.loads(whole(text("I will not"), stop="refusal")), "stop_details": {"type": "refusal"}}
    after = orjson.loads(edited(orjson.dumps(doc), Edit(max_tokens=1)))
    assert (after["stop_reason"], after["stop_details"]) == ("max_tokens", None)


def test_a_finish_that_is_already_there_is_no_change() -> None:
    fired = Fired()
    for body in (whole(text("hi")), streamed(text("hi"))):
        assert edited(body, Edit(finish="stop", on_change=fired)) == body
        assert fired.times == 0
    assert said(edited(streamed(text("hi")), Edit(finish="length", on_change=fired))).finish == "max_tokens"
    assert fired.times == 1


@given(ANSWERS, st.integers(0, 20), st.integers(1, 5))
def test_whole_and_streamed_answers_are_cut_alike(answer: list[Block], limit: int, size: int) -> None:
    # A whole reply shows an empty input where a stream says nothing, so both are compared without one.
    answer = [block for block in answer if block.get("input") != {}]
    edit = Edit(max_tokens=limit)
    one, other = edited(whole(*answer), edit), edited(streamed(*answer, size=size), edit)
    assert [kind for _, kind in blocks_of(other)] == [block["type"] for block in orjson.loads(one)["content"]]
    first, second = said(one), said(other)
    assert (first.text, first.finish, first.usage, first.model) == (
        second.text,
        second.finish,
        second.usage,
        second.model,
    )
    assert sum(count_tokens(b["text"]) for b in orjson.loads(one)["content"] if b["type"] == "text") <= limit


@given(ANSWERS, st.integers(1, 5), st.sampled_from([str.upper, lambda _: "", lambda t: t + "!"]), st.booleans())
def test_whole_and_streamed_answers_are_mapped_alike(answer: list[Block], size: int, change: Any, drop: bool) -> None:
    edit = Edit(text=change, drop_tool_calls=drop)
    one, other = edited(whole(*answer), edit), edited(streamed(*answer, size=size), edit)
    assert [kind for _, kind in blocks_of(other)] == [block["type"] for block in orjson.loads(one)["content"]]
    assert (said(one).text, len(said(one).tool_calls)) == (said(other).text, len(said(other).tool_calls))


@pytest.mark.parametrize("body", [b"{}", b'{"type":"message"}', b'{"type":"error"}', b"[1]", b"\xff"])
def test_another_document_is_left_alone(body: bytes) -> None:
    assert edited(body, Edit(max_tokens=0, text=str.upper)) == body
