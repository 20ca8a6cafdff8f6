"""One report out of those of the trials."""

from typing import Any

import pytest

from flakestorm.pytest_plugin.marks import Mark
from flakestorm.pytest_plugin.trials import Trial, ruled


def report(when: Any, outcome: Any) -> pytest.TestReport:
    return pytest.TestReport("t", ("t", 0, "t"), {}, outcome, "why" if outcome == "failed" else None, when, duration=1)


def trial(outcome: str, unjudged: str = "") -> Trial:
    reports = [report("setup", "passed"), report("call", outcome), report("teardown", "passed")]
    return Trial(reports, (), unjudged)


P, F = trial("passed"), trial("failed")
CHANCE, UNFIRED = trial("failed", "chance"), trial("failed", "unfired")


@pytest.mark.parametrize(
    ("trials", "rate", "outcome"),
    [
        ([P, P], 1.0, "passed"),
        ([P, F], 1.0, "failed"),
        ([P, F], 0.5, "passed"),
        ([P, P, F], 2 / 3, "passed"),
        ([F, F], 0.0, "failed"),
        ([P, CHANCE], 1.0, "passed"),
        ([CHANCE, CHANCE], 1.0, "failed"),
        ([CHANCE, CHANCE], 0.0, "failed"),
        ([P, UNFIRED], 0.5, "failed"),
        ([F, CHANCE], 1.0, "failed"),
    ],
)
def test_what_is_made_of_them(trials, rate, outcome) -> None:
    found = ruled(trials, Mark(trials=len(trials), min_pass_rate=rate))
    assert [each.when for each in found] == ["setup", "call", "teardown"]
    assert found[1].outcome == outcome


def test_properties_count_the_trials() -> None:
    found = dict(ruled([P, F, CHANCE], Mark(trials=3))[2].user_properties)
    assert (found["flakestorm.trials"], found["flakestorm.passed"]) == (3, 1)
    assert (found["flakestorm.failed"], found["flakestorm.inconclusive"]) == (1, 1)


def test_a_failure_tells_the_rate_with_its_interval() -> None:
    failed = ruled([trial("passed"), trial("failed")], Mark(trials=2))[1]
    [(_, text)] = failed.sections
    assert text == "1 of 2 trials passed (50%, 95% interval 9% to 91%); min_pass_rate is 1"


def test_what_went_wrong_around_the_test_is_reported_as_it_is() -> None:
    broken = Trial([report("setup", "failed"), report("teardown", "passed")])
    assert ruled([P, broken], Mark(trials=2)) == list(broken.reports)
