from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.reports.text import counted, encodable, one_line, plain, unbroken, untold, visible

anything = st.text(st.characters())
"""Every code point, lone surrogates included."""


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain, with ümlauts and 日本", "plain, with ümlauts and 日本"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("one\r\ntwo\rthree\tfour", "one\ntwo\\x0dthree\tfour"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u200bb\ufeffc", "a\\u200bb\\ufeffc"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("csi \x9b2J", "csi \\x9b2J"),
        ("half \ud83d", "half \ufffd"),
        ("family 👨‍👩‍👧", "family 👨‍👩‍👧"),
    ],
)
def test_what_would_act_or_hide_is_shown_as_its_escape(raw: str, shown: str) -> None:
    assert visible(raw) == shown


@given(anything)
def test_nothing_a_terminal_obeys_is_left(text: str) -> None:
    left = {c for c in visible(text) if unicodedata.category(c) == "Cc"}
    assert left <= {"\n", "\t"}


@given(anything)
def test_what_is_shown_can_always_be_written(text: str) -> None:
    visible(text).encode()
    encodable(text).encode()


@given(anything, st.integers(2, 80))
def test_one_line_is_one_line_and_bounded(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1


def test_one_line_says_that_it_was_cut() -> None:
    assert one_line("a sentence\n  over two lines", 40) == "a sentence over two lines"
    assert one_line("a sentence over two lines", 12) == "a sentence…"
    assert one_line("x" * 10_000, 5) == "xxxx…"


def test_one_line_does_not_read_all_of_a_huge_text() -> None:
    assert one_line(" " * 1_000_000 + "end", 20).endswith("…")


def test_unbroken_loses_nothing() -> None:
    assert unbroken("rm\t-rf\nevil\x1b") == "rm\\t-rf\\nevil\\x1b"


def test_plain_keeps_all_that_json_can_hold() -> None:
    value = {"a": [1, 2.5, None, True, "x"], "b": {"c": "é"}}
    assert plain(value) == value
    assert plain({"\ud800": [float("nan"), float("-inf")], "t": ("\udfff",)}) == {
        "\ufffd": [None, None],
        "t": ["\ufffd"],
    }


def test_one_of_a_thing_is_singular() -> None:
    assert [counted(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]


def test_notes_that_the_headline_tells_are_not_told_again() -> None:
    headline = "chaos: the agent could not be reached: refused (and contract)"
    told = ["chaos: the agent could not be reached: refused", "contract: the agent could not be reached: refused"]
    others = ["agent.mcp is not used", "the agent could not be reached: refused\nTraceback"]
    assert untold([*told, *others], headline) == others
    assert untold(told, "the gate was met") == told
