from __future__ import annotations

import pytest

from flakestorm.wire.openai_chat.results import find, spell
from flakestorm.wire.results import Told


def called(*calls: tuple[str, str]) -> dict[str, object]:
    return {"role": "assistant", "tool_calls": [{"id": i, "function": {"name": n}} for i, n in calls]}


def test_a_result_is_named_by_the_call_it_answers() -> None:
    parts = [{"type": "text", "text": "fo"}, {"type": "text", "text": "und"}]
    messages = [
        {"role": "user", "content": "hi"},
        called(("c1", "search"), ("c2", "pay")),
        {"role": "tool", "tool_call_id": "c2", "content": "paid"},
        {"role": "tool", "tool_call_id": "c1", "content": parts},
    ]
    first, second = find({"messages": messages})
    assert (first.call_id, first.name, first.told, first.path) == ("c2", "pay", Told("paid"), ("messages", 2))
    assert (second.call_id, second.name, second.told, second.path) == ("c1", "search", Told("found"), ("messages", 3))


def test_of_calls_with_one_id_the_last_before_the_result_counts() -> None:
    answer = {"role": "tool", "tool_call_id": "1", "content": ""}
    messages = [called(("1", "search")), answer, called(("1", "pay")), answer]
    assert [result.name for result in find({"messages": messages})] == ["search", "pay"]


def test_the_message_s_own_name_is_second_best() -> None:
    answer = {"role": "tool", "tool_call_id": "1", "name": "mine", "content": ""}
    assert [result.name for result in find({"messages": [answer]})] == ["mine"]
    assert [result.name for result in find({"messages": [called(("1", "search")), answer]})] == ["search"]


def test_custom_tools_and_the_older_functions() -> None:
    messages = [
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "shell", "input": "ls"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "files"},
        {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": '{"a":1}'}},
        {"role": "function", "name": "old", "content": "done"},
    ]
    custom, older = find({"messages": messages})
    assert (custom.call_id, custom.name) == ("c1", "shell")
    assert (older.call_id, older.name, older.asked, older.told) == ("", "old", '{"a":1}', Told("done"))


@pytest.mark.parametrize(
    "doc",
    [
        {},
        {"messages": "no"},
        {"messages": [None, 3, "x", {"role": 3}, {"role": "assistant", "tool_calls": "x", "function_call": 3}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": 1}, None]}]},
    ],
)
def test_what_does_not_fit_is_passed_over(doc: dict[str, object]) -> None:
    assert find(doc) == []


def test_a_result_without_anything_is_still_one() -> None:
    (result,) = find({"messages": [{"role": "tool"}]})
    assert (result.call_id, result.name, result.told) == ("", "", Told(""))


def test_failures_are_told_in_words() -> None:
    assert spell({"content": "x"}, Told("Error: no", failed=True)) == {"content": "Error: no"}
    assert spell({"content": [{"type": "text", "text": "x"}]}, Told("y")) == {
        "content": [{"type": "text", "text": "y"}]
    }
