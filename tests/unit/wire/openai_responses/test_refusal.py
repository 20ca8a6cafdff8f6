from __future__ import annotations

import pytest

import wire_responses as make
from flakestorm.wire.base import Edit
from flakestorm.wire.openai_responses.refusal import refuse, refuse_event

NO = "I would rather not."
REFUSED = Edit(text=lambda _: NO, drop_tool_calls=True, finish="refusal")
ITEMS = {
    "text": [make.message("Yes, of course.")],
    "two texts": [make.message("Yes, ", "of course.")],
    "text and tool": [make.message("Yes."), make.tool("pay", "{}")],
    "tool": [make.REASONING, make.tool("pay", "{}")],
}


@pytest.mark.parametrize("items", ITEMS.values(), ids=ITEMS)
def test_every_event_states_the_refusal(items: list[make.Item]) -> None:
    docs = make.documents(make.edited(make.streamed(*items), REFUSED))
    kinds = [doc["type"] for doc in docs]
    assert not [kind for kind in kinds if "output_text" in kind or "function_call" in kind]
    assert "".join(doc["delta"] for doc in docs if doc["type"] == "response.refusal.delta") == NO
    assert "".join(doc["refusal"] for doc in docs if doc["type"] == "response.refusal.done") == NO
    parts = [doc["part"] for doc in docs if doc["type"] == "response.content_part.done"]
    assert {part["type"] for part in parts} == {"refusal"}
    done = [doc["item"] for doc in docs if doc["type"] == "response.output_item.done"]
    assert done == docs[-1]["response"]["output"]
    said = [part for item in done if item["type"] == "message" for part in item["content"]]
    assert "".join(part["refusal"] for part in said) == NO
    assert (kinds[-1], docs[-1]["response"]["status"]) == ("response.completed", "completed")
    assert [doc["sequence_number"] for doc in docs] == list(range(len(docs)))


@pytest.mark.parametrize("items", ITEMS.values(), ids=ITEMS)
def test_a_whole_response_states_it_too(items: list[make.Item]) -> None:
    body = make.edited(make.whole(*items), REFUSED)
    assert make.said(body).text == ""
    assert make.said(body).tool_calls == ()
    assert b'{"type":"refusal","refusal":"I would rather not."}' in body


def test_events_are_named_by_what_they_say() -> None:
    body = make.edited(make.streamed(make.message("Yes.")), REFUSED)
    assert b"event: response.refusal.delta\n" in body
    assert b"event: response.output_text" not in body


@pytest.mark.parametrize(
    "doc",
    [
        {"type": "response.created", "response": {}},
        {"type": "response.output_item.added", "item": make.tool("pay", "{}")},
        {"type": "response.content_part.added", "part": {"type": "refusal", "refusal": "no"}},
        {"type": ["hostile"]},
        {},
    ],
)
def test_what_states_no_text_is_left_alone(doc: make.Item) -> None:
    before = dict(doc)
    assert refuse_event(doc) is False
    assert doc == before


def test_reasoning_is_no_refusal() -> None:
    response = make.response(make.REASONING, make.message("No."))
    refuse(response)
    assert response["output"][0] == make.REASONING
    assert response["output"][1]["content"] == [{"type": "refusal", "refusal": "No."}]
