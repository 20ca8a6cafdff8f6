"""What stands for a pattern occurs where the pattern does."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.patterns.engine import rows_of
from flakestorm.patterns.injection import injection_rows
from flakestorm.patterns.needs import edges, folded, needed, share
from flakestorm.patterns.outline import branches
from flakestorm.patterns.shape import shape_of, shaped

ROWS = injection_rows()
WORDS = [(row, [needed(branch) for branch in branches(row["pattern"])]) for row in ROWS]
MARKS = [(row, [needed(branch, marks=True) for branch in branches(row["pattern"])]) for row in ROWS]
SHAPES = [
    (row, [needed(branch, marks=True) for branch in branches(shaped(row["pattern"]))]) for row in rows_of("pii.yaml")
]
Clauses = list[tuple[frozenset[str], ...]]


def words_of(text: str) -> str:
    return f" {' '.join(folded(text.encode()).decode().split())} "


def holds_one(clauses: Clauses, text: str) -> bool:
    """Whether of one alternative each clause has a string in the text."""
    return any(all(any(string in text for string in clause) for clause in branch) for branch in clauses)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (r"\bignore\W+this\b", [{" ignore this "}]),
        (r"\bthe\b[^.]{0,60}?\bpassword", [{" password"}, {" the "}]),
        (r"\bjail\W*break", [{" jail break", " jailbreak"}]),
        (r"\bthe\W+(?:[a-z]+\W+){0,2}seldom", [{" seldom"}, {" the "}]),
        (r"\bsummari[sz]es?\b", [{" summarise ", " summarize ", " summarises ", " summarizes "}]),
        (r"<!--", []),
        (r"\w+", []),
    ],
)
def test_the_words_of_a_pattern_the_rarest_first(pattern: str, wanted: list[set[str]]) -> None:
    (branch,) = branches(f"(?im){pattern}")
    found = needed(branch)
    assert [{string.rstrip() for string in clause} for clause in found] == [
        {string.rstrip() for string in clause} for clause in wanted
    ]
    assert [share(clause) for clause in found] == sorted(map(share, found))


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (r"\bseldom\W+\w+", (0, None)),
        (r"\b(?:the\W+)?seldom\W+\w{2,40}", (4, 52)),
        (r"\b\w+\W+seldom\b", (None, 0)),
        (r"\bseldom\b", (0, 0)),
        (r"\w+ seldom \w+", (None, None)),
        (r"\bseldom\W+\w+\W+seldom\b", (0, None)),
    ],
)
def test_how_much_of_a_match_stands_around_its_string(pattern: str, wanted: tuple[int | None, int | None]) -> None:
    (branch,) = branches(f"(?im){pattern}")
    assert edges(branch, needed(branch)[0]) == wanted


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_no_match_is_longer_than_what_stands_around_its_string(row: dict[str, Any]) -> None:
    parts = [
        (clauses[0], *edges(branch, clauses[0])) for branch in branches(row["pattern"]) if (clauses := needed(branch))
    ]
    for example in row["examples"]:
        for found in re.finditer(row["pattern"], example, re.ASCII):
            text = words_of(found[0])
            around = [
                (before is None or place.start() <= before + 1)
                and (behind is None or place.end() + behind + 1 >= len(text))
                for clause, before, behind in parts
                for string in clause
                for place in re.finditer(re.escape(string), text)
            ]
            assert any(around) or not around, example


def test_the_marks_of_a_pattern() -> None:
    (branch,) = branches(r"(?im)<\|(?:user|system)\|>")
    assert needed(branch, marks=True) == (frozenset({"<|user|>", "<|system|>"}),)


def test_every_example_has_what_its_pattern_needs() -> None:
    for row, clauses in WORDS:
        for text in row["examples"]:
            assert holds_one(clauses, words_of(text)), (row["id"], text)
    for row, clauses in MARKS:
        for text in row["examples"]:
            assert holds_one(clauses, text.lower()), (row["id"], text)


@given(st.data())
def test_every_match_has_the_words_that_its_pattern_needs(data: st.DataObject) -> None:
    row, clauses = data.draw(st.sampled_from(WORDS))
    text = data.draw(st.from_regex(re.compile(row["pattern"], re.ASCII), fullmatch=True))
    assert holds_one(clauses, words_of(text))


@given(st.data())
def test_every_match_has_the_shape_that_its_pattern_needs(data: st.DataObject) -> None:
    row: dict[str, Any]
    row, clauses = data.draw(st.sampled_from(SHAPES))
    text = data.draw(st.from_regex(re.compile(row["pattern"], re.ASCII), fullmatch=True))
    assert holds_one(clauses, shape_of(text.encode()).decode())
