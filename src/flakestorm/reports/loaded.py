"""How each level of a load test went, in words that every form of report shares."""

from __future__ import annotations

from flakestorm.engine.latency import HOW, in_words
from flakestorm.engine.load import PERCENTS
from flakestorm.engine.loaded import LatencyAt, LevelResult, Loaded
from flakestorm.reports.text import counted, one_line
from flakestorm.stats.percentiles import least_for

__all__ = ["HEAD", "load_lines", "load_rows"]

HEAD = ("users", "at once", "answered", "answers/s", *(f"p{percent} ms" for percent in PERCENTS))
"""What the columns of `load_rows` are."""

_NONE = "no answer"

CLOSED = "closed loop: a user asks again when the answer has come; at once: runs that waited for an answer, on average"
OPEN = (
    "open loop: users come at this rate, whether or not others have been answered, and latencies count from when they "
    "come; at once: runs that waited for an answer, on average"
)


def load_rows(load: Loaded) -> list[tuple[str, ...]]:
    """One row for each level, as wide as `HEAD`."""
    return [_row(level) for level in load.levels]


def load_lines(load: Loaded) -> list[str]:
    """What broke where, with counts and intervals, and what the table means."""
    lines = [
        f"{level.scenario}: {one_line(promise.invariant, 80)} held in {promise.passed} of "
        f"{promise.conclusive} runs [{promise.low:.3f}, {promise.high:.3f}]"
        + (", worse than chance explains" if promise.worse else "")
        for level in load.levels
        for promise in level.promises
        if promise.failing and promise.low is not None and promise.high is not None
    ]
    lines += [
        f"{level.scenario}: {in_words(limit)} {HOW[limit.verdict]}: {one_line(limit.reason, 400)}"
        for level in load.levels
        for limit in level.limits
    ]
    given = {latency.percent for level in load.levels for latency in level.latencies}
    short = [f"p{percent} (needs {least_for(percent)})" for percent in PERCENTS if percent not in given]
    lines += [f"too few runs at every level for {', '.join(short)}"] if short else []
    lines += [
        f"{level.scenario}: up to {level.own_ms:.0f} ms of a latency may be flakestorm's own work; the "
        "knee allows for it"
        for level in load.levels[-1:]
        if level.own_ms is not None
    ]
    unknown = sum(level.unknown for level in load.levels)
    lines += [f"{counted(unknown, 'run')} could not be made from here: left out of the latencies"] if unknown else []
    return [
        *lines,
        OPEN if any(level.rate is not None for level in load.levels) else CLOSED,
        "a run without an answer counts as slower than any answer",
    ]


def _row(level: LevelResult) -> tuple[str, ...]:
    found = {latency.percent: latency for latency in level.latencies}
    speed = "-" if level.per_second is None else f"{level.per_second:.1f}"
    latencies = (_latency(found.get(percent)) for percent in PERCENTS)
    busy = "-" if level.under_way is None else f"{level.under_way:.1f}"
    users = str(level.users) if level.rate is None else f"{level.rate:g}/s"
    return (users, busy, f"{level.answered} of {level.runs}", speed, *latencies)


def _latency(latency: LatencyAt | None) -> str:
    if latency is None:
        return "-"
    return f"{_ms(latency.value)} [{_ms(latency.low)}, {_ms(latency.high)}]"


def _ms(value: float | None) -> str:
    if value is None:
        return _NONE
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"
