"""What is asked of a whole text is asked in one pass, and what is not ASCII only where something is not."""

from __future__ import annotations

import pytest

from flakestorm.patterns.engine import Document
from flakestorm.patterns.everywhere import Everywhere, foreign


@pytest.mark.parametrize(
    ("text", "signs", "absent"),
    [
        ("nothing", [], {3, 7}),
        ("aaa", [0], {3, 7}),
        ("aaa, bbb and ccc", [0, 1], {7}),
        ("a\u200bb", [], {3}),
        ("a\u2019b", [], {3, 7}),
        ("ccc\u200b", [], set()),
    ],
)
def test_signs_and_patterns_are_told_apart(text: str, signs: list[int], absent: set[int]) -> None:
    everywhere = Everywhere(["aaa", "b{3}"], {3: "c{3}"}, {7: "[\u200b-\u200d]+|x[\u200b]y"})
    assert everywhere.asked(Document(text)) == (signs, absent)


@pytest.mark.parametrize(
    ("pattern", "characters"),
    [
        ("[\u200b-\u200d]{3,}", "[\u200b-\u200d]"),
        ("(?i)a\u0451b|c\u0436+", "\u0451|\u0436"),
        ("a|\u0451", None),
        ("a\u0451?", None),
    ],
)
def test_every_match_has_one_of_these_characters(pattern: str, characters: str | None) -> None:
    assert foreign(pattern) == characters


def test_a_pattern_of_which_no_character_is_known_is_never_said_to_be_absent() -> None:
    assert Everywhere([], {}, {2: "a|\u0451", 5: "\u0451"}).asked(Document("b"))[1] == {5}
