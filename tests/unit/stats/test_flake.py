from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.stats.flake import flake_rate
from flakestorm.stats.intervals import wilson


def test_cells_that_did_both_are_flaky() -> None:
    found = flake_rate([(4, 4), (3, 4), (0, 4), (1, 1), (0, 0)])
    assert found is not None
    assert (found.flaky, found.cells, found.rate) == (1, 3, pytest.approx(1 / 3))
    assert (found.low, found.high) == wilson(1, 3)


@given(st.lists(st.booleans(), min_size=2, max_size=8))
def test_disagreement_is_that_of_two_of_its_runs(runs: list[bool]) -> None:
    pairs = [a != b for a, b in combinations(runs, 2)]
    found = flake_rate([(sum(runs), len(runs))])
    assert found is not None
    assert found.disagreement == pytest.approx(sum(pairs) / len(pairs))


def test_no_repeats_no_number() -> None:
    assert flake_rate([(1, 1), (0, 1)]) is None
    with pytest.raises(ValueError, match="cannot have 2 passed of 1"):
        flake_rate([(2, 1)])
