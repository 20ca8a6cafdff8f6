import random
import statistics
from math import comb, inf, log, log1p

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import beta
from scipy.stats import binom

from flakestorm.stats.sequential import Sprt, pairs_needed, regression_evidence, sameness_evidence

counts = st.integers(0, 60)


@given(counts, counts)
def test_the_evidence_of_a_regression_is_the_published_formula(lost: int, won: int) -> None:
    n = lost + won
    expected = 2.0 ** (n + 1) * beta(lost + 1, won + 1) * binom.sf(won, n + 1, 0.5)
    assert regression_evidence(lost, won) == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, 40))
def test_it_is_an_e_value(n: int) -> None:
    expectation = sum(binom.pmf(lost, n, 0.5) * regression_evidence(lost, n - lost) for lost in range(n + 1))
    assert expectation <= 1 + 1e-9


def test_thousands_of_pairs_neither_overflow_nor_vanish() -> None:
    assert regression_evidence(2000, 1000) > 1e60
    assert regression_evidence(20_000, 0) == inf
    assert 0 < regression_evidence(0, 400) < 1e-2


@given(st.floats(0.02, 0.5), st.floats(0, 1), st.integers(0, 8))
def test_the_evidence_of_sameness_is_an_e_value_where_the_rate_fell_by_the_margin(
    margin: float, share: float, n: int
) -> None:
    won = share * (1 - margin) / 2
    lost = won + margin
    tied = max(0.0, 1 - won - lost)
    expectation = 0.0
    for a in range(n + 1):
        for b in range(n + 1 - a):
            c = n - a - b
            chance = comb(n, a) * comb(n - a, b) * lost**a * won**b * tied**c
            expectation += chance * sameness_evidence(a, b, c, margin=margin)
    assert expectation <= 1 + 1e-6


def test_the_capital_is_spread_evenly_over_stakes() -> None:
    lost, won, tied, margin = 2, 3, 40, 0.1
    most = 1 / (1 - margin)

    def capital(stake: float) -> float:
        return float(
            (1 + stake * (1 + margin)) ** won * (1 + stake * margin) ** tied * (1 - stake * (1 - margin)) ** lost
        )

    expected = quad(capital, 0, most)[0] / most
    assert sameness_evidence(lost, won, tied, margin=margin) == pytest.approx(expected, rel=0.02)


def test_needed_pairs_are_those_that_are_enough() -> None:
    assert pairs_needed(0, 0, 45, margin=0.1, alpha=0.05) == 0
    few, more = pairs_needed(4, 4, 32, margin=0.1, alpha=0.05), pairs_needed(4, 4, 32, margin=0.05, alpha=0.05)
    assert few is not None
    assert more is not None
    assert 0 < few < more
    assert pairs_needed(30, 2, 10, margin=0.1, alpha=0.05) is None


def test_the_ratio_test_is_walds() -> None:
    test = Sprt(0.05, 0.8)
    assert test.evidence(2, 1) == pytest.approx(2 * log(16) + log1p(-0.8) - log1p(-0.05))
    assert [test.decide(n, 0) for n in (1, 2)] == [None, "p1"]
    assert [test.decide(0, n) for n in (1, 2, 3)] == [None, None, "p0"]


@pytest.mark.parametrize(("rate", "wrong"), [(0.05, "p1"), (0.8, "p0")])
def test_the_ratio_test_errs_no_more_often_than_it_says(rate: float, wrong: str) -> None:
    rng, test, errors, throws = random.Random(7), Sprt(0.05, 0.8), 0, []
    for _ in range(3000):
        seen = [0, 0]
        while (found := test.decide(*seen)) is None:
            seen[rng.random() >= rate] += 1
        errors += found == wrong
        throws.append(sum(seen))
    assert errors <= 0.02 * 3000 * 1.35
    assert statistics.mean(throws) < 4


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: regression_evidence(-1, 2), "-1 lost and 2 won"),
        (lambda: sameness_evidence(0, 0, -1, margin=0.1), "-1 tied"),
        (lambda: sameness_evidence(0, 0, 1, margin=1), "between 0 and 1, not 1"),
        (lambda: pairs_needed(0, 0, 1, margin=0.1, alpha=0), "alpha is a probability"),
        (lambda: Sprt(0.5, 0.5), "p0 < p1"),
        (lambda: Sprt(0.1, 0.5, alpha=0.6), "between 0 and 0.5"),
    ],
)
def test_impossible_questions_are_refused(ask: object, message: str) -> None:
    assert callable(ask)
    with pytest.raises(ValueError, match=message):
        ask()
