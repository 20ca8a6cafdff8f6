from contextlib import contextmanager
from dataclasses import replace

import pytest

from engine_support import FakeWorld, run_of, says, scenario
from flakestorm.config.model import Invariant
from flakestorm.core.answer import AgentError
from flakestorm.engine.judged import baselines_of, judged, refused
from flakestorm.engine.mutating import mutated_plan
from flakestorm.engine.plan import make_plan
from flakestorm.mutations.generate import made
from mutations_support import recipe


def test_a_check_that_never_ends_is_inconclusive(tmp_path) -> None:
    class Impatient(FakeWorld):
        @contextmanager
        def limited(self, seconds):
            raise TimeoutError
            yield

    slow = Invariant(id="slow", type="regex", pattern="(f+)+$")
    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[slow, says("found")], prompts=["a"])
    found = run_of(plan.trials[0])
    (_, verdict), (_, at_once) = judged(plan.trials[0], found.run, found.view, Impatient(tmp_path)).verdicts
    assert verdict.outcome == "inconclusive"
    assert "took longer" in verdict.reason
    assert at_once.conclusive, "what is one look at the output needs no limit"


@pytest.mark.parametrize(
    ("message", "turned_away"),
    [("HTTP 413 Too Large: x", True), ("HTTP 501 Not Implemented", True), ("HTTP 500 Oops", False)],
)
def test_only_an_attack_on_the_request_is_turned_away(message, turned_away) -> None:
    error = AgentError("http", message)
    for trial in _mutated().trials:
        attack = trial.mutation.change is not None and trial.mutation.kind == "attack"
        assert refused(trial, error) == (turned_away and attack)
        assert not refused(trial, AgentError("crash", message))
        assert not refused(trial, None)


def _mutated():
    rows = [made(recipe("payload_size_attack", "noise", count=5), "Book a flight")[0]]
    return mutated_plan(rows, invariants=[says("search", name="says")], prompts=["Book a flight"])


def test_the_baseline_of_a_prompt_is_what_its_first_run_without_error_said() -> None:
    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[says("found")], prompts=["a", "b"], trials=2)
    runs = [run_of(trial, f"{trial.text} {trial.number}") for trial in plan.trials]
    assert baselines_of(runs) == {0: "a 1", 1: "b 1"}
    refused = replace(runs[0], view=replace(runs[0].view, starved=True))
    assert baselines_of([refused, *runs[1:]]) == {0: "a 2", 1: "b 1"}
