from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from flakestorm.config.model import Invariant
from flakestorm.core.verdict import passed
from flakestorm.engine.adapting import adapt
from flakestorm.engine.mutating import mutated_plan
from flakestorm.engine.plan import Trial
from flakestorm.mutations.generate import made
from mutations_support import recipe

FILLED = Invariant(type="output_not_empty", id="filled")
PROBING = Invariant(type="output_not_empty", id="probing", probes=["a probe"])


def plan(budget: int):
    rows = [made(recipe("noise", "tone_shift", count=12), "Book a flight to Oslo")[0]]
    return mutated_plan(rows, invariants=[FILLED, PROBING], prompts=["Book a flight to Oslo"], budget=budget)


async def carried(budget: int, done: Sequence[Any] = ()) -> list[Any]:
    made_now: list[Any] = []

    async def run(trials: Sequence[Trial]) -> list[Any]:
        fresh = [SimpleNamespace(trial=trial, verdicts=((FILLED, passed("fine")),)) for trial in trials]
        made_now.extend(fresh)
        return fresh

    await adapt(plan(budget), 1, done, run)
    return made_now


async def test_the_budget_is_for_mutations_and_probes_are_run_in_any_case() -> None:
    ran = await carried(10)
    assert sum(j.trial.mutation is None for j in ran) == 1
    assert sum(j.trial.mutation is not None for j in ran) == 10
    assert plan(10).count == 11
    assert len(await carried(1000)) == len(plan(1000).trials)


async def test_what_was_made_already_is_spent() -> None:
    whole = await carried(10)
    rest = await carried(10, whole[:6])
    assert [j.trial.run for j in rest] == [j.trial.run for j in whole[6:]]
