from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.importers import plain_yaml
from flakestorm.importers.plain_yaml import MAX_DEPTH, MAX_UNFOLDED, MAX_VALUES, load_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: [1, -2, 1.5, true, null, ~, x]", {"a": [1, -2, 1.5, True, None, None, "x"]}),
        ("when: 2024-01-02", {"when": "2024-01-02"}),
        ("at: 2024-01-02T03:04:05Z", {"at": "2024-01-02T03:04:05Z"}),
        ("[1:30, 1:30.5]", ["1:30", "1:30.5"]),
        ("[=, <<]", ["=", "<<"]),
        ("&a {x: 1, y: *b}".replace("*b", "[]"), {"x": 1, "y": []}),
        ("base: &b {x: 1}\nmore: {<<: *b, y: 2}", {"base": {"x": 1}, "more": {"x": 1, "y": 2}}),
        ("!!binary eD01", b"x=5"),
        ("!binary |\n  eD01", b"x=5"),
        ("!!python/unicode 'é'", "é"),
        ("!!python/str 'é'", "é"),
        ("!!python/tuple [1, 2]", [1, 2]),
        ("!!python/object/new:_io.BytesIO {state: !!python/tuple [!!binary eD01, 0, null]}", b"x=5"),
        ("!!python/object/apply:builtins.iter {args: [[a, b]], state: 1}", ["a", "b"]),
        ("!!python/object/apply:__builtin__.frozenset [[!!python/tuple [a, b]]]", [["a", "b"]]),
        ("!!python/object:vcr.request.Request {method: GET}", {"method": "GET"}),
        ("", None),
        ("# nothing", None),
    ],
)
def test_plain_data_is_read(text: str, value: Any) -> None:
    assert load_yaml(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: !!python/object/apply:os.system [echo]", "line 1: the YAML tag '!!python/object/apply:os.system' stands"),
        ("\n- !!python/name:os.system ''", "line 2: the YAML tag '!!python/name:os.system' stands for an object"),
        ("!ruby/object:Thing {}", "'!ruby/object:Thing'"),
        ("a: [1,\n", "it is not valid YAML: line 2: "),
        ("a: 1\n---\nb: 2", "it is not valid YAML: line 2: "),
        ("{[1]: 2}: 3", "unhashable"),
        ("a: *nothing", "undefined alias"),
        ("!!int x", "'x' is not of the type int"),
        ("!!bool maybe", "'maybe' is not of the type bool"),
        ("!!float ''", "is not of the type float"),
        (f"a: {'9' * 5000}", "is not of the type int"),
        ("!!binary '%%%é'", "it is not valid YAML: "),
        ("a: &a [*a]", "line 1: the value of an anchor contains itself"),
        ("a: &a {b: {c: *a}}", "contains itself"),
        ("\x00", "it is not valid YAML: "),
    ],
)
def test_what_is_not_plain_data_is_refused_with_one_line(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as refused:
        load_yaml(text.encode())
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ValueError, match="it is not valid YAML"):
        load_yaml(b"a: \xff\xfe\xfa")


@pytest.mark.parametrize("deep", ["[" * 100_000, "- " * 100_000 + "x", "{a: " * 100_000, "[" * (MAX_DEPTH + 1)])
def test_deep_nesting_is_refused_and_does_not_end_the_process(deep: str) -> None:
    with pytest.raises(ValueError, match=f"nested more than {MAX_DEPTH} levels"):
        load_yaml(deep.encode())


def test_ordinary_nesting_is_read() -> None:
    value = load_yaml(b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1))
    assert value[0][0] is not None


def test_more_values_than_can_be_held_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_VALUES >= 100_000
    monkeypatch.setattr(plain_yaml, "MAX_VALUES", 1000)
    with pytest.raises(ValueError, match="it holds more than 1,000 values"):
        load_yaml(b"[" + b"a," * 1001 + b"]")
    assert len(load_yaml(b"[" + b"a," * 990 + b"]")) == 990


@pytest.mark.parametrize("form", ["[{}]", "{{<<: [{}]}}"], ids=["lists", "merges"])
def test_aliases_that_unfold_to_billions_are_refused(form: str) -> None:
    lines = ["a0: &a0 {x: laugh}" if "<<" in form else "a0: &a0 [laugh, laugh]"]
    lines += [f"a{n}: &a{n} {form.format(', '.join([f'*a{n - 1}'] * 10))}" for n in range(1, 12)]
    with pytest.raises(ValueError, match=f"its aliases unfold to more than {MAX_UNFOLDED >> 20} MB"):
        load_yaml("\n".join(lines).encode())


def test_aliases_as_recorders_write_them_are_read() -> None:
    shared = ["application/json"]
    document = [{"accept": shared}, {"accept": shared}] * 50
    text = yaml.dump(document)
    assert "*id001" in text
    assert load_yaml(text.encode()) == document


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_what_pyyaml_writes_is_read_back(value: Any) -> None:
    assert load_yaml(yaml.dump(value, encoding="utf-8")) == value


@given(st.text(alphabet=" \n-:{}[]&*!|>'\"#%<=ab01.~?,", max_size=60) | st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        load_yaml(text.encode("utf-8", "replace"))
