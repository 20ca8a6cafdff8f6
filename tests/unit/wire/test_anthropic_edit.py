from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_support import Fired, edit_bytes, hostile_json

from flakestorm.core.call import Reply
from flakestorm.core.stream import pump
from flakestorm.wire.anthropic import Anthropic
from flakestorm.wire.base import Edit, Said
from flakestorm.wire.sse import events
from flakestorm.wire.tokens import count_tokens

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


def test_a_whole_text_is_cut_and_says_so() -> None:
    fired = Fired()
    doc = orjson.loads(edited(whole(THINKING, text("The weather in Paris")), Edit(max_tokens=2, on_change=fired)))
    assert fired.times == 1
    assert doc["content"] == [THINKING, text("The weat")]
    assert (doc["stop_reason"], doc["usage"]) == ("max_tokens", {"input_tokens": 7, "output_tokens": 2})


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


def test_a_refusal_that_is_cut_is_no_refusal_any_more() -> None:
    doc = {**orjson.loads(whole(text("I will not"), stop="refusal")), "stop_details": {"type": "refusal"}}
    after = orjson.loads(edited(orjson.dumps(doc), Edit(max_tokens=1)))
    assert (after["stop_reason"], after["stop_details"]) == ("max_tokens", None)


def test_an_error_in_the_stream_ends_what_is_held() -> None:
    body = streamed(text("abc")).split(b"event: content_block_stop")[0] + event("error", error={"message": "x"})
    after = said(edited(body, Edit(text=str.upper)))
    assert (after.text, after.error, after.complete) == ("ABC", "x", False)


def test_a_broken_event_after_the_cut_does_not_leak() -> None:
    body = streamed(text("one two")).replace(b"event: message_stop", b'data: {"secret\n\nevent: message_stop')
    assert b"secret" not in edited(body, Edit(max_tokens=1))
    assert edited(body, Edit(max_tokens=9)) == body


def test_a_finish_that_is_already_there_is_no_change() -> None:
    fired = Fired()
    for body in (whole(text("hi")), streamed(text("hi"))):
        assert edited(body, Edit(finish="stop", on_change=fired)) == body
        assert fired.times == 0
    assert said(edited(streamed(text("hi")), Edit(finish="length", on_change=fired))).finish == "max_tokens"
    assert fired.times == 1


ANSWERS = st.lists(
    st.one_of(
        st.text("ab ,\n", min_size=1, max_size=12).map(text),
        st.dictionaries(st.sampled_from("xyz"), st.text("ab ", max_size=6), max_size=2).map(lambda a: tool("f", **a)),
        st.just(THINKING),
        st.just(SEARCH),
    ),
    max_size=5,
)


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
    finish=st.sampled_from([None, "length", "stop"]),
)
KINDS = st.sampled_from(["content_block_start", "content_block_delta", "content_block_stop", "message_delta"])


@given(st.lists(st.tuples(KINDS, hostile_json(KEYS)), max_size=5), EDITS)
def test_hostile_replies_are_edited_without_an_exception(values: list[tuple[str, Any]], edit: Edit) -> None:
    edited(orjson.dumps({"type": "message", "content": [value for _, value in values]}), edit)
    body = b""
    for kind, value in values:
        body += event(kind, index=0, content_block=value, delta=value, usage=value) + b"data: "
        body += orjson.dumps(value) + b"\n\n"
    edit_bytes(WIRE, Reply(200, SSE, body), edit)


@pytest.mark.parametrize("body", [b"{}", b'{"type":"message"}', b'{"type":"error"}', b"[1]", b"\xff"])
def test_another_document_is_left_alone(body: bytes) -> None:
    assert edited(body, Edit(max_tokens=0, text=str.upper)) == body
