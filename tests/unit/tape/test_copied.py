from __future__ import annotations

import pytest

from flakestorm.tape import copied
from flakestorm.tape.copied import Cache, Piece, Text


def test_a_text_is_made_from_the_one_before_it() -> None:
    cache = Cache()
    first = Text(b"0123456789", None, [], cache)
    second = Text(None, first, [(0, 4), b"new", (8, 10)], cache)
    third = Text(None, second, [(0, 7), (1, 3, first)], cache)
    assert second.data() == b"0123new89"
    assert third.data() == b"0123new12"
    assert (second.length, second.new, second.depth, second.weight, second.quotes) == (9, 3, 1, 13, False)
    assert (third.length, third.new, third.depth, third.weight, third.quotes) == (9, 0, 2, 15, True)
    assert (first.repeats, second.repeats, third.repeats) == (0, 4, 7)


def test_another_text_is_quoted_by_its_bytes() -> None:
    cache = Cache()
    base = Text(b"0123456789", None, [], cache)
    assert Text(None, base, [(0, 2), (1, 3, b"abcd")], cache).data() == b"01bc"


def test_what_was_just_told_is_as_what_is_read_back() -> None:
    cache = Cache()
    base = Text(b"0123456789", None, [], cache)
    parts: list[Piece] = [(0, 4), b"new", (8, 10)]
    read, told = Text(None, base, parts, cache), Text.told(base, parts, cache, new=3, weight=13, depth=1, length=9)
    assert told.data() == read.data()
    for fact in ("new", "weight", "depth", "length", "repeats"):
        assert getattr(told, fact) == getattr(read, fact)


def test_texts_that_were_forgotten_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copied, "_CACHED_BYTES", 100)
    cache, run = Cache(), [Text(b"", None, [], Cache())]
    for number in range(60):
        run.append(Text(None, run[-1], [(0, run[-1].length), b"%d," % number], cache))
    whole = b"".join(b"%d," % number for number in range(60))
    for _ in range(2):
        for text in run:
            assert whole.startswith(text.data())
            assert text.length == len(text.data())
    assert sum(text._data is not None for text in run) < 5
