"""What stands for a pattern occurs where the pattern does."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.patterns.injection import injection_rows
from flakestorm.patterns.outline import anchors

ROWS = injection_rows()


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (r"\bignore\W+this", [r"\bignore\W+this"]),
        (r"\bthe\b[^.]{0,60}?\bpassword", [r"\bpassword"]),
        (r"\b(?:weather|the\W+(?:[a-z]+\W+){0,2}matrix)", [r"\bweather", r"\bmatrix"]),
        (r"\bx[a-z]*y", []),
        (r"<!--", ["<!--"]),
        (r"\bvery(?:\W+rarely|\W+[a-z]+\W+seldom)", [r"(?:\bvery\W+rarely|\bseldom)"]),
        (r"[a-z]+matrix", ["matrix"]),
    ],
)
def test_the_rarest_part_between_gaps_stands_for_a_pattern(pattern: str, wanted: list[str]) -> None:
    assert anchors(f"(?im){pattern}") == wanted


def test_every_pattern_has_something_characteristic() -> None:
    assert [row["id"] for row in ROWS if not anchors(row["pattern"])] in ([], ["many-shot"])


@given(st.sampled_from([row for row in ROWS if anchors(row["pattern"])]), st.text(max_size=10))
def test_an_anchor_occurs_within_every_match(row: dict[str, object], before: str) -> None:
    for example in row["examples"]:  # type: ignore[attr-defined]
        text = f"{before}\n{example}"
        match = re.search(str(row["pattern"]), text, re.ASCII)
        assert match
        places = [place for a in anchors(str(row["pattern"])) for place in re.finditer(f"(?im){a}", text, re.ASCII)]
        assert any(match.start() <= place.start() and place.end() <= match.end() for place in places)
