"""Bounded searches: the same answers as Python's, and none that takes for ever."""

from __future__ import annotations

import re

import pytest

from flakestorm.contracts import searching
from flakestorm.contracts.searching import TooLong, search, steps

TEXTS = ["", "aaaa!", "the search is unavailable\n", "é" * 10, "x" * 3000, "a\ud800b"]
PATTERNS = [r"(?i)UNAVAIL", r"a+!", r"^x*$", r"(\w)\1", r"(a|b)*c?", r"é{3}", r"$", r"(?=the)t(?!z)", r"(x+x+)+y|!"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_finds_what_python_finds_here_or_in_the_helper(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in TEXTS[:4] + TEXTS[5:]:
        found = re.compile(pattern, re.DOTALL).search(text)
        wanted = None if found is None else found.span()
        assert search(pattern, re.DOTALL, text) == wanted
        with monkeypatch.context() as patched:
            patched.setattr(searching, "_QUICK_STEPS", -1)
            assert search(pattern, re.DOTALL, text) == wanted


@pytest.mark.parametrize(("pattern", "text"), [("(a+)+$", "a" * 40 + "!"), ("(a|aa)+$", "a" * 60 + "!")])
def test_one_that_would_take_for_ever_is_given_up_and_the_next_is_answered(
    pattern: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "LIMIT_S", 0.1)
    with pytest.raises(TooLong, match="the pattern backtracks"):
        search(pattern, 0, text)
    assert search("(a+)+b", 0, "aab") == (0, 3)


@pytest.mark.parametrize("pattern", ["(a+)+", "(a*|b)*", r"(.)\1", "(?:a+){200}", "((ab)?c?)*", "(?:(?:a*)b*)*"])
def test_repetitions_within_one_another_may_take_for_ever(pattern: str) -> None:
    assert steps(pattern, 0, 10) == float("inf")


def test_others_are_bounded_by_the_length_of_the_text() -> None:
    assert steps("unavailable", 0, 1000) == 1000
    assert steps("a.*b", 0, 1000) == 1000**2
    assert steps("a.*b.*c", re.DOTALL, 1000) == 1000**3
    assert steps("(?:ab){3}", 0, 1000) == 1000
