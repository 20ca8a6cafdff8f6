from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape.delta import common_prefix
from flakestorm.tape.growing import Hashes
from flakestorm.wire.growing import LONG


@given(
    st.lists(st.lists(st.sampled_from([b"a", b"b" * 3000, b"c" * 5000, b"]}"]), max_size=4).map(b"".join), max_size=8)
)
def test_hashes_are_those_of_the_whole(texts: list[bytes]) -> None:
    hashes = Hashes()
    for number, text in enumerate(texts):
        for body in (text, text + b"]}", text + b",more]}"):
            assert hashes.of(str(number % 2), body) == hashlib.sha256(body).digest()


def test_places_are_not_kept_for_ever() -> None:
    hashes, body = Hashes(), b"x" * LONG
    for number in range(200):
        assert hashes.of(str(number), body) == hashlib.sha256(body).digest()
    assert len(hashes._last) <= 16


@given(st.lists(st.sampled_from([b"a", b"b" * 3000, b"c" * 5000, b"]}"]), max_size=8), st.integers(0, 6000))
def test_what_is_known_to_be_repeated_changes_no_hash(texts: list[bytes], less: int) -> None:
    hashes, before = Hashes(), b""
    for count in range(len(texts)):
        body = b"".join(texts[:count]) + b"]}"
        same = max(0, common_prefix(before, body) - less)
        assert hashes.of("p", body, (body, before, same)) == hashlib.sha256(body).digest()
        assert hashes.of("p", body + b"!", (body, before, len(body))) == hashlib.sha256(body + b"!").digest()  # another
        before = body
