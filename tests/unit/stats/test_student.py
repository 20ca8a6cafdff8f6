import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import betainc
from scipy.stats import t as reference

from flakestorm.stats.student import t_central, t_quantile


@given(st.floats(0, 50), st.integers(1, 400))
@example(1e-9, 1)
@example(7.35e-9, 1)
@example(1e-15, 4)
def test_the_distribution_agrees_with_scipy(t: float, df: int) -> None:
    """By the incomplete beta function (Abramowitz and Stegun, 26.7.1). scipy's own distribution is no measure near 0:
    with one degree of freedom it is 0 up to 5e-9, and 1 - 2 sf loses what is small in the difference."""
    assert t_central(t, df) == pytest.approx(betainc(0.5, df / 2, t * t / (df + t * t)), rel=1e-12, abs=1e-100)


def test_one_degree_of_freedom_is_the_angle() -> None:
    assert t_central(1e-9, 1) == pytest.approx(2e-9 / math.pi, rel=1e-15)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 9, 24, 49, 100, 1001])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_quantiles_agree_with_scipy(confidence: float, df: int) -> None:
    assert t_quantile(confidence, df) == pytest.approx(reference.ppf((1 + confidence) / 2, df), rel=1e-10)


@pytest.mark.parametrize(("confidence", "df"), [(0, 4), (1, 4), (0.95, 0)])
def test_questions_without_an_answer_are_refused(confidence: float, df: int) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(confidence, df)
