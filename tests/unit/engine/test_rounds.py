import itertools

import pytest
from msgspec.structs import replace

from engine_support import run_of, says, scenario
from flakestorm.engine.plan import make_plan
from flakestorm.engine.rounds import groups_of, next_round
from flakestorm.stats.early import required


def plan(trials: int, *, rate: float | None = None, prompts: int = 1):
    invariant = says("yes", min_pass_rate=rate)
    names = [f"p{n}" for n in range(prompts)]
    return make_plan("x", scenarios=[scenario("calm")], invariants=[invariant], prompts=names, trials=trials)


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_arithmetic_never_changes_a_verdict_whatever_the_outcomes(rate, concurrency) -> None:
    """Every sequence of outcomes there is, inconclusive ones included."""
    for trials in (2, 5):
        made = plan(trials, rate=rate)
        for outcomes in itertools.product("PFI", repeat=trials):
            whole = verdict(outcomes, rate)
            done = []
            group = groups_of(made.trials, done)[0]
            while group.left and not group.settled(risk=0):
                for trial in group.left[:concurrency]:
                    done.append(judged(trial, outcomes[trial.number - 1]))
                group = groups_of(made.trials, done)[0]
            assert verdict(outcomes[: len(done)], rate) == whole


def verdict(outcomes, rate):
    passed, failed = outcomes.count("P"), outcomes.count("F")
    return None if not passed + failed else passed >= required(rate, passed + failed)


def judged(trial, outcome):
    from flakestorm.core.verdict import inconclusive

    found = run_of(trial, "yes" if outcome == "P" else "no")
    if outcome != "I":
        return found
    from dataclasses import replace as changed

    return changed(found, verdicts=tuple((i, inconclusive("who knows")) for i, _ in found.verdicts))


def test_rounds_go_on_until_every_cell_is_decided_and_keep_the_concurrency_full() -> None:
    made, done, sizes = plan(10, rate=0.5, prompts=2), [], []
    while trials := next_round(groups_of(made.trials, done), 6):
        sizes.append(len(trials))
        done += [run_of(t, "yes" if t.prompt == 0 or t.number % 2 else "no") for t in trials]
    assert sizes[0] == 6
    assert all(size >= 1 for size in sizes)
    groups = groups_of(made.trials, done)
    assert all(group.settled() for group in groups)
    assert len(groups[0].left) > len(groups[1].left)  # the clear one was left sooner


def test_one_open_invariant_keeps_the_runs_of_all() -> None:
    both = [says("yes", name="first"), replace(says("yes", name="second"), min_pass_rate=0.5)]
    made = make_plan("x", scenarios=[scenario("calm")], invariants=both, prompts=["p"], trials=4)
    done = [run_of(trial, "yes") for trial in made.trials[:3]]
    assert not groups_of(made.trials, done)[0].settled(risk=0)
    done[0] = run_of(made.trials[0], "no")
    assert groups_of(made.trials, done)[0].settled(risk=0)


def test_nothing_made_is_open_and_everything_made_is_settled() -> None:
    made = plan(1)
    assert not groups_of(made.trials, [])[0].settled()
    assert groups_of(made.trials, [run_of(made.trials[0])])[0].settled()
    assert next_round([], 5) == []
