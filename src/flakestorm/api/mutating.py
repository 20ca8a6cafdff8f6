"""Where mutations meet the project: which are wanted, and the plan that runs them."""

from __future__ import annotations

from dataclasses import replace

from flakestorm.api.carrying import Work
from flakestorm.api.options import Options
from flakestorm.config.model import Config, Scenario
from flakestorm.engine.mutating import mutated_plan
from flakestorm.engine.plan import Plan
from flakestorm.errors import Misuse
from flakestorm.mutations.generate import Recipe, made, nth

__all__ = ["in_one", "mutated", "recipe_of"]


def recipe_of(config: Config, seed: int) -> Recipe:
    """Which mutations a config wants. Templates are used wherever there are any."""
    wanted = config.mutations
    types = [*wanted.types, *(["custom"] if wanted.custom_templates else [])]
    return Recipe(tuple(dict.fromkeys(types)), wanted.count, seed, wanted.weights, wanted.custom_templates)


def mutated(work: Work, options: Options, chaos: Scenario) -> Plan:
    """What `run` would run.

    Args:
        work: the project.
        options: how; their seed is decided.
        chaos: what the agent's world is like meanwhile.
    """
    config = work.config
    recipe = recipe_of(config, options.seed or 0)
    rows = [made(recipe, prompt) for prompt in config.golden_prompts]
    return mutated_plan(
        [mutations for mutations, _ in rows],
        invariants=config.invariants,
        prompts=config.golden_prompts,
        trials=options.trials or 1,
        chaos=chaos,
        notes=[note for _, notes in rows for note in notes],
    )


def in_one(work: Work, plan: Plan, options: Options, named: str) -> Plan:
    """The plan of one golden prompt, with that prompt in one mutation.

    Args:
        work, options: as for `mutated`.
        plan: of the prompt as it is.
        named: `TYPE#NUMBER`.

    Raises:
        Misuse: there is no such mutation.
    """
    name, mark, number = named.partition("#")
    if not mark or not number.isdecimal():
        raise Misuse(f"a mutation is named TYPE#NUMBER, e.g. noise#3, not {named!r}")
    recipe = recipe_of(work.config, options.seed or 0)
    found = {trial.prompt: nth(recipe, name, trial.text, int(number)) for trial in plan.trials}
    return replace(
        plan,
        trials=tuple(replace(t, text=found[t.prompt].text, mutation=found[t.prompt]) for t in plan.trials),
        baseline=(),
    )
