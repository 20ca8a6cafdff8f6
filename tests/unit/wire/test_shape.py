import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.shape import (
    bare_error,
    dump,
    error_of,
    items,
    number,
    obj,
    objects,
    offered,
    outline,
    parse,
    parse_prefix,
    string,
    text_of,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize("data", [b"", b"[1]", b"null", b'"x"', b"{", b"\xff", b"[" * 5000, b'{"a":NaN}'])
def test_only_an_object_is_parsed(data: bytes) -> None:
    assert parse(data) is None


@pytest.mark.parametrize("long", [False, True])
def test_an_outline_tells_which_members_there_are(long: bool) -> None:
    rest = {"x": "y" * 9000} if long else {}
    doc = {
        "model": "gpt-4o",
        "n": 1.5,
        "stream": None,
        "none": [],
        "no": {},
        "some": [{"a": 1}],
        "so": {"b": 2},
        **rest,
    }
    found = outline(json.dumps(doc, indent=2).encode())
    assert found is not None
    assert {name: (type(value), bool(value)) for name, value in found.items()} == {
        name: (type(value), bool(value)) for name, value in doc.items()
    }
    assert [found[name] for name in ("model", "n", "stream")] == ["gpt-4o", 1.5, None]


@pytest.mark.parametrize("data", [b"[1]", b"{", b'{"a": [', b'{"a": nan}', b'{"a":' + b"[" * 5000])
def test_what_is_no_object_has_no_outline(data: bytes) -> None:
    assert outline(data) is None
    assert outline(data + b" " * 9000) is None


@given(st.dictionaries(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.integers(0, 9)))
def test_what_is_dumped_is_parsed_again(doc: dict[str, int]) -> None:
    assert parse(dump(doc)) == doc


def test_text_that_utf8_cannot_hold_is_escaped() -> None:
    assert dump({"a": "\ud800"}) == b'{"a":"\\ud800"}'


def test_json_nested_deeper_than_the_fast_encoder_goes_is_still_written() -> None:
    deep = json.loads("[" * 400 + "]" * 400)
    assert dump({"a": deep}) == b'{"a":' + b"[" * 400 + b"]" * 400 + b"}"


@given(JSON)
def test_each_reader_gives_its_type_whatever_came(value: object) -> None:
    assert obj(value) == (value if isinstance(value, dict) else {})
    assert items(value) == (value if isinstance(value, list) else [])
    assert string(value) == (value if isinstance(value, str) else "")
    assert all(isinstance(item, dict) for item in objects(value))


@pytest.mark.parametrize(("value", "expected"), [(3, 3), (0, 0), (True, None), (1.5, None), ("3", None), (None, None)])
def test_a_number_is_a_whole_number(value: object, expected: int | None) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":1,"b":"x', {"a": 1}),
        ('{"a":{"b":1,"c"', {"a": {"b": 1}}),
        ('{"a":[1,2', {"a": [1, 2]}),
        ("{", {}),
        ("", {}),
        ("[1", {}),
        ("junk", {}),
    ],
)
def test_the_complete_members_of_a_prefix(text: str, expected: dict[str, object]) -> None:
    assert parse_prefix(text) == expected


def test_tools_are_offered_by_name_with_what_they_take() -> None:
    schema = {"type": "object"}
    tools = [({"name": "a"}, schema), ({"name": "b"}, None), ({}, schema), ({"name": 3}, schema), ({"name": "c"}, [])]
    assert offered(tools) == (("a", "b", "c"), {"a": schema})


@pytest.mark.parametrize(
    ("doc", "said"),
    [
        ({}, None),
        ({"error": None}, None),
        ({"error": "down"}, "down"),
        ({"error": {"message": "slow down", "type": "rate_limit"}}, "slow down"),
        ({"error": {"message": "", "type": "rate_limit"}}, "rate_limit"),
        ({"error": {"code": 7}}, '{"code":7}'),
        ({"error": [1]}, "[1]"),
    ],
)
def test_an_error_is_told_by_its_message_else_its_kind_else_whole(doc: dict[str, object], said: str | None) -> None:
    assert error_of(doc, "type") == said


def test_an_error_without_its_wrapping_is_told_too() -> None:
    assert [bare_error(doc) for doc in ({"message": "down"}, {"detail": "gone"}, {"message": 1}, {})] == [
        "down", "gone", None, None,
    ]  # fmt: skip


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
def test_the_text_of_a_content(content: object, text: str) -> None:
    assert text_of(content) == text


def test_the_text_of_a_content_may_be_of_other_kinds() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image", "text": "no"}, 3, {"type": "text"}, {"type": "x"}]
    assert text_of(parts, ("text", "image")) == "ano"
