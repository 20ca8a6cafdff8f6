import itertools
from math import inf

import pytest

from compare_support import run_result
from flakestorm.engine.budget import Budget, Limits


def still() -> float:
    return 0.0


def test_no_limit_is_no_limit() -> None:
    budget = Budget(Limits(), still)
    assert not Limits().any
    assert all(budget.claim() for _ in range(1000))
    assert (budget.reached, budget.doubt, budget.left) == ("", "", None)


def test_runs_are_counted_when_they_start() -> None:
    budget = Budget(Limits(runs=2), still)
    assert [budget.claim() for _ in range(4)] == [True, True, False, False]
    assert (budget.reached, budget.left) == ("--max-runs 2", 0)


@pytest.mark.parametrize(
    ("limits", "said"), [(Limits(tokens=10), "--max-tokens 10"), (Limits(cost=0.1), "--max-cost 0.1")]
)
def test_what_runs_used_is_counted_when_they_end(limits, said) -> None:
    budget = Budget(limits, still)
    assert budget.claim()
    budget.spend(run_result(tokens=6, cost=0.06))
    assert budget.claim()
    budget.spend(run_result(tokens=6, cost=0.06))
    assert not budget.claim()
    assert budget.reached == said


def test_time_counts_from_the_beginning() -> None:
    clock = itertools.count(100)
    budget = Budget(Limits(time_s=2.5), lambda: float(next(clock)))
    assert [budget.claim() for _ in range(3)] == [True, True, False]
    assert budget.reached == "--max-time 2.5"


def test_what_is_not_known_is_said() -> None:
    budget = Budget(Limits(tokens=5, cost=1), still)
    budget.spend(run_result(tokens=1))
    budget.spend(run_result())
    assert budget.doubt == "the cost and tokens of 2 runs is not known, so the budget does not count them"
    silent = Budget(Limits(runs=5), still)
    silent.spend(run_result())
    assert silent.doubt == ""


def test_how_much_time_is_left() -> None:
    clock = [5.0]
    budget, endless = (Budget(Limits(time_s=time_s), lambda: clock[0]) for time_s in (2.5, None))
    clock[0] = 6.0
    assert (budget.left_s, endless.left_s) == (1.5, inf)
    clock[0] = 60.0
    assert budget.left_s == 0
