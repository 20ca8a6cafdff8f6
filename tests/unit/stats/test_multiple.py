import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.stats.multiple import holm


def test_the_textbook_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.001, 0.5))
def test_it_rejects_what_stepping_down_rejects(p_values: list[float], alpha: float) -> None:
    rejected: set[int] = set()
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[at] * (len(p_values) - rank) > alpha:
            break
        rejected.add(at)
    assert {at for at, p in enumerate(holm(p_values)) if p <= alpha} == rejected


@given(st.lists(st.floats(0, 1), max_size=12))
def test_nothing_becomes_likelier_and_order_is_kept(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    ranked = [a for _, a in sorted(zip(p_values, adjusted, strict=True))]
    assert ranked == sorted(ranked)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 10)), max_size=8), st.floats(0.001, 0.5))
def test_weighted_it_rejects_what_stepping_down_rejects(questions: list[tuple[float, float]], alpha: float) -> None:
    open_ = sorted(range(len(questions)), key=lambda at: questions[at][0] / questions[at][1])
    adjusted = holm([p for p, _ in questions], [weight for _, weight in questions])
    while open_:
        p, weight = questions[open_[0]]
        level = alpha * weight / sum(questions[at][1] for at in open_)
        if abs(p - level) < 1e-9:
            return  # a matter of rounding
        if p > level:
            break
        assert adjusted[open_.pop(0)] <= alpha
    assert all(adjusted[at] > alpha for at in open_)


def test_each_needs_a_weight() -> None:
    assert holm([0.01, 0.04], [1, 1]) == holm([0.01, 0.04]) == pytest.approx((0.02, 0.04))
    assert holm([0.01, 0.01, 0.01], [2, 1, 1]) == pytest.approx((0.02, 0.02, 0.02))
    for weights in ([1.0], [1.0, 0.0]):
        with pytest.raises(ValueError, match="one weight above 0"):
            holm([0.5, 0.5], weights)


def test_a_probability_is_needed() -> None:
    with pytest.raises(ValueError, match=r"in 0\.\.1"):
        holm([0.5, 1.5])
