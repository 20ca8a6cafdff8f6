"""Messages that stand in the events of a span."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.importers.messages import conversation
from flakestorm.importers.span_events import asked_in, said_in, tool_in

FIND = {"type": "function", "function": {"name": "find", "arguments": '{"q":"x"}'}}
ASKED = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Weather?"}]


def azure(name: str, message: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return name, {"gen_ai.system": "az.ai.inference", "gen_ai.event.content": json.dumps(message)}


FORMS = {
    "attributes": [
        ("gen_ai.system.message", {"content": "Be kind."}),
        ("gen_ai.user.message", {"content": "Weather?"}),
        ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": json.dumps({"content": "Sunny."})}),
    ],
    "JSON in one attribute": [
        azure("gen_ai.system.message", {"role": "system", "content": "Be kind."}),
        azure("gen_ai.user.message", {"role": "user", "content": "Weather?"}),
        azure("gen_ai.choice", {"message": {"content": "Sunny."}, "finish_reason": "stop", "index": 0}),
    ],
    "content blocks": [
        ("gen_ai.system.message", {"content": '[{"text": "Be kind."}]'}),
        ("gen_ai.user.message", {"content": '[{"text": "Weather?"}]'}),
        ("gen_ai.choice", {"finish_reason": "stop", "message": '[{"text": "Sunny."}]'}),
    ],
    "bare text": [
        ("gen_ai.system.message", {"content": "Be kind."}),
        ("gen_ai.user.message", {"content": "Weather?"}),
        ("gen_ai.choice", {"finish_reason": "stop", "message": "Sunny."}),
    ],
}


@pytest.mark.parametrize("events", FORMS.values(), ids=FORMS)
def test_every_convention_says_the_same(events: list[tuple[str, dict[str, Any]]]) -> None:
    assert conversation(asked_in(events, {})) == ASKED
    assert conversation(said_in(events, {})) == [{"role": "assistant", "content": "Sunny.", "finish_reason": "stop"}]


def test_events_that_an_attribute_of_the_span_holds() -> None:
    logged = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather?"},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Sunny."}},
        "noise",
    ]
    assert conversation(asked_in([], {"events": json.dumps(logged)})) == ASKED[1:]
    assert conversation(said_in([], {"events": logged}))[0]["content"] == "Sunny."
    assert asked_in([], {"events": "words"}) == []


def test_tool_calls_in_blocks_and_beside_them() -> None:
    use = {"toolUse": {"toolUseId": "t1", "name": "find", "input": {"q": "x"}}}
    blocks = [("gen_ai.choice", {"message": json.dumps([{"text": "Let me look."}, use])})]
    beside = [("gen_ai.choice", {"content": "Let me look.", "tool_calls": json.dumps([{"id": "t1", **FIND}])})]
    for events in (blocks, beside):
        (message,) = conversation(said_in(events, {}))
        assert (message["content"], message["tool_calls"]) == ("Let me look.", [{"id": "t1", **FIND}])
    answer = {"toolResult": {"toolUseId": "t1", "content": [{"text": "sun"}], "status": "success"}}
    asked = [*blocks, ("gen_ai.user.message", {"content": json.dumps([answer])})]
    assert conversation(asked_in(asked, {})) == [{"role": "tool", "tool_call_id": "t1", "content": "sun"}]


def test_a_text_that_is_a_list_of_something_else_stays_a_text() -> None:
    for text in ("[]", "[1]", '[{"a": 1}]', '{"text": "x"}'):
        assert conversation(asked_in([("gen_ai.user.message", {"content": text})], {}))[0]["content"] == text


def test_what_a_tool_was_given_and_said() -> None:
    events = [
        ("gen_ai.tool.message", {"role": "tool", "id": "t1", "content": '{"q": "x"}'}),
        ("gen_ai.choice", {"id": "t1", "message": '[{"text": "su"}, {"text": "n"}]'}),
    ]
    assert tool_in(events) == ({"q": "x"}, "sun")
    assert tool_in([("gen_ai.choice", {"message": "sun"})]) == (None, "sun")
    mixed = [{"text": "a"}, {"image": {}}]
    assert tool_in([("gen_ai.choice", {"message": json.dumps(mixed)})]) == (None, mixed)
    assert tool_in([("other", {})]) == (None, None)


NAMES = ["gen_ai.choice", "gen_ai.user.message", "gen_ai.tool.message", "gen_ai.content.prompt", "x"]
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | st.sampled_from(['[{"text": 1}]', "{}", "[", '"']),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["text", "content"]), inner),
    max_leaves=6,
)
KEYS = ["content", "message", "tool_calls", "gen_ai.event.content", "gen_ai.prompt", "role"]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))))
def test_nothing_breaks_it(events: list[tuple[str, dict[str, Any]]]) -> None:
    conversation([*asked_in(events, {}), *said_in(events, {"events": events})])
    tool_in(events)
