"""Wrapping, columns and colours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.reports.canvas import Canvas, cells, wrapped

TEXTS = st.text(st.sampled_from("ab  日é\u0301✓-"), max_size=60)


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("one two  three", 9, ["one two", "three"]),
        ("one  two", 20, ["one  two"]),
        ("a abcdefgh b", 3, ["a", "abc", "def", "gh", "b"]),
        ("日本語 x", 4, ["日本", "語 x"]),
        ("  indented", 20, ["  indented"]),
    ],
)
def test_wrapping(text: str, width: int, lines: list[str]) -> None:
    assert wrapped(text, width) == lines


@given(text=TEXTS, width=st.integers(2, 30))
def test_nothing_is_lost_and_nothing_is_too_wide(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cells(line) <= width for line in lines)


@pytest.mark.parametrize(("text", "columns"), [("", 0), ("abc", 3), ("日本", 4), ("e\u0301", 1), ("✓ ok", 4)])
def test_columns_of_a_text(text: str, columns: int) -> None:
    assert cells(text) == columns


def test_a_table_has_columns_as_wide_as_they_need() -> None:
    canvas = Canvas(width=80, color=False)
    canvas.table([[("bold", "name"), ("", "n")], [("", "日本"), ("green", "✓ 1")], [("", "x"), ("", "")]])
    assert canvas.text() == "name  n\n日本  ✓ 1\nx\n"


def test_colours_surround_the_text_and_not_its_place() -> None:
    canvas = Canvas(width=80, color=True)
    canvas.say("green", "ok", indent=2)
    canvas.say("", "plain")
    canvas.command("run", indent=1)
    canvas.gap()
    canvas.table([[("bold red", "a"), ("", "b")], [("", "wide"), ("", "c")]])
    assert canvas.text() == ("  \x1b[32mok\x1b[0m\nplain\n \x1b[36mrun\x1b[0m\n\n\x1b[1;31ma\x1b[0m     b\nwide  c\n")
