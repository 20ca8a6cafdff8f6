"""What all checks share."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.patterns.checksums import digits_of, keccak_256, luhn, sponge, weighted, whole


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_exactly_one_check_digit_satisfies_luhn(digits: list[int]) -> None:
    assert sum(luhn([*digits, check]) for check in range(10)) == 1


def test_digits_weights_and_lengths() -> None:
    assert digits_of("a1-2٣") == [1, 2]
    assert weighted([1, 2, 3], (3, 2)) == 7
    assert (whole("abc", True), whole("abc", False)) == (3, 0)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
    ],
)
def test_keccak_of_published_texts(data: bytes, wanted: str) -> None:
    assert keccak_256(data).hex() == wanted


@given(st.binary(max_size=300))
def test_the_permutation_is_that_of_sha3(data: bytes) -> None:
    assert sponge(data, 0x06) == hashlib.sha3_256(data).digest()
