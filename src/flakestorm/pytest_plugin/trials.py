"""Trials: the test runs once for each, with fixtures of its own, and is reported once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from _pytest.runner import runtestprotocol  # as other plug-ins that run a test again do; there is no public way

from flakestorm.errors import Misuse
from flakestorm.pytest_plugin.marks import Mark
from flakestorm.pytest_plugin.notes import RUNS, TAPED, TRIAL, UNJUDGED
from flakestorm.pytest_plugin.runs import Run
from flakestorm.pytest_plugin.verdict import add_section, properties
from flakestorm.stats.intervals import wilson

__all__ = ["Trial", "protocol", "ruled"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial of a test.

    Args:
        reports: of its set-up, its call (where it came to that) and its teardown.
        runs: the agent's.
        unjudged: why it cannot be judged; empty where it can.
    """

    reports: Sequence[pytest.TestReport]
    runs: Sequence[Run] = ()
    unjudged: str = ""

    @property
    def call(self) -> pytest.TestReport | None:
        """The report of the test itself."""
        return next((report for report in self.reports if report.when == "call"), None)


def protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test as often as its marker says (`pytest_runtest_protocol`)."""
    try:
        mark = Mark.of(item)
    except Misuse:
        mark = Mark()  # the test itself says so
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    trials = []
    for number in range(1, mark.trials + 1):
        item.stash[TRIAL] = number
        _forget(item)
        # What comes next decides what is torn down; of wider scopes, nothing is until the last trial.
        after = nextitem if number == mark.trials else copy.copy(item)
        reports = runtestprotocol(item, log=False, nextitem=after)
        runs: list[Run] = item.stash.get(RUNS, [])
        trials.append(Trial(reports, tuple(runs), item.stash.get(UNJUDGED, "")))
    for report in ruled(trials, mark):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _forget(item: pytest.Item) -> None:
    """Let go of what an earlier trial left."""
    keys: tuple[pytest.StashKey[Any], ...] = (RUNS, TAPED, UNJUDGED)
    for key in keys:
        if key in item.stash:
            del item.stash[key]


def ruled(trials: Sequence[Trial], mark: Mark) -> list[pytest.TestReport]:
    """The reports of the test, made of those of its trials.

    It fails where too few of the trials that can be judged passed, or none did, and where one cannot be judged for
    another reason than that a fault left to chance did not fire.
    """
    odd = next((t for t in trials if t.call is None or any(r.failed for r in t.reports if r.when != "call")), None)
    if odd is not None:
        return list(odd.reports)
    calls = [trial.call for trial in trials if trial.call is not None]
    passed = sum(call.passed for call in calls)
    failures = [t.call for t in trials if t.call is not None and t.call.failed and not t.unjudged]
    doubts = [t for t in trials if t.unjudged]
    conclusive = passed + len(failures)
    spoilt = [t.call for t in doubts if t.unjudged != "chance" or not conclusive]
    if failures and (not passed or passed < mark.min_pass_rate * conclusive - 1e-9):
        chosen = failures[0]
    elif spoilt and spoilt[0] is not None:
        chosen = spoilt[0]
    else:
        chosen = next((call for call in calls if call.passed), calls[0])
    chosen.duration = sum(call.duration for call in calls)
    if chosen.failed and len(trials) > 1:
        add_section(chosen, "flakestorm trials", _told(passed, conclusive, len(doubts), mark))
    setup, teardown = trials[-1].reports[0], trials[-1].reports[-1]
    counts: list[tuple[str, object]] = [
        ("flakestorm.trials", len(trials)),
        ("flakestorm.passed", passed),
        ("flakestorm.failed", len(failures)),
        ("flakestorm.inconclusive", len(doubts)),
    ]
    teardown.user_properties += [*counts, *properties([run for trial in trials for run in trial.runs])]
    return [setup, chosen, teardown]


def _told(passed: int, conclusive: int, doubts: int, mark: Mark) -> str:
    interval = wilson(passed, conclusive)
    rate = "no trial could be judged"
    if interval is not None:
        rate = (
            f"{passed} of {conclusive} trials passed ({passed / conclusive:.0%}, 95% interval {interval[0]:.0%} to "
            f"{interval[1]:.0%}); min_pass_rate is {mark.min_pass_rate:g}"
        )
    return rate + (f"; {doubts} inconclusive, not counted" if doubts else "")
