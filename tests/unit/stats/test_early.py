import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom

from flakestorm.stats.early import RISK, decided, required


def test_required_is_not_misled_by_binary_fractions() -> None:
    assert [required(rate, 5) for rate in (0.0, 0.2, 0.6, 0.8, 0.81, 1.0)] == [0, 1, 3, 4, 5, 5]
    assert required(0.7, 10) == 7


@given(st.data())
def test_arithmetic_alone_never_changes_a_verdict(data: st.DataObject) -> None:
    trials = data.draw(st.integers(1, 25))
    rate = data.draw(st.sampled_from([0.0, 0.5, 0.8, 0.9, 1.0]))
    outcomes = data.draw(st.lists(st.booleans(), min_size=trials, max_size=trials))
    final = "pass" if sum(outcomes) >= required(rate, trials) else "fail"
    for n in range(trials + 1):
        passed = sum(outcomes[:n])
        early = decided(passed, n - passed, trials=trials, rate=rate, risk=0)
        assert early in (None, final)
        if early:  # the rate over the trials so far says the same
            assert not n or (passed / n >= rate - 1e-9) == (early == "pass")
    assert decided(sum(outcomes), trials - sum(outcomes), trials=trials, rate=rate) == final


@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 20), st.floats(0.05, 1))
def test_foresight_is_the_beta_binomial(passed: int, failed: int, left: int, rate: float) -> None:
    trials = passed + failed + left
    need = required(rate, trials) - passed
    chance = betabinom.sf(need - 1, left, passed + 1, failed + 1)
    found, look = decided(passed, failed, trials=trials, rate=rate), RISK / 20
    kept = passed + failed > 0 and passed / (passed + failed) >= rate
    if need <= 0 or (kept and 1 - chance < look * 0.99):
        assert found == "pass"
    elif need > left or (passed + failed and not kept and chance < look * 0.99):
        assert found == "fail"
    elif look * 1.01 < chance < 1 - look * 1.01:
        assert found is None


@pytest.mark.parametrize(("trials", "rate"), [(20, 0.8), (50, 0.9), (100, 0.9), (100, 0.99)])
def test_all_looks_together_keep_to_the_risk_whatever_the_rate_is(trials: int, rate: float) -> None:
    """Exactly: every way to get to a stop, and how often all trials would have said otherwise from there."""
    for true in (rate - 0.02, rate, min(rate + 0.005, 0.999), min(rate + 0.01, 0.999)):
        open_, wrong = {0: 1.0}, 0.0
        for n in range(1, trials + 1):
            reached: dict[int, float] = {}
            for passed, chance in open_.items():
                reached[passed + 1] = reached.get(passed + 1, 0.0) + chance * true
                reached[passed] = reached.get(passed, 0.0) + chance * (1 - true)
            open_ = {}
            for passed, chance in reached.items():
                said = decided(passed, n - passed, trials=trials, rate=rate)
                if said is None:
                    open_[passed] = chance
                    continue
                passes = binom.sf(required(rate, trials) - passed - 1, trials - n, true)
                wrong += chance * (1 - passes if said == "pass" else passes)
        assert wrong < RISK


def test_what_is_decided_is_what_the_trials_so_far_say() -> None:
    """One pass of 2,000 trials that must all pass: it will hardly come to that, but nothing has failed yet."""
    assert decided(1, 0, trials=60_000, rate=1.0) is None
    assert decided(0, 1, trials=60_000, rate=1 / 60_000) is None


def test_a_rule_without_exception_is_never_passed_early() -> None:
    assert [decided(n, 0, trials=20, rate=1.0) for n in range(20)] == [None] * 20
    assert decided(19, 1, trials=20, rate=1.0) == decided(0, 1, trials=20, rate=1.0) == "fail"


@pytest.mark.parametrize("rate", [0.5, 0.6, 0.7])
def test_clear_cells_keep_their_verdict_at_half_the_runs(rate: float) -> None:
    rng, trials, cells, runs, changed = random.Random(3), 20, 3000, 0, 0
    for _ in range(cells):
        chance = rng.choice((0.02, 0.98))
        outcomes = [rng.random() < chance for _ in range(trials)]
        n = next(n for n in range(trials + 1) if decided(p := sum(outcomes[:n]), n - p, trials=trials, rate=rate))
        passed = sum(outcomes[:n])
        early = decided(passed, n - passed, trials=trials, rate=rate)
        changed += early != ("pass" if sum(outcomes) >= required(rate, trials) else "fail")
        runs += n
    assert changed == 0
    assert runs <= cells * trials / 2


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="3 passed and 2 failed of 4"):
        decided(3, 2, trials=4, rate=1.0)
    with pytest.raises(ValueError, match=r"in 0\.\.1"):
        decided(0, 0, trials=4, rate=2)
