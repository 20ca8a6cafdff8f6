"""The search for the step, in synthetic worlds whose causes are known; `python -m bench blame` makes more."""

import pytest
from bench.blame_worlds import STEPS, WORLDS, World, play, tally

from flakestorm.core.choices import Choices
from flakestorm.engine.blame import Seen, Terms, search

TRIALS = 60


@pytest.mark.parametrize(("name", "least"), [("clean jump", 0.97), ("leaky jump", 0.97), ("two causes", 0.9)])
def test_the_cause_is_named(name: str, least: float) -> None:
    found = tally(name, TRIALS)
    assert found.right >= least * TRIALS
    assert found.most <= 450


@pytest.mark.parametrize("name", ["no culprit", "coin flip"])
def test_where_no_step_did_it_none_is_named(name: str) -> None:
    found = tally(name, TRIALS)
    assert found.named <= 0.05 * TRIALS
    assert found.most <= 450


def test_intervals_hold_the_truth() -> None:
    found = [tally(name, TRIALS) for name in ("clean jump", "leaky jump", "two causes")]
    assert sum(each.covered for each in found) >= 0.94 * sum(each.intervals for each in found)


@pytest.mark.parametrize("steps", [6, 12, 20])
def test_a_planted_error_in_a_chat_is_found_every_time(steps: int) -> None:
    for at in range(1, steps + 1):
        world = World([0.02 if k < at else 1.0 for k in range(steps + 1)], frozenset({at}))
        finding = play(world, Choices(at, "chat").stream(steps), Terms())
        assert [cause.k for cause in finding.causes] == [at]


@pytest.mark.parametrize("at", [1, 2, 37, 99, 100])
def test_a_deterministic_agent_takes_few_forks(at: int) -> None:
    seeking = search(STEPS)
    wanted = next(seeking)
    finding = None
    while finding is None:
        try:
            wanted = seeking.send({k: [Seen(k >= at, f"run {k >= at}")] * times for k, times in wanted.items()})
        except StopIteration as end:
            finding = end.value
    assert [cause.k for cause in finding.causes] == [at]
    assert finding.steady
    assert finding.spent <= 2 + 4 + 3 * 7 + 2 * 6 + 6


def test_every_world_is_tried() -> None:
    assert set(WORLDS) == {"clean jump", "leaky jump", "two causes", "no culprit", "coin flip"}
