"""What a load test found out: how each level of users went, and where it gives way."""

from __future__ import annotations

from flakestorm.core.record import Record
from flakestorm.core.verdict import Outcome

__all__ = ["LatencyAt", "LevelResult", "LimitAt", "Loaded", "Pace", "PromiseAt"]


class Pace(Record, frozen=True):
    """How a level went by the clock.

    Args:
        took_ms: from the first request to the last answer.
        own_ms: see `LevelResult`.
    """

    took_ms: float
    own_ms: float | None


class LatencyAt(Record, frozen=True):
    """A percentile of the latencies of one level.

    A run without an answer counts as slower than any answer, so failing quickly makes no level look quick.

    Args:
        percent: which, e.g. 95.
        value: in ms; None: among the runs without an answer.
        low, high: 95% interval, in ms; None in the same sense.
        n: how many runs it rests on.
    """

    percent: float
    value: float | None
    low: float | None
    high: float | None
    n: int


class PromiseAt(Record, frozen=True):
    """One invariant at one level, over all prompts.

    Args:
        invariant: by id.
        passed, conclusive, inconclusive: runs.
        low, high: 95% interval of the rate passed/conclusive, 0..1; None without a conclusive run.
        failing: whether it is below its `min_pass_rate` with some prompt.
        worse: whether it is failing, was not at the first level, and the rates differ by more than chance explains (95%
            interval of the difference).
    """

    invariant: str
    passed: int
    conclusive: int
    inconclusive: int
    low: float | None
    high: float | None
    failing: bool
    worse: bool = False


class LimitAt(Record, frozen=True):
    """A latency limit at one level.

    Args:
        percent: of which percentile, e.g. 95.
        max_ms: what it may be.
        verdict: `pass` where all of the percentile's 95% interval keeps the limit, `fail` where all of it breaks it,
            beyond what flakestorm's own work explains, else `inconclusive`.
        reason: why, with the interval and the number of runs.
    """

    percent: float
    max_ms: float
    verdict: Outcome
    reason: str


class LevelResult(Record, frozen=True):
    """One level.

    Args:
        scenario: its name among the scenarios; users: how many could have a run under way at once.
        rate: how many new users came in a second, whether or not others had been answered; None where each user waits
            for an answer before asking again.
        runs: how many were made.
        answered: how many ended with an answer; unknown: how many could not be made for reasons that are not the
            agent's, and are left out of the latencies.
        duration_ms: wall time from the first request to the last answer; None where the level was not finished.
        per_second: answers a second; None where the level was not finished.
        under_way: how many runs were waiting for their answer at once, on average over that time: fewer than users
            where runs come to their end, and where an agent is so quick that it is not asked again as quickly; None
            where the level was not finished.
        own_ms: the most of a latency that may be flakestorm's own work: its processor time for a run, times the users
            who may be served before; None for an agent in the same process, whose work it cannot be told from.
        latencies: the percentiles that so many runs are enough for.
        promises: one for each invariant that applied.
        slower: whether its median is at least twice that of the first level, by intervals that do not touch, and
            `own_ms` does not explain it.
        limits: one for each latency limit of the config, in order of percentiles.
    """

    scenario: str
    users: int
    runs: int
    answered: int
    unknown: int
    duration_ms: float | None
    per_second: float | None
    under_way: float | None
    own_ms: float | None
    latencies: tuple[LatencyAt, ...]
    promises: tuple[PromiseAt, ...]
    slower: bool = False
    rate: float | None = None
    limits: tuple[LimitAt, ...] = ()


class Loaded(Record, frozen=True):
    """What a load test found.

    Args:
        levels: in rising order of users.
        knee: users of the first level at which a promise is worse or the median has doubled, or their rate where they
            come at one; None where there is none.
        why: the same in words.
    """

    levels: tuple[LevelResult, ...]
    knee: int | float | None
    why: str
