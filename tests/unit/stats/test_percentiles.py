import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, quantile_test

from flakestorm.stats.percentiles import least_for, percentile


@pytest.mark.parametrize("n", [6, 20, 36, 40, 72, 100, 368, 1000])
@pytest.mark.parametrize("percent", [10, 50, 90, 95, 99])
def test_the_interval_is_that_of_scipy(n: int, percent: float) -> None:
    values = np.random.default_rng(n).exponential(size=n)
    found = percentile(list(values), percent)
    theirs = quantile_test(values, p=percent / 100).confidence_interval(0.95)
    if found is None:
        assert math.isnan(theirs.low) or math.isnan(theirs.high)
    else:
        assert (found.low, found.high, found.n) == (theirs.low, theirs.high, n)
        assert found.value == np.quantile(values, percent / 100, method="inverted_cdf")


@pytest.mark.parametrize("percent", [1, 5, 25, 50, 75, 90, 95, 99, 99.9])
def test_no_percentile_of_too_few(percent: float) -> None:
    least = least_for(percent)
    assert percentile(range(least - 1), percent) is None
    assert percentile(range(least), percent) is not None


def test_how_many_are_needed() -> None:
    assert [least_for(percent) for percent in (50, 90, 95, 99)] == [6, 36, 72, 368]
    assert percentile(range(20), 99) is None


@given(st.lists(st.floats(0, 1e6) | st.just(math.inf), min_size=1, max_size=60), st.sampled_from([50, 90]))
def test_the_value_lies_within(values: list[float], percent: float) -> None:
    found = percentile(values, percent)
    assert (found is None) == (len(values) < least_for(percent))
    if found is not None:
        assert found.low <= found.value <= found.high
        assert {found.low, found.value, found.high} <= set(values)
        assert percentile(values[::-1], percent) == found


@pytest.mark.parametrize(("n", "percent"), [(6, 50), (37, 90), (80, 95), (400, 99)])
def test_it_covers_in_95_of_100_samples(n: int, percent: float) -> None:
    """Worked out, not drawn: the chance that the ranks chosen enclose the percentile of any distribution."""
    found = percentile(range(n), percent)
    assert found is not None
    ranks = binom(n, percent / 100)
    assert ranks.cdf(found.high) - ranks.cdf(found.low) >= 0.95 - 1e-12
    assert ranks.cdf(found.low) <= 0.025
    assert ranks.sf(found.high) <= 0.025


@pytest.mark.parametrize("percent", [0, 100, -5])
def test_no_such_percentile(percent: float) -> None:
    with pytest.raises(ValueError, match="above 0 and below 100"):
        percentile([1.0], percent)
