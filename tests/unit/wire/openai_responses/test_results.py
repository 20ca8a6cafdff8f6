from __future__ import annotations

import pytest

from flakestorm.wire.openai_responses.results import find, spell
from flakestorm.wire.results import Told

OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "found"}


def test_results_are_named_by_the_items_that_called() -> None:
    items = [
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "..."},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "search", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "shell", "input": "ls"},
        OUTPUT,
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "files"}]},
        {"type": "web_search_call", "id": "ws_1"},
    ]
    search, shell = find({"input": items})
    assert (search.call_id, search.name, search.told, search.path) == ("c1", "search", Told("found"), ("input", 4))
    assert (shell.call_id, shell.name, shell.told, shell.path) == ("c2", "shell", Told("files"), ("input", 5))
    assert not search.resumed


def test_tools_of_openai_s_own_kind_are_called_by_their_type() -> None:
    items = [
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "action": {}},
        {"type": "local_shell_call_output", "id": "c1", "output": "files"},
        {"type": "tool_search_call", "call_id": "c2", "execution": "client"},
        {"type": "function_call_output", "call_id": "c2", "output": "none"},
    ]
    assert [(result.name, result.told.text) for result in find({"input": items})] == [
        ("local_shell", "files"),
        ("tool_search", "none"),
    ]


@pytest.mark.parametrize("kept", [{"previous_response_id": "resp_1"}, {"conversation": {"id": "conv_1"}}])
def test_where_the_provider_keeps_the_conversation_the_name_is_not_there(kept: dict[str, object]) -> None:
    (result,) = find({"input": [OUTPUT], **kept})
    assert (result.call_id, result.name, result.resumed) == ("c1", "", True)


@pytest.mark.parametrize(
    "doc", [{}, {"input": "hi"}, {"input": [None, 3, {}, {"type": []}]}, {"input": [{"type": "function_call"}]}]
)
def test_what_does_not_fit_is_passed_over(doc: dict[str, object]) -> None:
    assert find(doc) == []


def test_the_shape_stays() -> None:
    assert spell(OUTPUT, Told("Error: no", failed=True)) == {"output": "Error: no"}
    parts = [{"type": "input_image"}, {"type": "input_text", "text": "x"}]
    assert spell({"output": parts}, Told("y")) == {"output": [{"type": "input_text", "text": "y"}]}
