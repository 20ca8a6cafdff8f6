"""The prefilter leaves out no pattern that occurs."""

from __future__ import annotations

import pytest

from flakestorm.patterns.engine import Document, Matcher
from flakestorm.patterns.injection import injection_rows
from flakestorm.patterns.prefilter import NOT_ASCII, Prefilter, keys_of, needs, windows, words_of

ROWS = injection_rows()


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (r"\bignore\W+this", [{"ignore"}, {"this"}]),
        (r"\b(?:forget|dismiss)(?:ed)?\W+rules", [{"rule"}, {"forget", "dismis"}]),
        (r"\b(?:an?|the)\b", [{"a", "an", "the"}]),
        (r"\bx?ab", []),
        (r"ignore", []),
        (r"<!--", [{"<"}, {"!"}]),
        (r"密码", [{NOT_ASCII}]),
        (r"\bmode(?:l|rn)?", [{"mode", "modern"}]),
        (r"\b(?:foo\b|.)", []),
    ],
)
def test_needs_are_read_off_the_pattern(pattern: str, wanted: list[set[str]]) -> None:
    assert sorted(map(sorted, needs(f"(?i){pattern}"))) == sorted(map(sorted, wanted))


def test_no_example_is_left_out() -> None:
    patterns = [row["pattern"] for row in ROWS]
    prefilter, matcher = Prefilter(patterns), Matcher(patterns, together=False)
    texts = [text for row in ROWS for text in (*row["examples"], *row["counter_examples"])]
    for text in [*texts, " ... ".join(texts)]:
        document = Document(text)
        candidates = prefilter.candidates(keys_of(text, words_of(document.data)))
        occurring = {index for index in range(len(ROWS)) if any(True for _ in matcher.places(index, document))}
        assert occurring <= candidates.keys(), [ROWS[index]["id"] for index in occurring - candidates.keys()]


def test_windows_lie_around_the_keys_and_have_all_that_is_needed() -> None:
    data = b"x" * 500 + b" ignore that rule " + b"x" * 500 + b" ignore it"
    assert windows(data, [{"ignore"}], 10) == [(491, 511), (1009, 1029)]
    assert windows(data, [{"ignore"}, {"rule"}], 20) == [(481, 521)]
    assert windows(data, [], 10) == [(0, len(data))]


def test_many_places_make_one_window() -> None:
    data = b"ignore " * 100
    assert windows(data, [{"ignore"}], 3) == [(0, len(data))]
