"""A text has the shape of every pattern that occurs in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.patterns.engine import rows_of
from flakestorm.patterns.shape import shape_of, shaped

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
