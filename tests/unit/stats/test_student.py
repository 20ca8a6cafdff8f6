import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as reference

from flakestorm.stats.student import t_central, t_quantile


@given(st.floats(0, 50), st.integers(1, 400))
def test_the_distribution_agrees_with_scipy(t: float, df: int) -> None:
    assert t_central(t, df) == pytest.approx(1 - 2 * reference.sf(t, df), abs=1e-12)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 9, 24, 49, 100, 1001])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_quantiles_agree_with_scipy(confidence: float, df: int) -> None:
    assert t_quantile(confidence, df) == pytest.approx(reference.ppf((1 + confidence) / 2, df), rel=1e-10)


@pytest.mark.parametrize(("confidence", "df"), [(0, 4), (1, 4), (0.95, 0)])
def test_questions_without_an_answer_are_refused(confidence: float, df: int) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(confidence, df)
