from __future__ import annotations

import pytest

from flakestorm.wire.cohere_results import find, holds, result_text, spell
from flakestorm.wire.results import Told

CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}


def test_a_result_is_named_by_the_call_with_its_id() -> None:
    asked = {"role": "assistant", "tool_plan": "p", "tool_calls": [CALL]}
    said = {"role": "tool", "tool_call_id": "c1", "content": "3 hits"}
    (result,) = find({"messages": [{"role": "user", "content": "hi"}, asked, said, "no message"]})
    assert (result.call_id, result.name, result.told) == ("c1", "search", Told("3 hits"))
    assert result.path == ("messages", 2)
    assert holds(b'{"role":"tool"}')
    assert not holds(b'{"role":"user"}')


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("x", "x"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "document", "document": {"data": '{"a": 1}'}}], '{"a": 1}'),
        ([{"type": "document", "document": {"id": "d", "data": {"a": 1}}}], '{"a":1}'),
        ([{"type": "document", "document": {}}, {"type": "document"}], ""),
    ],
)
def test_texts_and_documents_are_what_it_says(content: object, text: str) -> None:
    assert result_text(content) == text


def test_a_result_keeps_its_shape() -> None:
    def spelled(content: object, text: str) -> object:
        return spell({"content": content}, Told(text))["content"]

    def document(data: object) -> list[dict[str, object]]:
        return [{"type": "document", "document": {"id": "d", "data": data}}]

    assert spelled("x", "new") == "new"
    assert spelled([{"type": "text", "text": "x"}], "new") == [{"type": "text", "text": "new"}]
    assert spelled(document('{"a": 1}'), "new") == document("new")
    assert spelled(document({"a": 1}), '{"a":2}') == document({"a": 2})
    assert spelled(document({"a": 1}), "Error: 503") == document({"result": "Error: 503"})
    assert spelled(document({"a": 1}), "") == "", "an empty part is refused"
