from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.mcp.result import ABSENT, read_json, retold, texts_of, with_texts
from flakestorm.wire.splice import Path


def text(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": each} for each in texts]


RESULTS = [
    {"content": [*text("a", "b"), {"type": "image", "data": "x"}, "odd"]},
    {"contents": [{"uri": "x://y", "text": "a"}, {"blob": "Zm9v"}, {"text": "b"}]},
    {"content": [text("a")[0], {"type": "resource", "resource": {"uri": "x://y", "text": "b"}}]},
    {"messages": [{"role": "user", "content": text("a")[0]}, "odd", {"content": text("b")[0]}]},
]


@pytest.mark.parametrize("result", RESULTS)
def test_texts_are_found_and_changed_wherever_they_stand(result: dict[str, Any]) -> None:
    before = json.dumps(result)
    assert texts_of(result) == ["a", "b"]
    changed = with_texts(result, str.upper)
    assert texts_of(changed) == ["A", "B"]
    assert json.dumps(result) == before
    assert with_texts(changed, str.lower) == result


@pytest.mark.parametrize("result", [{}, {"tools": []}, {"content": "x"}, {"content": [{"text": 3}]}])
def test_where_there_is_no_text_there_is_none(result: dict[str, Any]) -> None:
    assert texts_of(result) == []


@pytest.mark.parametrize("word", ["", "hello", "NaN", "[1, Infinity]", "{", "[" * 100_000])
def test_what_is_no_json_is_absent(word: str) -> None:
    assert read_json(word) is ABSENT


def test_null_is_json() -> None:
    assert read_json(" null ") is None


LIST = {"result": [{"n": 1}, {"n": 2}]}


@pytest.mark.parametrize(
    ("said", "document", "values", "expected"),
    [
        ('{ "n": 1 }', {"n": 1}, {("n",): 5}, '{ "n": 5 }'),
        ("3", {"result": 3}, {("result",): 4}, "4"),
        ("echo: 3", {"result": "echo: 3"}, {("result",): "echo: 4"}, "echo: 4"),
        ('{"n": 2}', LIST, {("result", 1, "n"): 9}, '{"n": 9}'),
        ('{"n": 1}', LIST, {("result", 1, "n"): 9}, '{"n": 1}'),
        ('[{"n": 1}, {"n": 2}]', LIST, {("result", 1, "n"): 9}, '[{"n": 1}, {"n": 9}]'),
        ("It is 21 degrees, not 210 or 2.21.", {"d": 21}, {("d",): 19}, "It is 19 degrees, not 210 or 2.21."),
        ("From Oslo", {"a": "Oslo", "b": True}, {("a",): "Rome", ("b",): False}, "From Rome"),
        ("nothing of it", {"a": 1}, {("a",): 2}, "nothing of it"),
        (r"a\1", {"a": "a"}, {("a",): r"\1"}, r"\1\1"),
    ],
)
def test_a_text_is_changed_as_its_document_is(said: str, document: Any, values: dict[Path, Any], expected: str) -> None:
    assert retold(said, document, values=values) == expected


def test_fields_that_are_gone_are_gone_from_the_text() -> None:
    assert retold('{"a": 1, "b": 2}', {"a": 1, "b": 2}, values={}, without=[("a",)]) == '{"b": 2}'
    assert retold("a is 1", {"a": 1}, values={}, without=[("a",)]) == "a is 1"


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_no_change_changes_nothing(document: Any) -> None:
    said = json.dumps(document, indent=1)
    assert retold(said, {"result": document}, values={}) == said
