"""pass^k: the chance that an agent does a task right k times in a row.

One good run says little about an agent that must be right every day. pass^k (S. Yao et al., "tau-bench: a benchmark
for tool-agent-user interaction in real-world domains", 2024) estimates, per task, the probability that k independent
runs all pass, without bias, from r runs of which c passed: C(c, k) / C(r, k). The tasks' mean is the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, sqrt

from flakestorm.core.record import Record
from flakestorm.stats.intervals import wilson
from flakestorm.stats.student import t_quantile

__all__ = ["PassK", "pass_k", "task_pass_k"]


class PassK(Record, frozen=True):
    """pass^k over tasks.

    Args:
        k: how many runs in a row.
        value: the mean over tasks, 0..1.
        low, high: its 95% interval.
        tasks: how many tasks it rests on; left_out: tasks with fewer than k runs, which cannot say.
    """

    k: int
    value: float
    low: float
    high: float
    tasks: int
    left_out: int = 0


def task_pass_k(passed: int, runs: int, k: int) -> float:
    """The unbiased estimate for one task: the share of its k-subsets of runs in which every run passed.

    Raises:
        ValueError: not 0 <= passed <= runs, or not 1 <= k <= runs.
    """
    if not 0 <= passed <= runs:
        raise ValueError(f"cannot have {passed} passed of {runs}")
    if not 1 <= k <= runs:
        raise ValueError(f"pass^{k} needs at least {max(k, 1)} runs of the task, but there are {runs}")
    return comb(passed, k) / comb(runs, k)


def pass_k(tasks: Sequence[tuple[int, int]], k: int, confidence: float = 0.95) -> PassK | None:
    """pass^k averaged over tasks, with a t-interval over tasks.

    When all tasks agree the t-interval would have zero width, which no finite number of tasks justifies; Wilson's
    interval over the tasks takes its place (a value in 0..1 varies no more than a coin with the same mean).

    Args:
        tasks: `(passed, runs)` of each task. Tasks with fewer than k runs are left out and counted.
        k: how many runs in a row, at least 1.
        confidence: of the t-interval.

    Returns:
        None when no task has k runs.

    Raises:
        ValueError: k is below 1, or a task has more passes than runs.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    values = [task_pass_k(passed, runs, k) for passed, runs in tasks if runs >= k]
    if not values:
        return None
    n = len(values)
    mean = sum(values) / n
    if max(values) == min(values):
        low, high = wilson(values[0] * n, n) or (0.0, 1.0)
        return PassK(k, values[0], low, high, n, len(tasks) - n)
    error = sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    half = t_quantile(confidence, n - 1) * error
    return PassK(k, mean, max(0.0, mean - half), min(1.0, mean + half), n, len(tasks) - n)
