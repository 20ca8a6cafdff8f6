import random

import numpy as np
import pytest
from scipy.stats import norm, ttest_rel

from flakestorm.stats.difference import agresti_caffo, mean_difference


def test_agresti_caffo_adds_one_pass_and_one_fail_to_each() -> None:
    found = agresti_caffo(7, 10, 2, 12)
    assert found is not None
    first, second = 8 / 12, 3 / 14
    half = norm.ppf(0.975) * np.sqrt(first * (1 - first) / 12 + second * (1 - second) / 14)
    assert found.value == pytest.approx(2 / 12 - 7 / 10)
    assert (found.low, found.high) == pytest.approx((second - first - half, second - first + half))


@pytest.mark.parametrize(("rate1", "rate2", "n"), [(0.02, 0.05, 24), (0.5, 0.9, 24), (0.95, 0.97, 48), (0.2, 0.8, 16)])
def test_agresti_caffo_covers(rate1: float, rate2: float, n: int) -> None:
    rng, runs, covered = random.Random(11), 4000, 0
    for _ in range(runs):
        first, second = (sum(rng.random() < rate for _ in range(n)) for rate in (rate1, rate2))
        found = agresti_caffo(first, n, second, n)
        assert found is not None
        covered += found.low <= rate2 - rate1 <= found.high
    assert covered / runs >= 0.94


def test_without_a_sample_there_is_no_difference() -> None:
    assert agresti_caffo(0, 0, 1, 1) is None
    assert mean_difference([(1.0, 2.0)]) is None
    with pytest.raises(ValueError, match="cannot have 3 passed of 2"):
        agresti_caffo(0, 1, 3, 2)


def test_a_mean_difference_is_students_over_pairs() -> None:
    pairs = [(1.0, 2.5), (2.0, 1.0), (4.0, 7.0), (3.0, 3.5), (9.0, 9.5)]
    found = mean_difference(pairs)
    assert found is not None
    expected = ttest_rel([b for _, b in pairs], [a for a, _ in pairs]).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.first_n == 5
