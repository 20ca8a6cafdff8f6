"""A pattern is read into its alternatives and what each is made of."""

from __future__ import annotations

import pytest

from flakestorm.patterns.outline import branches, read, strange, telling


def test_tokens_with_how_often_they_stand_there() -> None:
    ((letter, group),), end = read(r"[a-c]{2,3}(?:x|yz)?", 0)
    assert (letter.atom, letter.least, letter.most) == ("[a-c]", 2, 3)
    assert (group.least, group.most) == (0, 1)
    assert [[token.atom for token in branch] for branch in group.branches] == [["x"], ["y", "z"]]
    assert end == 19


def test_a_pattern_that_is_one_group_is_its_alternatives() -> None:
    found = branches(r"(?im)\b(?:one|two|(?:three|four) five)")
    assert ["".join(token.atom for token in branch) for branch in found] == [r"\bone", r"\btwo", r"\b five"]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [("ä+x", True), ("ä?x", False), ("(?:ä|x)", False), ("(?:ä|ö)x", True), (r"[\x{4e00}-\x{9fff}]", False)],
)
def test_what_is_not_ascii_is_strange(pattern: str, wanted: bool) -> None:
    assert all(map(strange, branches(pattern))) is wanted


@pytest.mark.parametrize(("pattern", "atom"), [("[ä-ü]+x", "[ä-ü]"), ("x+ä?", None), ("(?:ä|ö)x", None), ("xö", "ö")])
def test_a_character_that_is_not_ascii_and_always_there(pattern: str, atom: str | None) -> None:
    assert telling(branches(pattern)[0]) == atom
