from __future__ import annotations

import pytest

from flakestorm.wire.interactions_results import find, holds, spell
from flakestorm.wire.results import Told

SAID = {"type": "function_result", "call_id": "c1", "result": "3 hits"}


def test_a_result_is_named_by_itself_or_by_its_call() -> None:
    asked = {"type": "function_call", "id": "c1", "name": "search", "arguments": {}}
    named = {**SAID, "name": "find", "is_error": True}
    first, second = find({"input": [{"type": "text", "text": "hi"}, asked, SAID, named]})
    assert (first.call_id, first.name, first.told, first.path) == ("c1", "search", Told("3 hits"), ("input", 2))
    assert (second.name, second.told, second.resumed) == ("find", Told("3 hits", failed=True), False)
    assert holds(b'{"type":"function_result"}')
    assert not holds(b'{"type":"text"}')


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (SAID, ("input",)),
        ([{"role": "user", "content": [SAID]}], ("input", 0, "content", 0)),
    ],
)
def test_a_result_may_stand_alone_and_in_a_turn(given: object, path: tuple[object, ...]) -> None:
    (result,) = find({"input": given, "previous_interaction_id": "i1"})
    assert (result.name, result.path, result.resumed) == ("", path, True)


@pytest.mark.parametrize("given", ["hi", None, [1, "x"], [{"role": "user", "content": "hi"}]])
def test_elsewhere_there_is_none(given: object) -> None:
    assert list(find({"input": given})) == []


@pytest.mark.parametrize(
    ("result", "told", "members"),
    [
        ("x", Told("new"), {"result": "new"}),
        ("x", Told("no", failed=True), {"result": "no", "is_error": True}),
        ([{"type": "text", "text": "x"}], Told("new"), {"result": [{"type": "text", "text": "new"}]}),
        ({"a": 1}, Told('{"a":2}'), {"result": {"a": 2}}),
        ({"a": 1}, Told("no", failed=True), {"result": {"result": "no"}, "is_error": True}),
    ],
)
def test_a_result_keeps_its_shape(result: object, told: Told, members: dict[str, object]) -> None:
    assert spell({**SAID, "result": result}, told) == members


def test_an_object_is_read_as_json_and_a_list_by_its_texts() -> None:
    def said(result: object) -> str:
        return find({"input": [{**SAID, "result": result}]})[0].told.text

    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert (said({"a": 1}), said({}), said(parts), said(None)) == ('{"a":1}', "", "ab", "")
