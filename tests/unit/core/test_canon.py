import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.canon import canonical, number, parse, spell

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_spelling_does_not_matter(value) -> None:
    plain = json.dumps(value).encode()
    assert canonical(plain) == canonical(json.dumps(value, indent=3, ensure_ascii=False).encode("utf-8"))
    assert canonical(canonical(plain)) == canonical(plain)


@given(st.dictionaries(st.text(max_size=3), st.integers(), min_size=2, max_size=6))
def test_key_order_does_not_matter(value) -> None:
    assert canonical(json.dumps(value).encode()) == canonical(json.dumps(dict(reversed(value.items()))).encode())


@given(st.lists(st.integers(), min_size=2, max_size=4, unique=True))
def test_the_order_of_items_does(value) -> None:
    assert canonical(json.dumps(value).encode()) != canonical(json.dumps(value[::-1]).encode())


@given(st.integers(), st.integers(1, 9))
def test_numbers_that_differ_stay_different_however_long(value, by) -> None:
    assert canonical(str(value).encode()) != canonical(str(value + by).encode())


@pytest.mark.parametrize(
    ("spellings", "said"),
    [
        (["1", "1.0", "10e-1", "0.1E1"], "1"),
        (["0", "-0", "0.0", "-0.0e5"], "0"),
        (["1e21", "1000000000000000000000.0"], "1e21"),
        (["0.10", "1e-1"], "0.1"),
        (["-12.50"], "-12.5"),
        (["1e-9"], "1e-9"),
        (["1e999999"], "1e999999"),
        (["18446744073709551617"], "18446744073709551617"),
    ],
)
def test_numbers_have_one_spelling(spellings, said) -> None:
    assert {canonical(text.encode()).decode() for text in spellings} == {said}


@pytest.mark.parametrize(
    "text", ["1e1000000000000000000", "[-1E-9999999999999999999]", '{"a": 0.1e99999999999999999999}']
)
def test_an_exponent_that_no_number_has_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match="too large an exponent"):
        parse(text.encode())


def test_members_are_sorted_by_utf_16() -> None:
    assert list(json.loads(canonical('{"\ufb33": 1, "\U0001f600": 2, "a": 3}'.encode()))) == [
        "a",
        "\U0001f600",
        "\ufb33",
    ]


def test_leaves_may_be_spelled_otherwise() -> None:
    value = parse(b'{"a": ["x", 1], "b": true}')
    assert spell(value, lambda name, item: f"<{name}{item}>" if item == "x" else None) == '{"a":[<ax>,1],"b":true}'
    assert number(Decimal("5.50")) == "5.5"


@pytest.mark.parametrize("data", [b"", b"{", b"nan", b"[" * 100_000, b"\xff"])
def test_what_is_no_json_is_refused(data) -> None:
    with pytest.raises(ValueError):
        canonical(data)
