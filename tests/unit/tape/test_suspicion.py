from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from flakestorm.tape import suspicion
from flakestorm.tape.shapes import SHAPES

TEXTS = [*(shape[3].encode() for shape in SHAPES), b'"Api_Key": "x"', b"PASSWORD=x", b"https://a:b@c", b"token\\"]
PLAIN = [b"", b'{"max_tokens": 5, "text": "a flight to Oslo"}', b"https://a.test/ann@b"]


@pytest.mark.parametrize("re2", ["not yet", "there", "missing"])
def test_what_may_hold_a_secret_is_looked_at(monkeypatch: pytest.MonkeyPatch, re2: str) -> None:
    if re2 == "missing":
        monkeypatch.setitem(sys.modules, "re2", None)
    suspicious = suspicion._Search()
    if re2 != "not yet":
        assert not suspicious(b" " * 100_000)
    assert all(suspicious(text) for text in TEXTS)
    assert not any(suspicious(text) for text in PLAIN)


def test_a_text_that_is_looked_at_while_the_import_runs_is_searched_by_needle(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def importing() -> Callable[[bytes], object]:
        seen.extend(map(suspicious, [b"PASSWORD=x", b" " * 100_000]))  # a stream that the garbage collector found
        return lambda text: b"late" in text

    suspicious = suspicion._Search()
    monkeypatch.setattr(suspicion, "_search", importing)
    assert not suspicious(b" " * 100_000)
    assert seen == [True, False]
    assert suspicious(b"late")


def test_what_was_found_innocent_is_not_searched_again_and_nothing_else_is_taken_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suspicion, "_MANY", 3)
    searched: list[bytes] = []
    suspicious = suspicion._Search()
    search, suspicious.match = suspicious.match, lambda text: searched.append(text) or search(text)
    for _ in range(3):
        assert not suspicious(b"calm")
        assert suspicious(b"password=calm calm")
        assert not suspicious(b"calm " * 100)
    assert searched.count(b"calm") == 1
    assert searched.count(b"password=calm calm") == searched.count(b"calm " * 100) == 3
    assert not any(suspicious(b"text %d" % n) for n in range(10))  # however many there are
    assert len(suspicious._innocent) <= 3
