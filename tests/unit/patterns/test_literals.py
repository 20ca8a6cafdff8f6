"""Many strings are found at once, or one by one."""

from __future__ import annotations

import pytest

from flakestorm.patterns import literals
from flakestorm.patterns.literals import holds, places


def test_all_places_are_found_where_they_overlap_too() -> None:
    find = places([b"aba", b"b", b"xyz"])
    assert find is not None
    assert sorted(find(b"ababa")) == [(0, 0, 3), (0, 2, 5), (1, 1, 2), (1, 3, 4)]


def test_nothing_is_found_of_nothing() -> None:
    find = places([])
    assert find is not None
    assert find(b"text") == []


@pytest.mark.parametrize("count", [1, 3, 40])
def test_whether_a_text_has_one_of_some(count: int) -> None:
    has = holds(b"word%d." % number for number in range(count))
    assert has(b"a word0. and more")
    assert not has(b"a wor d0.")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literals, "_library", lambda: None)
    assert places([b"x"]) is None
    has = holds(b"%d" % number for number in range(10, 50))
    assert has(b"about 42")
    assert not has(b"about 9")
