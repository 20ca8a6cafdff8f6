import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from flakestorm.core.choices import Choices
from flakestorm.stats.intervals import Weighed, in_places, weighted_rate, wilson


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(counts: tuple[int, int]) -> None:
    passed, n = counts
    reference = binomtest(passed, n).proportion_ci(0.95, method="wilson")
    assert wilson(passed, n) == pytest.approx((reference.low, reference.high), abs=1e-12)


@given(st.floats(0, 1), st.floats(0.01, 1e6))
def test_wilson_holds_the_rate_and_has_width_for_any_effective_size(rate: float, n: float) -> None:
    passed = min(rate * n, n)
    interval = wilson(passed, n)
    assert interval is not None
    low, high = interval
    assert 0 <= low < high <= 1
    assert low - 1e-12 <= passed / n <= high + 1e-12


@pytest.mark.parametrize(("passed", "edge"), [(0, 0.0), (4, 1.0)])
def test_agreement_of_all_runs_is_not_certainty(passed: int, edge: float) -> None:
    low, high = wilson(passed, 4) or (0, 0)
    assert edge in (low, high)
    assert high - low > 0.4


def test_no_data_no_number() -> None:
    assert wilson(0, 0) is None
    assert weighted_rate([]) is None


@pytest.mark.parametrize(("passed", "n"), [(-1, 4), (5, 4), (1, 0)])
def test_impossible_counts_are_refused(passed: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"cannot have {passed} passed of {n}"):
        wilson(passed, n)


def test_weights_must_be_positive() -> None:
    with pytest.raises(ValueError, match="above 0"):
        weighted_rate([Weighed(True, 0, "a")])


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.floats(0.1, 10))
def test_equal_weights_and_one_outcome_per_run_are_the_plain_wilson_interval(passes: list[bool], weight: float) -> None:
    rate = weighted_rate(Weighed(p, weight, i) for i, p in enumerate(passes))
    assert rate is not None
    plain = wilson(sum(passes), len(passes))
    # The spread between single outcomes estimates n - 1, so the interval may be that much wider, never narrower.
    wider = wilson(sum(passes) / len(passes) * max(1, len(passes) - 1), max(1, len(passes) - 1))
    assert plain is not None
    assert wider is not None
    assert wider[0] - 1e-9 <= rate.low <= plain[0] + 1e-9
    assert plain[1] - 1e-9 <= rate.high <= wider[1] + 1e-9
    assert rate.value == pytest.approx(sum(passes) / len(passes))


def test_the_value_is_the_weighted_mean() -> None:
    rate = weighted_rate([Weighed(True, 3, 1), Weighed(False, 2, 1), Weighed(True, 1, 2)])
    assert rate is not None
    assert rate.value == pytest.approx(4 / 6)
    assert 0 < rate.low < rate.value < rate.high < 1


def test_many_promises_kept_on_one_run_are_one_observation() -> None:
    one_run = weighted_rate(Weighed(True, 1, "r") for _ in range(20))
    twenty = weighted_rate(Weighed(True, 1, i) for i in range(20))
    assert one_run is not None
    assert twenty is not None
    assert (one_run.low, one_run.high) == wilson(1, 1)
    assert (twenty.low, twenty.high) == wilson(20, 20)


def test_a_promise_that_is_always_broken_does_not_widen_what_the_others_show() -> None:
    # Every run has the same score, so the runs do not move together and each outcome counts.
    rate = weighted_rate(Weighed(promise != 0, 1, run) for run in range(20) for promise in range(5))
    assert rate is not None
    assert (rate.low, rate.high) == pytest.approx(wilson(80, 100))


def test_uneven_weights_count_as_fewer_outcomes() -> None:
    weights = [3, 1, 1, 1, 1]
    rate = weighted_rate(Weighed(True, w, i) for i, w in enumerate(weights))
    assert rate is not None
    assert rate.effective_n == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))


def test_all_passed_is_exactly_one_with_awkward_weights() -> None:
    rate = weighted_rate(Weighed(True, w, i) for i, w in enumerate([0.1, 0.7, 1 / 3, 0.2]))
    assert rate is not None
    assert (rate.value, rate.high) == (1.0, 1.0)


def _agent(draw: random.Random, p: float, together: float) -> list[bool]:
    """Four promises on one run; with probability `together` they stand or fall as one."""
    if draw.random() < together:
        return [draw.random() < p] * 4
    return [draw.random() < p for _ in range(4)]


@pytest.mark.parametrize("together", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("p", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("runs", [12, 50])
def test_the_interval_covers_the_truth_however_much_promises_move_together(
    together: float, p: float, runs: int
) -> None:
    draw = Choices(1).stream("coverage", together, p, runs)
    covered, repeats = 0, 600
    for _ in range(repeats):
        rate = weighted_rate(
            Weighed(passed, weight, run)
            for run in range(runs)
            for passed, weight in zip(_agent(draw, p, together), (3, 2, 1, 1), strict=True)
        )
        assert rate is not None
        covered += rate.low <= p <= rate.high
    assert covered / repeats >= 0.90  # nominal 95%; discreteness and simulation noise take a little


def test_only_full_marks_become_full_marks() -> None:
    assert [in_places(x, 4) for x in (1.0, 0.99997, 0.99994, 0.94996, 0.0)] == [1.0, 0.9999, 0.9999, 0.95, 0.0]
    assert [in_places(x, 2, full=100) for x in (100.0, 99.996, 66.6666)] == [100.0, 99.99, 66.67]
