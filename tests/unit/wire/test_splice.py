from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.splice import Path, edited, elements, span, spliced, with_members

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


def changed(value: Any, path: Path, members: dict[str, Any]) -> Any:
    """What a parser reads after the change: written the plain way, to hold the splice against."""
    if not path:
        return {**value, **members}
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], members)
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

    assert json.loads(result) == changed(document, path, members)
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


def values_in(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(path, value)] + [pair for step, inner in steps for pair in values_in(inner, (*path, step))]


@given(document=DOCUMENTS, style=STYLES)
def test_the_place_of_every_value_is_found(document: Any, style: dict[str, Any]) -> None:
    body = json.dumps(document, **style).encode()
    for path, value in values_in(document):
        start, end = span(body, path)
        assert json.loads(body[start:end]) == value
        if isinstance(value, list):
            assert [json.loads(body[a:b]) for a, b in elements(body, path)] == value


@pytest.mark.parametrize("path", [("b",), ("a", 1), ("a", "x"), ("a", 0, "x"), (0,)])
def test_a_place_that_is_not_there_is_named(path: Path) -> None:
    with pytest.raises(LookupError, match=repr(path[-1])):
        span(b'{"a": [1]}', path)


def test_of_members_of_one_name_the_last_counts_and_only_arrays_have_elements() -> None:
    body = b'{"a": 1, "a": {"b": 2}}'
    assert body[slice(*span(body, ("a", "b")))] == b"2"
    with pytest.raises(LookupError, match="no array at byte 14"):
        elements(body, ("a",))


def test_edits_at_one_place_stand_in_the_order_given() -> None:
    assert spliced(b"abc", [(3, 3, b"!"), (1, 1, b"2"), (0, 1, b"A"), (1, 1, b"1")]) == b"A21bc!"


def places(value: Any, path: Path = ()) -> list[Path]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for step, inner in steps for place in places(inner, (*path, step)))]


def placed(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = placed(value[path[0]], path[1:], new)
    return copy


def without(value: Any, path: Path) -> Any:
    copy = value.copy()
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = without(value[path[0]], path[1:])
    return copy


@given(document=DOCUMENTS, style=STYLES, new=SCALARS | TEXTS, data=st.data())
def test_any_value_can_be_another(document: Any, style: dict[str, Any], new: Any, data: st.DataObject) -> None:
    body = json.dumps(document, **style).encode()
    path = data.draw(st.sampled_from(places(document)))
    assert json.loads(edited(body, values={path: new})) == placed(document, path, new)
    assert edited(body) == edited(body, values={("nowhere", 99): 1}, without=[(*path, "nowhere")]) == body


@given(document=DOCUMENTS, style=STYLES, data=st.data())
def test_any_member_can_go(document: Any, style: dict[str, Any], data: st.DataObject) -> None:
    body = json.dumps(document, **style).encode()
    members = [path for path in places(document) if path and isinstance(path[-1], str)]
    if not members:
        return
    gone = data.draw(st.sets(st.sampled_from(members), min_size=1))
    left = document
    for path in sorted(gone, key=len, reverse=True):  # inner ones first
        left = without(left, path)
    assert json.loads(edited(body, without=gone)) == left


def test_what_stays_keeps_its_spelling() -> None:
    body = b' { "a" : 1.10,\n  "b": [ {"c":2 , "d": "\\u0041"}, {"c":3} ],\n  "e":null } '
    assert edited(body, values={("b", 0, "c"): 7}, without=[("a",), ("b", 1, "c")]) == (
        b' { "b": [ {"c":7 , "d": "\\u0041"}, {} ],\n  "e":null } '
    )
    assert edited(b" 12 ", values={(): 13}) == b" 13 "
    assert edited(b'{"a":1,"a":2}', values={("a",): 3}) == b'{"a":3,"a":3}'
    assert edited(b'{"a":1,"a":2}', without=[("a",)]) == b"{}"
