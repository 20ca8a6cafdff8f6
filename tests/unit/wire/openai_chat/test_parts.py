from flakestorm.wire.base import ToolCall
from flakestorm.wire.openai_chat.parts import Fragments, function_of


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


def streamed(*entries: dict[str, object]) -> tuple[ToolCall, ...]:
    fragments = Fragments()
    for entry in entries:
        fragments.add({"tool_calls": [entry]}, streamed=True)
    return fragments.calls()


def test_an_index_outweighs_an_id_that_changes_from_fragment_to_fragment() -> None:
    assert streamed(
        {"index": 2, "id": "x", "function": {"name": "f", "arguments": "{"}},
        {"index": 2, "id": "y", "function": {"arguments": "}"}},
        {"index": 2, "id": "z", "function": {"name": "", "arguments": " "}},
    ) == (ToolCall("x", "f", "{} "),)


def test_a_name_may_come_in_fragments_too() -> None:
    assert streamed(
        {"index": 0, "id": "x", "function": {"name": "get_", "arguments": ""}},
        {"index": 0, "function": {"name": "time", "arguments": "{}"}},
        {"index": 0, "id": "x", "function": {"name": "s"}},
    ) == (ToolCall("x", "get_times", "{}"),)


def test_calls_that_share_an_index_are_told_apart_where_each_has_an_id_and_a_name() -> None:
    assert streamed(
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"index": 0, "id": "b", "function": {"name": "g", "arguments": '{"y":'}},
        {"index": 0, "function": {"arguments": "2}"}},
    ) == (ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", '{"y":2}'))


def test_calls_without_index_and_id_each_begin_with_a_name() -> None:
    assert streamed(
        {"id": "", "function": {"name": "f", "arguments": "{"}},
        {"function": {"arguments": "}"}},
        {"id": "", "function": {"name": "g", "arguments": "{}"}},
    ) == (ToolCall("", "f", "{}"), ToolCall("", "g", "{}"))


def test_calls_of_a_whole_message_are_told_apart_by_position() -> None:
    fragments = Fragments()
    fragments.add({"tool_calls": [{"function": {"name": "f"}}, {"function": {"name": "f"}}, "noise"]}, streamed=False)
    assert fragments.calls() == (ToolCall("", "f", ""), ToolCall("", "f", ""))


def test_arguments_that_are_not_text_become_json() -> None:
    fragments = Fragments()
    fragments.add({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]}, streamed=False)
    fragments.add({"function_call": {"name": "old", "arguments": "{}"}}, streamed=False)
    assert fragments.calls() == (ToolCall("a", "f", '{"x":1}'), ToolCall("", "old", "{}"))
