"""The plan of `run`: every golden prompt in every mutation, each type a scenario of its own.

So the map of a report reads: types of mutation x invariants. A scenario's trial is one mutation; with more than one
repetition of each, trials count on through them. Probes are inputs of their own and are sent as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec.structs import replace as with_fields

from flakestorm.config.model import Invariant, Scenario
from flakestorm.contracts.matrix import needs_baseline
from flakestorm.engine.plan import BASELINE, Plan, Trial, bounded, make_plan, run_id
from flakestorm.mutations.base import Mutation

__all__ = ["PROBES", "mutated_plan"]

PROBES = "probes"
"""The scenario of the invariants' own inputs."""


def mutated_plan(
    mutations: Sequence[Sequence[Mutation]],
    *,
    invariants: Sequence[Invariant],
    prompts: Sequence[str],
    trials: int = 1,
    chaos: Scenario = BASELINE,
    notes: Sequence[str] = (),
    budget: int | None = None,
) -> Plan:
    """Lay out the runs.

    Args:
        mutations: of each golden prompt, in order.
        invariants: what is judged; those with `probes` are judged on the probes.
        prompts: the golden prompts.
        trials: how often each mutation is run.
        chaos: what the agent's world is like meanwhile.
        notes, budget: see `Plan`.
    """
    every = [mutation for row in mutations for mutation in row]
    bounded(len(every), trials)
    kinds = dict.fromkeys(mutation.type for mutation in every)
    scenarios: Mapping[str, Scenario] = {kind: with_fields(chaos, name=kind) for kind in kinds}
    whole = make_plan("run", scenarios=[with_fields(chaos, name=PROBES)], invariants=invariants, prompts=prompts)
    probing = [trial for trial in whole.trials if trial.prompt >= whole.golden]
    plan = replace(whole, scenarios=tuple(scenarios.values()), trials=(), baseline=(), repeats=trials,
                   notes=tuple(notes), budget=budget)  # fmt: skip
    compared = [p for p in range(len(whole.prompts)) if any(map(needs_baseline, plan.judges(p)))]
    baseline = plan.controls(compared) if compared else ()
    runs: list[Trial] = []
    for kind, scenario in scenarios.items():
        for prompt, row in enumerate(mutations):
            own = [mutation for mutation in row if mutation.type == kind]
            cells = [mutation for mutation in own for _ in range(trials)]
            runs += [
                Trial("", scenario, prompt, mutation.text, number, plan.judges(prompt), mutation)
                for number, mutation in enumerate(cells, 1)
            ]
    runs += probing
    if probing:
        plan = replace(plan, scenarios=(*plan.scenarios, probing[0].scenario))
    numbered = [replace(trial, run=run_id(len(baseline) + at)) for at, trial in enumerate(runs)]
    return replace(plan, trials=tuple(numbered), baseline=baseline)
