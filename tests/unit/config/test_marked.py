"""YAML with line numbers: what is kept, and what hostile or broken text is answered with."""

from __future__ import annotations

import contextlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.config.marked import MAX_BYTES, Mapping, Scalar, Sequence, parse, unfold
from flakestorm.errors import ConfigError


def error(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse(text, file="f.yaml")
    return caught.value


def test_lines_of_keys_values_and_items() -> None:
    root = parse("a:\n  b: 1\n  c:\n    - x\n    -\n      d: |\n        text\n")
    assert isinstance(root, Mapping)
    inner = root.entries["a"]
    assert isinstance(inner, Mapping)
    assert inner.lines == {"b": 2, "c": 3}
    items = inner.entries["c"]
    assert isinstance(items, Sequence)
    assert [item.line for item in items.items] == [4, 6]


def test_values_are_yaml_1_1_but_dates_and_keys_stay_text() -> None:
    text = "a: 1\nb: 1.5\nc: yes\nd: null\ne: 2024-01-01\nf: '1'\non: x\n1: y\ng: !!str 5\nh: 0x10\ni: ~\nj:\n"
    assert unfold(parse(text)) == {
        "a": 1, "b": 1.5, "c": True, "d": None, "e": "2024-01-01", "f": "1", "on": "x", "1": "y", "g": "5", "h": 16,
        "i": None, "j": None,
    }  # fmt: skip


def test_a_scalar_remembers_how_it_was_written() -> None:
    root = parse("a: 1.10\nb: '1.10'\n")
    assert isinstance(root, Mapping)
    assert root.entries["a"] == Scalar(1.1, "1.10", 1, plain=True)
    assert root.entries["b"] == Scalar("1.10", "1.10", 2, plain=False)


def test_aliases_and_merge_keys() -> None:
    text = "base: &base {x: 1, y: 2}\nmore: &more {y: 3, z: 4}\na:\n  x: 9\n  <<: [*base, *more]\nb: *base\n"
    data = unfold(parse(text))
    assert data["a"] == {"x": 9, "y": 2, "z": 4}
    assert data["b"] == {"x": 1, "y": 2}


def test_a_later_anchor_of_the_same_name_counts() -> None:
    assert unfold(parse("- &a 1\n- *a\n- &a 2\n- *a\n")) == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "duplicate key; it is already set on line 1"),
        ("a:\n\tb: 1\n", 2, "indented with a tab; indent with spaces"),
        ("a: 'x\n", 1, "not valid YAML"),
        ("a: b: c\n", 1, "a text that holds ': ' needs quotes"),
        ("a: {b: ${X}}\n", 1, "quote a text that holds a brace"),
        ("x: 1\na: \x01\n", 2, r"control character U\+0001"),
        ("a: *x\n", 1, r"alias \*x names no anchor"),
        ("a: &a [*a]\n", 1, "contains itself"),
        ("a: 1\n---\nb: 2\n", 3, "second document"),
        ("- !!python/object/apply:os.system [id]\n", 1, "tag '!!python/object/apply:os.system' is not allowed"),
        ("a: !!int abc\n", 1, "'abc' is not a value of the type int"),
        ("a: !!binary YQ==\n", 1, "is not allowed"),
        ("{a: b}: c\n", 1, "a key must be text"),
        ("a: 1\n<<: 3\n", 2, "takes a mapping or a list of mappings"),
        ("a: " + "9" * 5000, 1, "is not a value of the type int"),
        ("a: \ud800", 1, "not Unicode text"),
    ],
)
def test_wrong_text_is_named_with_its_line(text: str, line: int, words: str) -> None:
    caught = error(text)
    assert caught.line == line
    with pytest.raises(ConfigError, match=words):
        raise caught


def test_a_duplicate_key_deep_down_is_named_with_its_path() -> None:
    caught = error("a:\n  - b: 1\n    b: 2\n")
    assert str(caught).startswith("f.yaml:3: a.0.b: duplicate key")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_an_empty_file_is_said_to_be_empty(text: str) -> None:
    assert "the file is empty" in str(error(text))


def test_a_file_that_unfolds_to_billions_of_values_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 60)]
    assert "holds more than 1,000,000 values" in str(error("\n".join(lines)))


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000])
def test_deep_nesting_is_refused_before_the_stack_ends(text: str) -> None:
    assert "nested more than 100 levels deep" in str(error(text))


def test_a_text_of_more_than_4_mb_is_refused() -> None:
    assert "larger than 4 MB" in str(error("x" * (MAX_BYTES + 1)))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN)
def test_what_pyyaml_writes_is_read_back(data: object) -> None:
    assert unfold(parse(yaml.safe_dump(data))) == data


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_our_words(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse(text)


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 400, "-" + "9" * 400])
def test_a_number_that_nobody_could_write_again_is_refused(number: str) -> None:
    with pytest.raises(ConfigError, match="is not a value of the type int"):
        parse(f"seed: {number}")
