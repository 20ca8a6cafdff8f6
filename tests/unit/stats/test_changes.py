import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.stats.changes import Count, changes


def test_one_change_is_placed_between_the_points_that_show_it() -> None:
    (found,) = changes([Count(0, 1, 16), Count(50, 8, 8), Count(100, 16, 16)])
    assert found.rise > 0.8
    assert (found.first, len(found.chances)) == (1, 100)
    assert sum(found.chances[:50]) == pytest.approx(1.0, abs=0.01)
    assert found.middle in (25, 26)


def test_points_of_one_rate_have_no_change() -> None:
    assert changes([Count(0, 8, 16), Count(50, 4, 8), Count(100, 9, 16)]) == []


def test_a_misleading_point_is_outvoted() -> None:
    counts = [Count(0, 0, 16), Count(10, 0, 8), Count(20, 2, 8), Count(30, 0, 8), Count(31, 24, 24), Count(40, 8, 8)]
    (found,) = changes(counts)
    assert found.likeliest[0] == 31
    assert found.likeliest[1] > 0.9


def test_two_changes_are_told_apart() -> None:
    counts = [Count(0, 1, 32), Count(19, 1, 24), Count(20, 12, 24), Count(60, 12, 24), Count(61, 24, 24)]
    assert [change.likeliest[0] for change in changes(counts)] == [20, 61]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 8)), min_size=1, max_size=12))
def test_positions_lie_within_the_points_and_their_chances_sum_to_one(pairs: list[tuple[int, int]]) -> None:
    counts = [Count(3 * at, min(failed, n), n) for at, (failed, n) in enumerate(pairs)]
    for change in changes(counts):
        assert sum(change.chances) == pytest.approx(1.0)
        assert change.first >= 1
        assert change.first + len(change.chances) - 1 <= counts[-1].k
        assert change.first <= change.middle <= counts[-1].k
