"""A text has the shape of every pattern that occurs in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.patterns.engine import rows_of
from flakestorm.patterns.scanner import readings
from flakestorm.patterns.shape import behind, bounded, shape_of, shaped
from flakestorm.patterns.validators import VALIDATORS

ROWS = rows_of("pii.yaml")


def test_digits_and_letters_become_one_each() -> None:
    assert shape_of("Ab-19é".encode()) == "aa-00é".encode()


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (r"[1-9]\d{2}", "(?:00{2})"),
        (r"(?i)DE ?\d{3,40}?", r"(?:aa\ ?0{3,40})"),
        (r"[A-C]\.", r"(?:a\.)"),
        (r"x|y", "(?:a)"),
    ],
)
def test_a_pattern_is_widened_to_shapes(pattern: str, wanted: str) -> None:
    assert shaped(pattern) == wanted


@given(st.data())
def test_what_a_pattern_matches_has_its_shape(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(ROWS))
    text = data.draw(st.from_regex(re.compile(row["pattern"], re.ASCII), fullmatch=True))
    shape = shape_of(text.encode()).decode()
    assert re.fullmatch(shaped(row["pattern"]), shape, re.ASCII | re.DOTALL)


def test_what_may_not_stand_around_a_pattern_is_in_its_shape() -> None:
    pattern = re.compile(bounded(r"\d{4}", re.compile(r"[\w./]"), re.compile(r"\w|[.,]\d")))
    assert [bool(pattern.search(text)) for text in ("0000", "a 0000, 0", "$0000.0", "é0000é")] == [True] * 4
    assert not any(pattern.search(text) for text in ("00000", ".0000", "/0000", "0000a", "_0000"))
    open_end = re.compile(bounded(r"\d{4}", re.compile(r"\w"), None))
    assert open_end.search("00000a")


def test_a_shape_behind_a_word() -> None:
    pattern = re.compile(behind(["in", "since"], 4, bounded(r"\d{4}", re.compile(r"\w"), re.compile(r"\w"))))
    assert [bool(pattern.search(text)) for text in ("aa 0000", "a aa\n0000", "aaaaa, 0000", "éaa,é0000")] == [True] * 4
    assert not any(pattern.search(text) for text in ("aaaaa 0000", "a 0000", "aa0000", "aa - 0000", "0000", "aa 00000"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_what_is_found_has_the_part_and_the_mark_it_must_have(row: dict[str, object]) -> None:
    for text in row["examples"]:  # type: ignore[attr-defined]
        for found in readings(text):
            if found.id == row["id"]:
                match = text[found.start : found.end]
                assert re.search(str(row.get("part", "")), match, re.ASCII)
                assert str(row.get("mark", "")) in match


@given(st.data())
def test_every_match_has_the_part(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from([row for row in ROWS if "part" in row]))
    text = data.draw(st.from_regex(re.compile(row["pattern"], re.ASCII), fullmatch=True))
    assert re.search(row["part"], text, re.ASCII) or VALIDATORS[row["validator"]](text) == 0
    assert row.get("mark", "") in text


@given(st.data())
def test_every_match_begins_as_it_looks(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from([row for row in ROWS if "looks" in row]))
    text = data.draw(st.from_regex(re.compile(row["pattern"], re.ASCII), fullmatch=True))
    assert re.match(row["looks"], text, re.ASCII) or VALIDATORS[row["validator"]](text) == 0


@pytest.mark.parametrize("row", [row for row in ROWS if "looks" in row], ids=lambda row: str(row["id"]))
def test_what_is_found_begins_as_it_looks(row: dict[str, object]) -> None:
    found = [
        text[match.start : match.end]
        for text in row["examples"]  # type: ignore[attr-defined]
        for match in readings(text)
        if match.id == row["id"]
    ]
    assert found
    assert all(re.match(str(row["looks"]), match, re.ASCII) for match in found)
