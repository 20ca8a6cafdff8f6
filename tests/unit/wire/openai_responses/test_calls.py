from __future__ import annotations

from dataclasses import replace

import wire_responses as make
from flakestorm.core.call import Reply
from flakestorm.wire.base import Edit, ToolCall
from flakestorm.wire.openai_responses.calls import RESPONSES_CALLS
from wire_support import edit_bytes


def rename(call: ToolCall) -> ToolCall:
    return replace(call, name="other", arguments='{"n":1}')


def test_every_event_that_states_a_call_states_the_new_one() -> None:
    body = make.streamed(make.message("hi"), make.tool("pay", '{"eur": 120}'))
    docs = make.documents(edit_bytes(make.WIRE, Reply(200, make.SSE, body), Edit(calls=rename)))
    items = [doc["item"] for doc in docs if doc["type"].startswith("response.output_item") and doc["output_index"] == 1]
    assert [(item["name"], item["arguments"]) for item in items] == [("other", ""), ("other", '{"n":1}')]
    assert "".join(doc["delta"] for doc in docs if doc["type"] == "response.function_call_arguments.delta") == '{"n":1}'
    assert [doc["arguments"] for doc in docs if doc["type"] == "response.function_call_arguments.done"] == ['{"n":1}']
    last = docs[-1]["response"]["output"][1]
    assert (last["name"], last["arguments"], last["call_id"]) == ("other", '{"n":1}', "call_pay")
    assert [doc["sequence_number"] for doc in docs] == list(range(len(docs)))


def test_a_call_that_only_the_end_states_is_changed_there() -> None:
    end = {"type": "response.completed", "response": make.response(make.tool("pay", "{}"))}
    assert RESPONSES_CALLS.has(end)
    assert RESPONSES_CALLS.put([end], rename) == {0}
    assert end["response"]["output"][0]["name"] == "other"  # type: ignore[index]


def test_a_custom_tool_has_its_input_changed() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "shell", "input": "ls"}
    doc = make.response(item)
    assert RESPONSES_CALLS.put([doc], lambda call: replace(call, arguments=call.arguments + " -l")) == {0}
    assert (item["name"], item["input"]) == ("shell", "ls -l")


def test_a_finished_event_may_name_the_tool() -> None:
    docs = [
        {"type": "response.output_item.added", "output_index": 0, "item": make.tool("pay", "")},
        {"type": "response.function_call_arguments.done", "output_index": 0, "name": "pay", "arguments": "{}"},
        {"type": "response.output_item.done", "output_index": 0, "item": make.tool("pay", "{}")},
    ]
    assert RESPONSES_CALLS.put(docs, rename) == {0, 1, 2}
    assert docs[1]["name"] == "other"
