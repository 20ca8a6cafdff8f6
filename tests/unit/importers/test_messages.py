"""Who said what, in every spelling that traces have for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.importers.messages import as_text, conversation, counted, declared, parsed, tool_said, unflattened

HI = [{"role": "user", "content": "hi"}]
ARGS = {"city": "Oslo"}
KEYS = ["role", "content", "parts", "type", "tool_calls", "message", "kwargs", "id", "data", "messages", "system",
        "function", "choices", "text"]  # fmt: skip


def called(key: str = "c1") -> dict[str, Any]:
    return {"id": key, "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}


@pytest.mark.parametrize(
    "value",
    [
        "hi",
        ["hi"],
        HI,
        json.dumps(HI),
        {"messages": HI},
        {"messages": [HI]},
        {"args": ["hi"]},
        {"prompts": ["hi"]},
        {"model": "gemini", "contents": "hi"},
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
        [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
        [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        [{"message": {"role": "user", "contents": [{"message_content": {"type": "text", "text": "hi"}}]}}],
        [[{"lc": 1, "type": "constructor", "id": ["x", "HumanMessage"], "kwargs": {"content": "hi", "type": "human"}}]],
        [{"type": "human", "content": "hi"}],
        [{"type": "human", "data": {"content": "hi"}}],
    ],
)
def test_a_question(value: Any) -> None:
    assert conversation(value) == HI


@pytest.mark.parametrize(
    "value",
    [
        {"role": "assistant", "tool_calls": [called()]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": ARGS}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": ARGS}]},
        {"type": "function_call", "call_id": "c1", "id": "fc", "name": "weather", "arguments": ARGS},
        {"output": [{"type": "function_call", "call_id": "c1", "name": "weather", "arguments": ARGS}]},
        {
            "role": "tool",
            "content": [{"function": {"name": "weather", "arguments": ARGS}, "id": "c1", "type": "function"}],
        },
        {
            "type": "constructor",
            "id": ["AIMessage"],
            "kwargs": {"tool_calls": [{"id": "c1", "name": "weather", "args": ARGS}]},
        },
        {"message": {"role": "assistant", "tool_calls": [{"tool_call": called()}]}},
        {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [called()]}}]},
    ],
)
def test_a_tool_call(value: Any) -> None:
    (found,) = conversation(value, role="assistant")
    assert found["role"] == "assistant"
    assert not found["content"]
    assert found["tool_calls"] == [called()]


@pytest.mark.parametrize(
    "result",
    [
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "tool", "content": "rain"},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "rain"}]},
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "name": "weather", "result": "rain"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"text": "rain"}]}]},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": "rain"}}]},
    ],
)
def test_a_tool_result_answers_its_call(result: Any) -> None:
    asked = {"role": "assistant", "tool_calls": [called()]}
    found = conversation([asked, result])[-1]
    assert (found["role"], found["tool_call_id"], found["content"]) == ("tool", "c1", "rain")


def test_a_result_that_is_no_text_is_kept() -> None:
    assert conversation([{"role": "tool", "content": [{"title": "x"}]}])[0]["content"] == '[{"title":"x"}]'


def test_candidates_reasoning_and_finish() -> None:
    reply = {"candidates": [{"content": {"role": "model", "parts": [{"text": "no", "thought": True}, {"text": "yes"}]},
                             "finish_reason": "STOP"}]}  # fmt: skip
    assert conversation(reply, role="assistant") == [{"role": "assistant", "content": "yes", "finish_reason": "STOP"}]
    assert conversation([{"type": "reasoning", "summary": []}]) == []


def test_system_words_beside_the_messages() -> None:
    assert conversation({"system": "be nice", "messages": HI})[0] == {"role": "system", "content": "be nice"}


def test_system_words_in_the_configuration_of_a_request() -> None:
    asked = {"model": "g", "config": {"system_instruction": "Greet."}, "contents": [{"role": "user", "parts": ["x"]}]}
    assert conversation(asked)[0] == {"role": "system", "content": "Greet."}


def test_an_id_that_is_no_text_is_the_same_for_call_and_result() -> None:
    key = ["run_1", "call_1"]
    call = {"role": "assistant", "parts": [{"type": "tool_call", "id": key, "name": "f", "arguments": {}}]}
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": key, "response": "sun"}]}
    asked, said = conversation([call, result])
    assert asked["tool_calls"][0]["id"] == said["tool_call_id"] == '["run_1","call_1"]'


def test_tools_on_offer() -> None:
    offer = {"type": "function", "function": {"name": "f", "parameters": {}}}
    assert declared([{"role": "user", "content": "x"}, {"role": "tool", "content": offer}]) == [offer]
    assert declared(json.dumps({"messages": [], "tools": [offer]})) == [offer]
    assert declared({"config": {"tools": [{"function_declarations": [{"name": "f"}]}]}}) == [{"name": "f"}]
    called = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert declared([{"role": "tool", "content": called}, "noise"]) == declared(7) == []


def test_a_tool_s_message_is_what_it_carries() -> None:
    assert tool_said({"type": "tool", "content": "sun"}) == "sun"
    assert tool_said({"kwargs": {"tool_call_id": "c", "content": [1]}}) == [1]
    assert tool_said({"content": "sun"}) == {"content": "sun"}
    assert tool_said("sun") == "sun"


def test_tokens_that_an_answer_states() -> None:
    assert counted({"usage": {"prompt_tokens": 0, "completion_tokens": 2}}) == (0, 2)
    assert counted({"usage_metadata": {"prompt_token_count": 1, "candidates_token_count": 2}}) == (1, 2)
    assert counted({"usageMetadata": {"promptTokenCount": 1}}) == (1, None)
    assert counted("words") == counted({"usage": {}}) == (None, None)


def test_flattened_names() -> None:
    of = {"p.1.role": "b", "p.0.role": "a", "p.0.calls.0.name": "x", "q.0": 1}
    assert unflattened(of, "p") == [{"role": "a", "calls": [{"name": "x"}]}, {"role": "b"}]
    assert unflattened(of, "gone") == []


def test_texts() -> None:
    assert parsed(json.dumps(json.dumps([1]))) == [1]
    assert parsed("{broken") == "{broken"
    assert [as_text(value) for value in (None, "x", [1])] == ["", "x", "[1]"]


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
))  # fmt: skip
def test_nothing_breaks_it(value: Any) -> None:
    for message in conversation(value):
        assert message["role"] in ("user", "assistant", "system", "tool")
