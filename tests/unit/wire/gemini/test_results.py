from __future__ import annotations

import pytest

from flakestorm.wire.gemini.results import find, spell
from flakestorm.wire.results import Told


def model(*parts: dict[str, object]) -> dict[str, object]:
    return {"role": "model", "parts": list(parts)}


def user(*parts: dict[str, object]) -> dict[str, object]:
    return {"role": "user", "parts": list(parts)}


def test_a_result_says_its_tool_and_the_calls_of_it_are_answered_in_order() -> None:
    contents = [
        user({"text": "hi"}),
        model(
            {"functionCall": {"name": "search", "args": {"to": "Oslo"}}, "thoughtSignature": "s"},
            {"functionCall": {"name": "search", "args": {"to": "Bergen"}}},
        ),
        user(
            {"functionResponse": {"name": "search", "response": {"result": "3"}}},
            {"functionResponse": {"name": "search", "response": {"result": "3"}, "id": "x1"}},
        ),
    ]
    oslo, bergen = find({"contents": contents})
    assert (oslo.name, oslo.call_id, oslo.told, oslo.asked) == ("search", "", Told("3"), '{"to":"Oslo"}')
    assert oslo.path == ("contents", 2, "parts", 0, "functionResponse")
    assert (bergen.call_id, bergen.asked) == ("x1", '{"to":"Bergen"}')


def test_proto_names_are_understood() -> None:
    contents = [
        model({"function_call": {"name": "multiply", "args": {"x": 5}}}),
        user({"function_response": {"name": "multiply", "response": {"output": "15"}}}),
    ]
    (result,) = find({"contents": contents})
    assert (result.name, result.told, result.path[-1]) == ("multiply", Told("15"), "function_response")


@pytest.mark.parametrize(
    ("response", "told"),
    [
        ({"result": "x"}, Told("x")),
        ({"return_value": "x"}, Told("x")),
        ({"flights": [1, 2]}, Told('{"flights":[1,2]}')),
        ({"result": {"a": 1}}, Told('{"result":{"a":1}}')),
        ({"error": "no"}, Told("no", failed=True)),
        ({"error": {"code": 3}}, Told('{"code":3}', failed=True)),
        ({"error": "no", "code": 3}, Told('{"error":"no","code":3}', failed=True)),
        ({}, Told("")),
        (None, Told("")),
    ],
)
def test_what_a_result_tells(response: object, told: Told) -> None:
    (result,) = find({"contents": [user({"functionResponse": {"name": "t", "response": response}})]})
    assert result.told == told


@pytest.mark.parametrize(
    "doc", [{}, {"contents": "hi"}, {"contents": [None, {"parts": 3}, {"parts": [None, {"functionResponse": 3}]}]}]
)
def test_what_does_not_fit_is_passed_over(doc: dict[str, object]) -> None:
    assert find(doc) == []


@pytest.mark.parametrize(
    ("entry", "told", "members"),
    [
        ({"response": {"output": "x"}}, Told("y"), {"response": {"output": "y"}}),
        ({"response": {"output": "x"}}, Told('{"a":1}'), {"response": {"output": '{"a":1}'}}),
        ({"response": {"a": 1}}, Told('{"a":2}'), {"response": {"a": 2}}),
        ({"response": {"a": 1}}, Told('{"a"'), {"response": {"result": '{"a"'}}),
        ({"response": {"a": 1}}, Told("no", failed=True), {"response": {"error": "no"}}),
        ({"response": {"error": "no"}}, Told("fine"), {"response": {"result": "fine"}}),
        ({"response": {}, "parts": [{"fileData": {}}]}, Told(""), {"response": {"result": ""}, "parts": []}),
        ({}, Told("x"), {"response": {"result": "x"}}),
    ],
)
def test_a_result_keeps_the_key_its_client_uses(
    entry: dict[str, object], told: Told, members: dict[str, object]
) -> None:
    assert spell(entry, told) == members
