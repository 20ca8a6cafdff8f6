import pytest

from flakestorm.wire.base import ToolCall
from flakestorm.wire.openai_chat.parts import Fragments, content_text, function_of, slot_of


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hi", "hi"),
        (None, ""),
        (7, ""),
        ([{"type": "text", "text": "a"}, {"type": "thinking", "text": "b"}, "c", {"type": "text", "text": "d"}], "ad"),
        ([{"type": "text"}, {"type": "text", "text": None}], ""),
    ],
)
def test_content_text(content: object, text: str) -> None:
    assert content_text(content) == text


def test_a_custom_tool_takes_its_input_as_text() -> None:
    assert function_of({"custom": {"name": "sql", "input": "select"}}) == ({"name": "sql", "input": "select"}, "input")
    assert function_of({"function": {"name": "f"}}) == ({"name": "f"}, "arguments")
    assert function_of({}) == ({}, "arguments")


def test_fragments_without_an_index_follow_the_last_call_that_had_an_id() -> None:
    fragments = Fragments()
    for entry in (
        {"id": "a", "function": {"name": "f", "arguments": "{"}},
        {"function": {"arguments": "}"}},
        {"id": "b", "function": {"name": "g", "arguments": "[]"}},
    ):
        fragments.add({"tool_calls": [entry]}, streamed=True)
    assert fragments.calls() == (ToolCall("a", "f", "{}"), ToolCall("b", "g", "[]"))


def test_an_index_outweighs_an_id() -> None:
    assert slot_of({"index": 2, "id": "x"}, 0, None) == 2
    assert slot_of({"id": "x"}, 0, 2) == "x"
    assert slot_of({}, 3, None) == 3


def test_calls_of_a_whole_message_are_told_apart_by_position() -> None:
    fragments = Fragments()
    fragments.add({"tool_calls": [{"function": {"name": "f"}}, {"function": {"name": "f"}}, "noise"]}, streamed=False)
    assert fragments.calls() == (ToolCall("", "f", ""), ToolCall("", "f", ""))


def test_arguments_that_are_not_text_become_json() -> None:
    fragments = Fragments()
    fragments.add({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]}, streamed=False)
    fragments.add({"function_call": {"name": "old", "arguments": "{}"}}, streamed=False)
    assert fragments.calls() == (ToolCall("a", "f", '{"x":1}'), ToolCall("", "old", "{}"))
