"""The prefilter leaves out no pattern that occurs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.patterns import literals
from flakestorm.patterns.engine import Document, Matcher
from flakestorm.patterns.injection import injection_rows
from flakestorm.patterns.prefilter import Finder, Prefilter, anchors

ROWS = injection_rows()
PATTERNS = [row["pattern"] for row in ROWS]
PREFILTER = Prefilter(anchors(PATTERNS), [row.get("reach", 160) for row in ROWS])
MATCHER = Matcher(PATTERNS, together=False)
EXAMPLES = [text for row in ROWS for text in (*row["examples"], *row["counter_examples"])]


def check(text: str) -> None:
    document = Document(text)
    candidates = PREFILTER.candidates(document.data)
    for index, row in enumerate(ROWS):
        everywhere = list(MATCHER.places(index, document))
        near = list(MATCHER.places(index, document, candidates.get(index, [])))
        assert near == everywhere, (row["id"], text)


def test_no_example_is_left_out() -> None:
    for text in EXAMPLES:
        check(text)
        check(f"An introduction, _{text} - and more")


@given(
    st.lists(st.sampled_from(EXAMPLES), min_size=2, max_size=4), st.sampled_from([" ", "\n", ". ", " und so weiter "])
)
def test_no_example_among_others_is_left_out(texts: list[str], between: str) -> None:
    document = Document(between.join(texts))
    candidates = PREFILTER.candidates(document.data)
    missing = [
        row["id"]
        for index, row in enumerate(ROWS)
        if index not in candidates and any(True for _ in MATCHER.places(index, document))
    ]
    assert missing == []


def test_stretches_lie_around_what_was_found() -> None:
    prefilter = Prefilter(anchors([r"(?im)\b(?:ignore\W+that)", r"(?im)\b(?:seldom)"]), [10, 20])
    data = b"x" * 500 + b" ignore  That " + b"x" * 500
    ((start, end),) = prefilter.candidates(data)[0]
    assert 480 < start <= 501
    assert 513 <= end < 530
    assert prefilter.candidates(b"") == {}


def test_stretches_go_as_far_as_a_match_may() -> None:
    data = b"seldom or seldom, " + b"x" * 50
    short, long, behind = r"(?im)\b(?:seldom)", r"(?im)\b(?:seldom\W[^.]*)", r"(?im)\b(?:\w+\W+seldom\b)"
    prefilter = Prefilter(anchors([short, long, behind]), [20, 20, 20])
    assert prefilter.candidates(data) == {0: [(0, 6), (8, 16)], 1: [(0, 38)], 2: [(0, 19)]}


def test_all_that_a_pattern_needs_must_be_near() -> None:
    prefilter = Prefilter(anchors([r"(?im)\bjailbreak\b[^.]{0,20}\b(?:prompt|mode)\b"]), [30])
    assert set(prefilter.candidates(b"a jailbreak in the mode")) == {0}
    assert prefilter.candidates(b"a jailbreak in " + b"x" * 100 + b" the mode") == {}


def test_stretches_are_those_of_the_text_whatever_stands_between_its_words() -> None:
    prefilter = Prefilter(anchors([r"(?im)\bseldom\W+asked"]), [0])
    data = "é, ü -- \n\n“x”  seldom, -- – asked? Seldom asked".encode()
    ((start, end),) = prefilter.candidates(data)[0]
    assert data[start:end].decode().strip(" ”") == "seldom, -- – asked? Seldom asked"


@pytest.mark.parametrize("gap", [" ", "\n" * 400, " - " * 5_000, "é" * 300])
def test_what_is_near_does_not_depend_on_the_gaps_between_words(gap: str) -> None:
    prefilter = Prefilter(anchors([r"(?im)\bseldom\W+(?:\w+\W+){0,2}asked"]), [20])
    data = f"x{gap}seldom{gap}was{gap}asked{gap}{'x' * 100}".encode()
    ((start, end),) = prefilter.candidates(data)[0]
    assert start <= data.index(b"seldom")
    assert end >= data.index(b"asked") + 5


def test_a_pattern_of_gaps_alone_is_asked_everywhere() -> None:
    assert Prefilter(anchors([r"(?im)\b(?:\w+)"]), [5]).candidates(b"some text") == {0: [(0, 9)]}


def test_a_text_of_nothing_but_hits_is_read_as_a_whole() -> None:
    data = b"ignore that " * 25_000
    assert Prefilter(anchors([r"(?im)\bignore\W+that"]), [5]).candidates(data) == {0: [(0, len(data))]}


def test_without_the_library_every_pattern_is_asked_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literals, "_library", lambda: None)
    assert Prefilter(anchors([r"(?im)\bignore", r"(?im)\bthat"]), [5, 5]).candidates(b"text") == {
        0: [(0, 4)],
        1: [(0, 4)],
    }


@pytest.mark.parametrize("behind", ["", " and more of it"])
def test_a_stretch_begins_where_the_earliest_of_its_strings_needs_it(behind: str) -> None:
    """Strings are found in the order of their ends, so a longer one that begins before another comes after it."""
    finder = Finder()
    finder.add(7, 4, 2, [frozenset(["found", "long before it is found here"])])
    finder.ready()
    text = f"0123 long before it is found here{behind}".encode()
    assert finder.hits(text) == [(1, len(text) - len(behind) + 2, 7)]
