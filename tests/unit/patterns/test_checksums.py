"""What all checks share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.patterns.checksums import digits_of, luhn, weighted, whole


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_exactly_one_check_digit_satisfies_luhn(digits: list[int]) -> None:
    assert sum(luhn([*digits, check]) for check in range(10)) == 1


def test_digits_weights_and_lengths() -> None:
    assert digits_of("a1-2٣") == [1, 2]
    assert weighted([1, 2, 3], (3, 2)) == 7
    assert (whole("abc", True), whole("abc", False)) == (3, 0)
