import json
from typing import Any

import pytest

from contracts_support import inv, said
from flakestorm.contracts.matrix import judge, prepare
from flakestorm.contracts.schemas import problem, schema_of
from flakestorm.errors import Misuse
from trajectories_support import dojo, dojo_tools

ANSWER = {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}, "required": ["price"]}


@pytest.mark.parametrize(
    ("output", "outcome", "reason"),
    [
        ('{"price": 250}', "pass", "the output fits the schema"),
        ('{"price": -1}', "fail", "$.price: -1 is less than the minimum of 0"),
        ('{"price": "250"}', "fail", "$.price: '250' is not of type 'number'"),
        ("{}", "fail", "$: 'price' is a required property"),
        ("It costs 250.", "fail", "not JSON"),
        ("", "fail", "not JSON"),
        ("[" * 100_000, "fail", "not JSON"),
    ],
)
def test_the_whole_output_fits(output: str, outcome: str, reason: str) -> None:
    spec = inv("json_schema", schema=ANSWER)
    prepare([spec])
    result = judge(spec, said(output))
    assert result is not None
    assert result.outcome == outcome
    assert reason in result.reason


def test_the_first_problem_is_named_and_the_others_are_counted() -> None:
    two = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    assert problem(two, {"a": 1, "b": 2}) == "$.a: 1 is not of type 'string' and 1 more"


def test_nothing_is_fetched() -> None:
    remote = inv("json_schema", schema={"$ref": "http://127.0.0.1:9/schema.json"})
    result = judge(remote, said("{}"))
    assert result is not None
    assert result.outcome == "inconclusive"
    assert "Unresolvable" in result.reason


def test_an_older_draft_is_judged_by_its_own_rules() -> None:
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}
    assert problem(old, 3)
    assert not problem(old, 4)


def test_a_file_that_nobody_read_is_refused() -> None:
    spec = inv("json_schema", schema="answer.schema.json")
    with pytest.raises(Misuse, match="is a file, which is read with the configuration"):
        prepare([spec])
    assert schema_of(spec) == {}


@pytest.mark.parametrize("suite", ["workspace", "slack"])
def test_real_calls_fit_the_schemas_of_their_own_tools(suite: str) -> None:
    schemas: dict[str, Any] = {tool["name"]: tool["parameters"] for tool in dojo_tools(suite)}
    calls = [
        (call["function"], call["args"])
        for row in dojo()
        if row["suite"] == suite
        for message in row["messages"]
        for call in message.get("tool_calls") or ()
    ]
    assert calls
    assert [(name, args) for name, args in calls if problem(schemas[name], args)] == []
    name, _args = next((name, args) for name, args in calls if schemas[name].get("required"))
    assert problem(schemas[name], json.loads("{}")) != ""
