from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import pump, read
from flakestorm.wire.base import Edit, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.ollama.protocol import Ollama
from flakestorm.wire.tokens import count_tokens
from wire_ollama import END, HEAD, JSON, NDJSON, chat, generation, lines, streamed
from wire_support import Fired, edit_said

WIRE = Ollama()
URL = "http://127.0.0.1:11434/api/chat"
PARIS = ("weather", {"city": "Paris", "days": 3})


def both(doc: Any) -> list[Reply]:
    return [generation(doc), streamed(doc)]


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        (URL, {"model": "qwen3:8b", "messages": []}, "qwen3:8b"),
        ("http://h/api/generate", {"model": "q", "prompt": ""}, "q"),
        ("http://h/api/generate", {"model": "q"}, None),
        (URL, {"messages": []}, None),
        (URL, {"model": "", "messages": []}, None),
        ("http://h/v1/chat", {"model": "q", "messages": []}, None),
    ],
)
def test_a_request_is_known_by_its_path_and_the_model_it_names(url: str, body: object, model: str | None) -> None:
    call = Call("POST", url, body=orjson.dumps(body))
    assert WIRE.model_of(call) == model
    assert WIRE.recognises(call) is (model is not None)


def test_a_conversation_is_read_and_results_find_their_calls() -> None:
    calls = [
        {"function": {"name": "weather", "arguments": {"city": "Oslo"}}},
        {"function": {"name": "news", "arguments": {}}},
    ]
    body = {
        "model": "q",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "content": "snow", "tool_name": "weather"},
            {"role": "tool", "content": "none"},
        ],
        "tools": [{"type": "function", "function": {"name": "weather"}}],
    }
    asked = WIRE.asked(orjson.dumps(body))
    assert (asked.model, asked.stream, asked.tools) == ("q", True, ("weather",))
    assert asked.turns == (
        Turn("user", "hi"),
        Turn("assistant", "", (ToolCall("", "weather", '{"city":"Oslo"}'), ToolCall("", "news", "{}"))),
        Turn("tool", "", (), (ToolResult("", "weather", "snow"),)),
        Turn("tool", "", (), (ToolResult("", "news", "none"),)),
    )


def test_ids_are_used_where_there_are_any() -> None:
    calls = [{"id": id_, "function": {"name": name}} for id_, name in (("c1", "f"), ("c2", "g"))]
    messages = [{"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_call_id": "c2", "content": "x"}]
    turns = WIRE.asked(orjson.dumps({"messages": messages})).turns
    assert turns[1].tool_results == (ToolResult("c2", "g", "x"),)


def test_a_generation_is_read() -> None:
    asked = WIRE.asked(b'{"model":"q","prompt":"why?","system":"short","stream":false}')
    assert (asked.stream, asked.turns) == (False, (Turn("system", "short"), Turn("user", "why?")))
    doc = {**HEAD, "response": "Because.", "thinking": "hm", **END}
    assert WIRE.said(orjson.dumps(doc), stream=False) == Said("Because.", (), "stop", Usage(11, 18), "qwen3:8b")
    assert orjson.loads(read(WIRE.edit(generation(doc), Edit(text=str.upper))))["response"] == "BECAUSE."


def test_whole_and_streamed_replies_are_read_alike() -> None:
    doc = chat("Sunny it is.", PARIS, thinking="hm")
    call = ToolCall("call_weather", "weather", '{"city":"Paris","days":3}')
    expected = Said("Sunny it is.", (call,), "stop", Usage(11, 18), "qwen3:8b")
    assert [WIRE.said(read(reply), stream=reply.streamed) for reply in both(doc)] == [expected] * 2
    assert WIRE.said(read(streamed(doc)), stream=False) == expected
    assert not WIRE.said(b"".join(lines(doc)[:-1]), stream=True).complete
    assert WIRE.said(b'{"error":"no model"}\n', stream=True).error == "no model"
    assert WIRE.said(b'{"model', stream=False) == Said(complete=False)


def test_a_reply_is_cut_and_says_so() -> None:
    for reply in both(chat("The weather in Paris", PARIS, thinking="a long long thought")):
        fired = Fired()
        said = edit_said(WIRE, reply, Edit(max_tokens=2, on_change=fired))
        assert said == Said("The weat", (), "length", Usage(11, 2), "qwen3:8b")
        assert fired.times == 1
        assert edit_said(WIRE, reply, Edit(max_tokens=0)).text == ""


def test_a_stream_passes_at_once_up_to_the_cut_and_ends_as_the_world_s_does() -> None:
    chunks = lines(chat("one two three"), size=4)
    out = list(pump(WIRE.edit(Reply(200, NDJSON, list(chunks)), Edit(max_tokens=2)), lambda _: None))
    assert out[:1] == chunks[:1]
    last = orjson.loads(out[-1])
    assert (last["done_reason"], last["eval_count"], last["message"]["content"]) == ("length", 2, "")
    assert {**orjson.loads(chunks[-1]), "done_reason": "length", "eval_count": 2} == last


def test_text_is_mapped_and_tool_calls_are_left_out() -> None:
    for reply in both(chat("So it is.", PARIS, thinking="hm")):
        mapped = edit_said(WIRE, reply, Edit(text=str.upper))
        assert (mapped.text, len(mapped.tool_calls)) == ("SO IT IS.", 1)
        silent = edit_said(WIRE, reply, Edit(text=lambda _: "", drop_tool_calls=True, finish="stop"))
        assert (silent.text, silent.tool_calls, silent.finish) == ("", (), "stop")
        assert b"hm" in read(WIRE.edit(reply, Edit(text=lambda _: "")))
    for reply in both(chat("", PARIS)):
        assert edit_said(WIRE, reply, Edit(text=lambda _: "new")).text == "new"


def test_lines_that_were_not_announced_are_edited_too() -> None:
    reply = Reply(200, JSON, b"".join(lines(chat("one two three"))))
    assert WIRE.said(read(WIRE.edit(reply, Edit(max_tokens=2))), stream=True).text == "one two"


def test_errors_are_ollama_s() -> None:
    reply = WIRE.failure(Failure("overloaded", message="busy"), Call("POST", URL))
    assert (reply.status, read(reply)) == (503, b'{"error":"busy"}')


@given(
    st.text("ab ,\n", max_size=20),
    st.lists(st.dictionaries(st.text("ab", max_size=4), st.integers(0, 99)), max_size=2),
    st.integers(0, 20),
    st.integers(1, 5),
)
def test_whole_and_streamed_answers_are_cut_alike(text: str, arguments: list[Any], limit: int, size: int) -> None:
    doc = chat(text, *((f"f{at}", given) for at, given in enumerate(arguments)))
    edit = Edit(max_tokens=limit)
    one, other = edit_said(WIRE, generation(doc), edit), edit_said(WIRE, streamed(doc, size=size), edit)
    assert one == other
    assert count_tokens(one.text) <= limit
