"""Latency limits: kept, broken, or not to be told; and what that makes of the whole."""

import pytest

from flakestorm.engine.latency import in_words, limit_at, with_limits
from flakestorm.engine.loaded import LatencyAt, LevelResult, LimitAt, Loaded


def level(low=100.0, value=150.0, high=200.0, *, own_ms=None, duration_ms=1000.0, n=80, unknown=0) -> LevelResult:
    latencies = (LatencyAt(95, value, low, high, n),) if n >= 72 else ()
    return LevelResult(
        "10 users", 10, n + unknown, n, unknown, duration_ms, 1.0, 1.0, own_ms, latencies, (), False, None
    )


@pytest.mark.parametrize(
    ("found", "max_ms", "verdict", "reason"),
    [
        (level(), 200, "pass", "150 ms [100 ms, 200 ms] in 80 runs"),
        (level(), 99, "fail", "150 ms [100 ms, 200 ms] in 80 runs"),
        (level(), 180, "inconclusive", "may lie on either side; more runs tell (load.runs)"),
        (level(high=None), 180, "inconclusive", "[100 ms, no answer]"),
        (level(None, None, None), 60_000, "fail", "no answer [no answer, no answer]"),
        (level(own_ms=30.0), 75, "inconclusive", "up to 30 ms of it may be flakestorm's own work"),
        (level(own_ms=30.0), 69, "fail", "in 80 runs"),
        (level(n=40, unknown=60), 60_000, "inconclusive", "it takes 72 runs to tell, and there were 40 (load.runs)"),
        (level(duration_ms=None), 60_000, "inconclusive", "the level was not finished"),
    ],
)
def test_a_limit_is_decided_by_the_whole_interval(found, max_ms, verdict, reason) -> None:
    limit = limit_at(found, 95, max_ms)
    assert (limit.percent, limit.max_ms, limit.verdict) == (95, max_ms, verdict)
    assert reason in limit.reason


KEPT, BROKEN, OPEN = (LimitAt(95, 200, verdict, "why") for verdict in ("pass", "fail", "inconclusive"))


@pytest.mark.parametrize(
    ("limits", "before", "after"),
    [
        ((), (0, "pass", "met"), (0, "pass", "met")),
        ((KEPT,), (0, "pass", "met"), (0, "pass", "met, 1 latency limit kept")),
        ((KEPT, KEPT), (0, "pass", "met"), (0, "pass", "met, 2 latency limits kept")),
        (
            (OPEN, KEPT),
            (0, "pass", "met"),
            (3, "inconclusive", "p95 within 200 ms could not be judged with 1 user: why"),
        ),
        ((BROKEN, OPEN), (0, "pass", "met"), (1, "fail", "p95 within 200 ms did not hold with 1 user: why")),
        ((BROKEN,), (1, "fail", "bad"), (1, "fail", "bad; p95 within 200 ms did not hold with 1 user: why")),
        (
            (BROKEN, BROKEN),
            (3, "inconclusive", "?"),
            (1, "fail", "p95 within 200 ms did not hold with 1 user: why (and 1 more); ?"),
        ),
        ((BROKEN,), (130, "inconclusive", "?"), (130, "fail", "p95 within 200 ms did not hold with 1 user: why; ?")),
        ((OPEN,), (1, "fail", "bad"), (1, "fail", "bad")),
        ((OPEN,), (3, "inconclusive", "?"), (3, "inconclusive", "?")),
        ((KEPT,), (3, "inconclusive", "?"), (3, "inconclusive", "?")),
    ],
)
def test_a_broken_limit_fails_the_whole_and_an_open_one_is_no_pass(limits, before, after) -> None:
    one = LevelResult("1 user", 1, 80, 80, 0, 1.0, 1.0, 1.0, None, (), (), limits=limits)
    assert with_limits(Loaded((one,), None, ""), *before) == after


def test_a_limit_has_one_name() -> None:
    assert in_words(LimitAt(99, 1500.0, "pass", "")) == "p99 within 1500 ms"
