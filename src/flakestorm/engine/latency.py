"""Latency limits under load: whether a level keeps them, and what that makes of the whole.

A percentile is known as far as its interval goes, so a limit that lies within it is neither kept nor broken: it is
inconclusive, and more runs tell.
"""

from __future__ import annotations

from collections.abc import Mapping

from flakestorm.core.verdict import Outcome
from flakestorm.engine.loaded import LevelResult, LimitAt, Loaded
from flakestorm.stats.percentiles import least_for

__all__ = ["HOW", "in_words", "limit_at", "spell", "with_limits"]

HOW: Mapping[Outcome, str] = {"pass": "held", "fail": "did not hold", "inconclusive": "could not be judged"}
"""What became of a limit, in words."""


def limit_at(level: LevelResult, percent: int, max_ms: float) -> LimitAt:
    """Whether a percentile of a level keeps its limit, as far as the interval tells.

    Args:
        level: with its latencies.
        percent: which percentile; one of `load.PERCENTS`.
        max_ms: the limit.
    """

    def said(verdict: Outcome, reason: str) -> LimitAt:
        return LimitAt(percent, max_ms, verdict, reason)

    found = next((latency for latency in level.latencies if latency.percent == percent), None)
    if level.duration_ms is None:
        return said("inconclusive", "the level was not finished")
    if found is None:
        timed = level.runs - level.unknown
        return said("inconclusive", f"it takes {least_for(percent)} runs to tell, and there were {timed} (load.runs)")
    what = f"{spell(found.value)} [{spell(found.low)}, {spell(found.high)}] in {found.n} runs"
    if found.high is not None and found.high <= max_ms:
        return said("pass", what)
    if found.low is not None and found.low <= max_ms:
        return said("inconclusive", f"{what}, so it may lie on either side; more runs tell (load.runs)")
    own_ms = level.own_ms or 0.0
    if found.low is not None and found.low <= max_ms + own_ms:
        return said("inconclusive", f"{what}, and up to {own_ms:.0f} ms of it may be flakestorm's own work")
    return said("fail", what)


def spell(ms: float | None) -> str:
    """A latency with its unit, in as many digits as mean something; where there is none, nothing was answered."""
    if ms is None:
        return "no answer"
    return f"{ms:.0f} ms" if ms >= 100 else f"{ms:.1f} ms"


def in_words(limit: LimitAt) -> str:
    """The limit itself, as it is named in every form of report."""
    return f"p{limit.percent:g} within {limit.max_ms:g} ms"


def with_limits(load: Loaded, exit_code: int, verdict: Outcome, headline: str) -> tuple[int, Outcome, str]:
    """What the latency limits make of a ruling: exit code, verdict and headline.

    A limit that a level breaks fails the whole; one that cannot be judged keeps it from passing.

    Args:
        load: with the limits of each level.
        exit_code, verdict, headline: what the promises have come to.
    """
    found = [(level.scenario, limit) for level in load.levels for limit in level.limits]

    def told(outcome: Outcome) -> str:
        these = [(name, limit) for name, limit in found if limit.verdict == outcome]
        if not these:
            return ""
        name, limit = these[0]
        more = f" (and {len(these) - 1} more)" if len(these) > 1 else ""
        return f"{in_words(limit)} {HOW[outcome]} with {name}: {limit.reason}{more}"

    if broken := told("fail"):
        said = {0: broken, 1: f"{headline}; {broken}"}.get(exit_code, f"{broken}; {headline}")
        return 130 if exit_code == 130 else 1, "fail", said
    if unsure := told("inconclusive"):
        return (3, "inconclusive", unsure) if exit_code == 0 else (exit_code, verdict, headline)
    if found and exit_code == 0:
        headline = f"{headline}, {len(found)} latency limit{'' if len(found) == 1 else 's'} kept"
    return exit_code, verdict, headline
