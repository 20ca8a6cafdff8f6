from __future__ import annotations

import pytest

from flakestorm.wire.ollama.results import find, spell
from flakestorm.wire.results import Told


def called(*calls: tuple[str, str, dict[str, object]]) -> dict[str, object]:
    listed = [{"function": {"name": n, "arguments": a}, **({"id": i} if i else {})} for i, n, a in calls]
    return {"role": "assistant", "content": "", "tool_calls": listed}


def names(*messages: dict[str, object]) -> list[tuple[str, str]]:
    return [(result.name, result.asked) for result in find({"messages": list(messages)})]


def test_a_result_that_names_its_tool() -> None:
    two = called(("", "search", {"to": "Oslo"}), ("", "pay", {}))
    answers = [
        {"role": "tool", "tool_name": "pay", "content": "paid"},
        {"role": "tool", "name": "search", "content": "3"},
    ]
    assert names(two, *answers) == [("pay", "{}"), ("search", '{"to":"Oslo"}')]


def test_without_a_name_results_answer_the_last_calls_in_order() -> None:
    answer = {"role": "tool", "content": "x"}
    messages = [
        called(("", "search", {"n": 1}), ("", "pay", {})),
        answer,
        answer,
        called(("", "search", {"n": 2})),
        answer,
    ]
    assert names(*messages) == [("search", '{"n":1}'), ("pay", "{}"), ("search", '{"n":2}')]


def test_an_id_where_there_is_one() -> None:
    two = called(("a", "search", {}), ("b", "pay", {}))
    late = {"role": "tool", "tool_call_id": "a", "content": "x"}
    found = find({"messages": [two, {"role": "tool", "tool_call_id": "b", "content": "y"}, called(), late]})
    assert [(result.call_id, result.name) for result in found] == [("b", "pay"), ("a", "search")]


def test_where_a_result_stands_and_what_it_tells() -> None:
    (result,) = find({"messages": [{"role": "user", "content": "hi"}, {"role": "tool", "content": "x", "images": []}]})
    assert (result.call_id, result.name, result.told, result.path) == ("", "", Told("x"), ("messages", 1))


@pytest.mark.parametrize(
    "doc", [{}, {"messages": 3}, {"messages": [None, {"role": "assistant", "tool_calls": [None, 3, {"function": 1}]}]}]
)
def test_what_does_not_fit_is_passed_over(doc: dict[str, object]) -> None:
    assert find(doc) == []


def test_failures_are_told_in_words() -> None:
    assert spell({"content": "x"}, Told("Error: no", failed=True)) == {"content": "Error: no"}
