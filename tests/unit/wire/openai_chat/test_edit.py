from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import Reply
from flakestorm.core.stream import pump
from flakestorm.wire.base import Edit, Said
from flakestorm.wire.openai_chat.protocol import OpenAIChat
from flakestorm.wire.sse import events
from flakestorm.wire.tokens import count_tokens
from wire_support import Fired, edit_bytes, hostile_json

WIRE = OpenAIChat()
SSE = (("content-type", "text/event-stream"),)
FRAME = {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m"}
USAGE = {"prompt_tokens": 7, "completion_tokens": 50, "total_tokens": 57}


def tool(index: int, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": f"call_{index}", "type": "function", "function": function}


def whole(content: object = None, *tools: dict[str, Any], finish: str = "stop", **message: object) -> bytes:
    said = {"role": "assistant", "content": content, **message}
    if tools:
        said["tool_calls"] = [{key: value for key, value in call.items() if key != "index"} for call in tools]
    choice = {"index": 0, "message": said, "logprobs": {"content": [1, 2]}, "finish_reason": finish}
    return orjson.dumps({**FRAME, "choices": [choice], "usage": USAGE})


def chunk(delta: object, finish: str | None = None, index: int = 0, **more: object) -> bytes:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
    return b"data: " + orjson.dumps({**FRAME, "choices": [choice], **more}) + b"\n\n"


def streamed(pieces: list[str], *tools: dict[str, Any], finish: str = "stop", size: int = 3) -> bytes:
    """The same answer as `whole`, as OpenAI streams it with `include_usage`."""
    out = [chunk({"role": "assistant", "content": ""}, usage=None)]
    out += [chunk({"content": piece}, usage=None) for piece in pieces]
    for call in tools:
        function = call["function"]
        out.append(
            chunk({"tool_calls": [{**call, "function": {"name": function["name"], "arguments": ""}}]}, usage=None)
        )
        text = function["arguments"]
        for at in range(0, len(text), size):
            entry = {"index": call["index"], "function": {"arguments": text[at : at + size]}}
            out.append(chunk({"tool_calls": [entry]}, usage=None))
    out.append(chunk({}, finish, usage=None))
    out.append(b"data: " + orjson.dumps({**FRAME, "choices": [], "usage": USAGE}) + b"\n\n")
    return b"".join(out) + b"data: [DONE]\n\n"


def edited(body: bytes, edit: Edit) -> bytes:
    headers = SSE if body.startswith(b"data:") else (("content-type", "application/json"),)
    return edit_bytes(WIRE, Reply(200, headers, body), edit)


def said(body: bytes) -> Said:
    return WIRE.said(body, stream=body.startswith(b"data:"))


TEXT = "The weather in Paris is sunny today."


def test_a_whole_text_is_cut_and_says_so() -> None:
    fired = Fired()
    doc = orjson.loads(edited(whole(TEXT), Edit(max_tokens=3, on_change=fired)))
    assert fired.times == 1
    choice = doc["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"], choice["logprobs"]) == (
        "The weather",
        "length",
        None,
    )
    assert doc["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert {key: doc[key] for key in FRAME} == FRAME


def test_a_streamed_text_is_cut_within_its_event_and_ends_as_the_world_s_does() -> None:
    fired = Fired()
    body = streamed(["The wea", "ther in ", "Paris"])
    out = edited(body, Edit(max_tokens=3, on_change=fired))
    assert fired.times == 1
    before, after = events(body), events(out)
    assert [event.raw for event in after[:2]] == [event.raw for event in before[:2]]
    assert [orjson.loads(event.data or b"") for event in after[2:-1]] == [
        {
            **FRAME,
            "choices": [{"index": 0, "delta": {"content": "ther"}, "logprobs": None, "finish_reason": None}],
            "usage": None,
        },
        {**FRAME, "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}], "usage": None},
        {**FRAME, "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}},
    ]
    assert after[-1].data == b"[DONE]"


def test_a_stream_passes_at_once_up_to_the_cut() -> None:
    chunks = [chunk({"content": "one "}), chunk({"content": "two "}), chunk({"content": "three"})]
    reply = WIRE.edit(Reply(200, SSE, list(chunks)), Edit(max_tokens=100))
    assert list(pump(reply, lambda _: None)) == chunks


def test_cut_arguments_stay_a_json_prefix() -> None:
    call = tool(0, "search", '{"query":"weather in Paris"}')
    for body in (whole("Hi", call, finish="tool_calls"), streamed(["Hi"], call, finish="tool_calls")):
        after = said(edited(body, Edit(max_tokens=6)))
        assert [(c.id, c.name, c.arguments) for c in after.tool_calls] == [("call_0", "search", '{"query"')]
        assert (after.text, after.finish) == ("Hi", "length")


def test_a_tool_call_that_would_begin_after_the_end_is_left_out() -> None:
    calls = tool(0, "a", "{}"), tool(1, "b", "{}")
    for body in (whole(None, *calls), streamed([], *calls)):
        after = said(edited(body, Edit(max_tokens=2)))
        assert [c.name for c in after.tool_calls] == ["a"]
        assert after.finish == "length"
        assert said(edited(body, Edit(max_tokens=0))).tool_calls == ()
        assert edited(body, Edit(max_tokens=4)) == body


def test_a_message_without_tool_calls_left_does_not_have_the_key() -> None:
    doc = orjson.loads(edited(whole("Hi", tool(0, "a", "{}")), Edit(max_tokens=1)))
    assert "tool_calls" not in doc["choices"][0]["message"]


def test_a_legacy_function_call_is_cut_too() -> None:
    body = whole(None, function_call={"name": "f", "arguments": '{"a":1}'})
    assert said(edited(body, Edit(max_tokens=2))).tool_calls[0].arguments == '{"'
    assert (
        said(edited(whole("Hi", function_call={"name": "f", "arguments": "{}"}), Edit(max_tokens=1))).tool_calls == ()
    )


def test_reasoning_is_neither_cut_nor_counted() -> None:
    doc = orjson.loads(edited(whole(TEXT, reasoning_content="long thoughts " * 9), Edit(max_tokens=1)))
    assert doc["choices"][0]["message"]["reasoning_content"] == "long thoughts " * 9
    usage = {**USAGE, "completion_tokens_details": {"reasoning_tokens": 20}}
    body = orjson.dumps({**orjson.loads(whole(TEXT)), "usage": usage})
    assert orjson.loads(edited(body, Edit(max_tokens=3)))["usage"]["completion_tokens"] == 23


def test_usage_is_cut_wherever_it_is_stated() -> None:
    said = chunk({"content": "The weather in Paris"}) + chunk({}, "stop", usage=USAGE, x_groq={"usage": USAGE})
    last = orjson.loads(events(edited(said, Edit(max_tokens=3)))[-1].data or b"")
    assert last["usage"] == last["x_groq"]["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def test_content_in_parts_keeps_its_form() -> None:
    parts = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": "one two"},
        {"type": "text", "text": "more"},
    ]
    message = orjson.loads(edited(whole(parts), Edit(max_tokens=1)))["choices"][0]["message"]
    assert message["content"] == [parts[0], {"type": "text", "text": "one"}]
    message = orjson.loads(edited(whole(parts), Edit(text=str.upper)))["choices"][0]["message"]
    assert message["content"] == [parts[0], {"type": "text", "text": "ONE TWOMORE"}]


def test_each_choice_is_cut_by_itself() -> None:
    body = b"".join(
        [
            chunk({"content": "a b c"}, index=0),
            chunk({"content": "x"}, index=1),
            chunk({"content": " d"}, index=0),
            chunk({}, "stop", index=0),
            chunk({}, "stop", index=1),
            b"data: [DONE]\n\n",
        ]
    )
    out = [orjson.loads(event.data or b"")["choices"][0] for event in events(edited(body, Edit(max_tokens=2)))[:-1]]
    assert [(c["index"], c["delta"].get("content"), c["finish_reason"]) for c in out] == [
        (0, "a b", None),
        (1, "x", None),
        (0, None, "length"),
        (1, None, "stop"),
    ]


def test_a_stream_that_never_says_why_it_ended_does_when_it_was_cut() -> None:
    body = chunk({"content": "a b c"}) + chunk({"content": ""}, usage=USAGE) + b"data: [DONE]\n\n"
    after = said(edited(body, Edit(max_tokens=1)))
    assert (after.text, after.finish, after.complete, after.model) == ("a", "length", True, "m")
    assert after.usage
    assert (after.usage.input, after.usage.output) == (7, 1)


def test_a_late_chunk_with_usage_goes_on_empty() -> None:
    last = chunk({"content": "late"}, usage=USAGE)
    out = edited(chunk({"content": "a b"}) + chunk({}, "stop") + last + b"data: [DONE]\n\n", Edit(max_tokens=1))
    final = orjson.loads(events(out)[-2].data or b"")
    assert final["choices"][0]["delta"] == {}
    assert final["usage"]["completion_tokens"] == 1


def test_a_broken_event_after_the_cut_does_not_leak() -> None:
    out = edited(chunk({"content": "a b"}) + b'data: {"secret\n\n' + b"data: [DONE]\n\n", Edit(max_tokens=1))
    assert b"secret" not in out
    out = edited(chunk({"content": "a b"}) + b'data: {"secret\n\n' + b"data: [DONE]\n\n", Edit(max_tokens=9))
    assert b"secret" in out


def test_a_mapped_stream_comes_in_as_many_pieces_as_before() -> None:
    fired = Fired()
    out = edited(streamed(["ab", "cd", "ef"], tool(0, "f", "{}")), Edit(text=str.upper, on_change=fired))
    texts = [c["delta"].get("content") for e in events(out)[:-1] for c in orjson.loads(e.data or b"")["choices"]]
    assert texts[:4] == ["", "AB", "CD", "EF"]
    assert fired.times == 1
    assert said(out).tool_calls[0].name == "f"


def test_text_is_put_into_an_answer_that_had_none() -> None:
    for body in (whole(None, tool(0, "f", "{}")), streamed([], tool(0, "f", "{}")), streamed([])):
        after = said(edited(body, Edit(text=lambda old: old + "I cannot.", drop_tool_calls=True, finish="stop")))
        assert (after.text, after.tool_calls, after.finish) == ("I cannot.", (), "stop")


def test_dropped_tool_calls_leave_the_stream_unhurried() -> None:
    chunks = [chunk({"content": "a"}), chunk({"tool_calls": [tool(0, "f", "{}")]}), chunk({}, "tool_calls")]
    out = list(pump(WIRE.edit(Reply(200, SSE, list(chunks)), Edit(drop_tool_calls=True)), lambda _: None))
    assert out[0] == chunks[0]
    assert said(b"".join(out)).tool_calls == ()


def test_a_finish_that_is_already_there_is_no_change() -> None:
    fired = Fired()
    for body in (whole(TEXT), streamed([TEXT])):
        assert edited(body, Edit(finish="stop", on_change=fired)) == body
    assert fired.times == 0
    assert said(edited(streamed([TEXT]), Edit(finish="length", on_change=fired))).finish == "length"
    assert fired.times == 1


@given(
    st.lists(st.text("ab ,\n", max_size=6), max_size=6),
    st.lists(st.text('{}":a1', min_size=1, max_size=12), max_size=3),
    st.integers(0, 25),
    st.integers(1, 5),
)
def test_whole_and_streamed_answers_are_cut_alike(
    pieces: list[str], arguments: list[str], limit: int, size: int
) -> None:
    calls = [tool(index, f"f{index}", text) for index, text in enumerate(arguments)]
    edit = Edit(max_tokens=limit)
    one = said(edited(whole("".join(pieces), *calls), edit))
    other = said(edited(streamed(pieces, *calls, size=size), edit))
    assert one == other
    assert count_tokens(one.text) + sum(count_tokens(c.arguments) for c in one.tool_calls) <= limit


KEYS = [
    *(
        "choices",
        "message",
        "delta",
        "content",
        "tool_calls",
        "function",
        "function_call",
        "custom",
        "name",
        "logprobs",
    ),
    *("arguments", "input", "index", "id", "usage", "completion_tokens", "finish_reason", "type", "text", "error"),
]
EDITS = st.builds(
    Edit,
    max_tokens=st.none() | st.integers(0, 3),
    text=st.sampled_from([None, str.upper, lambda _: ""]),
    drop_tool_calls=st.booleans(),
    finish=st.sampled_from([None, "length", "stop"]),
)


@given(st.lists(hostile_json(KEYS), max_size=4), EDITS)
def test_hostile_replies_are_edited_without_an_exception(values: list[object], edit: Edit) -> None:
    for value in values:
        edited(orjson.dumps({"choices": [{"message": value}, value]}), edit)
    body = b"".join(b"data: " + orjson.dumps({"choices": [{"delta": value}, value]}) + b"\n\n" for value in values)
    edit_bytes(WIRE, Reply(200, SSE, body), edit)


@given(st.binary(), EDITS)
def test_bytes_that_are_no_reply_stay_what_they_are(body: bytes, edit: Edit) -> None:
    assert edit_bytes(WIRE, Reply(200, (), body), edit) == body


@pytest.mark.parametrize("body", [b"{}", b'{"choices":[]}', b'{"choices":[{"text":"completion"}]}', b"[1]"])
def test_another_document_is_left_alone(body: bytes) -> None:
    assert edited(body, Edit(max_tokens=0, text=str.upper)) == body
