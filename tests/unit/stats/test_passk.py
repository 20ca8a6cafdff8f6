import json
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import sem
from scipy.stats import t as student

from flakestorm.stats.intervals import wilson
from flakestorm.stats.passk import pass_k, task_pass_k

AIRLINE = Path(__file__).parents[4] / "shared" / "data" / "trajectories" / "tau_bench_gpt4o_airline.jsonl"


@pytest.mark.skipif(not AIRLINE.exists(), reason=f"the recorded runs are not here: {AIRLINE}")
@pytest.mark.parametrize(("k", "published"), [(1, 0.4900), (2, 0.3867), (3, 0.3400), (4, 0.3200)])
def test_recorded_airline_runs_give_the_published_figures(k: int, published: float) -> None:
    tasks: dict[int, list[bool]] = defaultdict(list)
    with AIRLINE.open() as lines:
        for run in map(json.loads, lines):
            tasks[run["task_id"]].append(run["reward"] == 1)
    result = pass_k([(sum(runs), len(runs)) for runs in tasks.values()], k)
    assert result is not None
    assert round(result.value, 4) == published
    assert result.tasks == 25
    assert result.low < published < result.high


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.data())
def test_a_task_counts_the_sets_of_k_runs_that_all_passed(runs: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(runs)))
    sets = [all(chosen) for chosen in combinations(runs, k)]
    assert task_pass_k(sum(runs), len(runs), k) == pytest.approx(sum(sets) / len(sets))


def test_the_interval_is_students_over_tasks() -> None:
    tasks = [(4, 4), (3, 4), (1, 4), (0, 4), (4, 4), (2, 4)]
    values = [task_pass_k(c, r, 2) for c, r in tasks]
    expected = student.interval(0.95, len(values) - 1, loc=np.mean(values), scale=sem(values))
    result = pass_k(tasks, 2)
    assert result is not None
    assert (result.low, result.high) == pytest.approx((max(0, expected[0]), min(1, expected[1])))


@pytest.mark.parametrize("passed", [0, 4])
def test_tasks_that_all_agree_leave_an_interval_with_width(passed: int) -> None:
    result = pass_k([(passed, 4)] * 10, 3)
    assert result is not None
    assert (result.low, result.high) == wilson(10 * passed / 4, 10)
    assert result.high - result.low > 0.2


def test_tasks_with_too_few_runs_are_left_out_and_counted() -> None:
    result = pass_k([(2, 2), (4, 4), (0, 4)], 3)
    assert result is not None
    assert (result.value, result.tasks, result.left_out) == (0.5, 2, 1)
    assert pass_k([(1, 1)], 2) is None
    assert pass_k([], 1) is None


@pytest.mark.parametrize(
    ("passed", "runs", "k", "message"),
    [(5, 4, 1, "cannot have 5 passed of 4"), (1, 2, 3, "needs at least 3 runs"), (1, 2, 0, "needs at least 1")],
)
def test_impossible_questions_are_refused(passed: int, runs: int, k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task_pass_k(passed, runs, k)


def test_k_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        pass_k([(1, 1)], 0)
