from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.splice import Path, with_members

SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(['"', '\\"', "{", "]", ",:"])
DOCUMENTS = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=25,
)
STYLES = st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 3}, {"indent": "\t", "ensure_ascii": False}])


def objects_in(value: Any, path: Path = ()) -> list[tuple[Path, dict[str, Any]]]:
    found = [(path, value)] if isinstance(value, dict) else []
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [pair for step, inner in steps for pair in objects_in(inner, (*path, step))]


def edited(value: Any, path: Path, members: dict[str, Any]) -> Any:
    """What a parser reads after the change: written the plain way, to hold the splice against."""
    if not path:
        return {**value, **members}
    copy = value.copy()
    copy[path[0]] = edited(value[path[0]], path[1:], members)
    return copy


@given(document=DOCUMENTS, style=STYLES, data=st.data())
def test_a_parser_reads_the_change_and_nothing_else(document: Any, style: dict[str, Any], data: st.DataObject) -> None:
    body = json.dumps(document, **style).encode()
    standing = objects_in(document)
    if not standing:
        return
    path, target = data.draw(st.sampled_from(standing))
    names = data.draw(st.lists(st.sampled_from([*target, "new", 'n"ew']), min_size=1, max_size=3, unique=True))
    members = {name: data.draw(SCALARS | TEXTS) for name in names}

    result = with_members(body, {path: members})

    assert json.loads(result) == edited(document, path, members)
    assert with_members(body, {}) == with_members(body, {path: {}}) == body


@given(before=DOCUMENTS, after=DOCUMENTS, text=TEXTS, style=STYLES)
def test_the_bytes_on_both_sides_stay_as_they_are(before: Any, after: Any, text: str, style: dict[str, Any]) -> None:
    hole = "the only \u2603 of its kind"
    body = json.dumps({"a": [before, {"b": before, "here": hole, "c": after}], "z": after}, **style).encode()
    left, right = body.split(json.dumps(hole, ensure_ascii=style.get("ensure_ascii", True)).encode())

    result = with_members(body, {("a", 1): {"here": text}})

    assert (result.startswith(left), result.endswith(right)) == (True, True)
    assert json.loads(result[len(left) : len(result) - len(right)]) == text


@pytest.mark.parametrize(
    ("body", "changes", "expected"),
    [
        (b'{"a":1}', {(): {"a": 2}}, b'{"a":2}'),
        (b'{"a":1}', {(): {"b": 2}}, b'{"a":1,"b":2}'),
        (b"{}", {(): {"b": 2, "c": "x"}}, b'{"b":2,"c":"x"}'),
        (b" {\n} ", {(): {"b": 2}}, b' {"b":2\n} '),
        (b'{"a": 1e400 , "b":[ ] }', {(): {"b": 0}}, b'{"a": 1e400 , "b":0 }'),
        (b'{"a": 1.0, "b": 01}'.replace(b"01", b"-0"), {(): {"a": None}}, b'{"a": null, "b": -0}'),
        (b'{"k\\u0065y": 1}', {(): {"key": 2}}, b'{"k\\u0065y": 2}'),
        (b'{"a": 1, "a": 2}', {(): {"a": 3}}, b'{"a": 1, "a": 3}'),
        (b'{"a": {"x": 1}, "a": {"x": 2}}', {("a",): {"x": 3}}, b'{"a": {"x": 1}, "a": {"x": 3}}'),
        (b'[[{"a":"]"}],{"b":"}"}]', {(0, 0): {"a": 1}, (1,): {"b": 2}}, b'[[{"a":1}],{"b":2}]'),
        (b'{"a":"\\\\","b":"\\""}', {(): {"b": ""}}, b'{"a":"\\\\","b":""}'),
        (b'{"a":{"b":1},"c":2}', {("a",): {"b": 3}, (): {"c": 4}}, b'{"a":{"b":3},"c":4}'),
        (b'{"a":1}', {(): {"a": {"n": [1, "\u00e9"]}}}, '{"a":{"n":[1,"\u00e9"]}}'.encode()),
        (b'{"a":1}', {(): {"a": "\ud800"}}, b'{"a":"\\ud800"}'),
    ],
)
def test_members_are_set_in_place(body: bytes, changes: dict[Path, dict[str, object]], expected: bytes) -> None:
    assert with_members(body, changes) == expected


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b'{"a":1}', ("b",)),
        (b'{"a":1}', ("a",)),
        (b'{"a":[]}', ("a", 0)),
        (b'{"a":[{}]}', ("a", "x")),
        (b'{"a":[{}]}', ("a",)),
        (b'"text"', ()),
        (b'{"1":{}}', (1,)),
    ],
)
def test_a_path_that_leads_nowhere_is_an_error(body: bytes, path: Path) -> None:
    with pytest.raises(LookupError, match=r"there is no|there is nothing"):
        with_members(body, {path: {"x": 1}})


def test_a_body_of_megabytes_in_one_string_is_no_matter() -> None:
    image = b"A" * 5_000_000 + b"\\n" * 100_000
    body = b'{"image": "' + image + b'", "result": "old"}'
    assert with_members(body, {(): {"result": "new"}}) == body.replace(b'"old"', b'"new"')
