from __future__ import annotations

import pytest

from flakestorm.wire.anthropic.results import find, spell
from flakestorm.wire.results import Told


def test_results_are_named_by_the_blocks_that_called() -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "...", "signature": "s"},
                {"type": "tool_use", "id": "t1", "name": "search", "input": {}},
                {"type": "tool_use", "id": "t2", "name": "pay", "input": {}},
                {"type": "server_tool_use", "id": "s1", "name": "web_search"},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": True},
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "found"}]},
                {"type": "text", "text": "and?"},
            ],
        },
    ]
    pay, search = find({"messages": messages})
    assert (pay.call_id, pay.name, pay.told, pay.path) == ("t2", "pay", Told("no", True), ("messages", 2, "content", 0))
    assert (search.name, search.told, search.path) == ("search", Told("found"), ("messages", 2, "content", 1))


@pytest.mark.parametrize(
    "doc", [{}, {"messages": 3}, {"messages": [None, {"content": [None, 3, {}, {"type": []}]}, {"content": "x"}]}]
)
def test_what_does_not_fit_is_passed_over(doc: dict[str, object]) -> None:
    assert find(doc) == []


@pytest.mark.parametrize(
    ("entry", "told", "members"),
    [
        ({"content": "x"}, Told("y"), {"content": "y"}),
        ({"content": "x"}, Told("no", True), {"content": "no", "is_error": True}),
        ({"content": "x", "is_error": False}, Told("no", True), {"content": "no", "is_error": True}),
        ({"content": "x", "is_error": False}, Told("y"), {"content": "y"}),
        ({"content": "x", "is_error": True}, Told("y"), {"content": "y", "is_error": False}),
        ({"content": "x", "is_error": True}, Told("no", True), {"content": "no"}),
        ({}, Told("y"), {"content": "y"}),
        ({"content": [{"type": "image"}]}, Told("y"), {"content": [{"type": "text", "text": "y"}]}),
        ({"content": [{"type": "text", "text": "x"}]}, Told(""), {"content": ""}),
    ],
)
def test_a_failure_is_marked(entry: dict[str, object], told: Told, members: dict[str, object]) -> None:
    assert spell(entry, told) == members
