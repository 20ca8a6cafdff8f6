from __future__ import annotations

from dataclasses import replace

from flakestorm.wire.base import ToolCall
from flakestorm.wire.openai_chat.calls import CHAT_CALLS


def rename(call: ToolCall) -> ToolCall:
    return replace(call, name="other", arguments='{"n":1}')


def test_fragments_without_an_index_belong_to_the_last_call() -> None:
    docs = [
        {"choices": [{"delta": {"tool_calls": [{"id": "c1", "function": {"name": "pay", "arguments": '{"a"'}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": ":2}"}}]}}]},
    ]
    assert CHAT_CALLS.put(docs, rename) == {0, 1}
    first, second = (doc["choices"][0]["delta"]["tool_calls"][0]["function"] for doc in docs)  # type: ignore[index]
    assert (first["name"], first["arguments"] + second["arguments"]) == ("other", '{"n":1}')


def test_arguments_that_came_as_an_object_stay_one() -> None:
    function = {"name": "pay", "arguments": {"a": 2}}
    doc = {"choices": [{"message": {"tool_calls": [{"id": "c", "function": function}]}}]}
    assert CHAT_CALLS.put([doc], rename) == {0}
    assert function == {"name": "other", "arguments": {"n": 1}}
    assert CHAT_CALLS.put([doc], lambda call: replace(call, arguments="{")) == {0}
    assert function["arguments"] == "{"


def test_the_old_form_of_one_function_is_a_tool_call_too() -> None:
    function = {"name": "pay", "arguments": "{}"}
    doc = {"choices": [{"message": {"function_call": function}}]}
    assert CHAT_CALLS.has(doc)
    assert CHAT_CALLS.put([doc], rename) == {0}
    assert function == {"name": "other", "arguments": '{"n":1}'}


def test_each_choice_has_calls_of_its_own() -> None:
    def delta(index: int) -> dict[str, object]:
        entry = {"index": 0, "id": "c", "function": {"name": "pay", "arguments": "{}"}}
        return {"choices": [{"index": index, "delta": {"tool_calls": [entry]}}]}

    seen: list[ToolCall] = []
    CHAT_CALLS.put([delta(0), delta(1)], lambda call: seen.append(call) or call)  # type: ignore[func-returns-value]
    assert len(seen) == 2
