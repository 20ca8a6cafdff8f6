"""Where mutations meet the project: which are wanted, and the plan that runs them."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest

from flakestorm.api.carrying import Work
from flakestorm.api.loops import in_a_loop
from flakestorm.api.options import Options
from flakestorm.config.model import Config, Scenario
from flakestorm.engine.mutating import mutated_plan
from flakestorm.engine.plan import Plan
from flakestorm.errors import Misuse
from flakestorm.mutations.base import Mutation
from flakestorm.mutations.generate import Recipe, made, nth

__all__ = ["benign", "in_one", "mutated", "recipe_of"]

POOL = 3
"""How many times more mutations there are to choose from where they are chosen as runs finish."""


def recipe_of(config: Config, seed: int) -> Recipe:
    """Which mutations a config wants. Templates are used wherever there are any."""
    wanted = config.mutations
    types = [*wanted.types, *(["custom"] if wanted.custom_templates else [])]
    return Recipe(tuple(dict.fromkeys(types)), wanted.count, seed, wanted.weights, wanted.custom_templates)


def benign(config: Config, prompt: str, count: int, seed: int) -> list[str]:
    """So many inputs that mean the same as a golden prompt, or nearly: its mutations that are no attacks, one of each
    type after the other.

    Args:
        config: says which types.
        prompt: the golden prompt.
        count: how many at most.
        seed: every choice follows from it.
    """
    recipe = replace(recipe_of(config, seed), count=count)
    rows: dict[str, list[str]] = {}
    for mutation in made(recipe, prompt)[0]:
        if mutation.kind == "benign" and mutation.text != prompt:
            rows.setdefault(mutation.type, []).append(mutation.text)
    in_turn = [text for texts in zip_longest(*rows.values()) for text in texts if text is not None]
    return in_turn[:count]


def mutated(work: Work, options: Options, chaos: Scenario) -> Plan:
    """What `run` would run.

    Args:
        work: the project.
        options: how; their seed is decided.
        chaos: what the agent's world is like meanwhile.
    """
    config = work.config
    recipe = recipe_of(config, options.seed or 0)
    budget = None
    if config.mutations.strategy == "adaptive":
        budget = len(config.golden_prompts) * len(recipe.types) * recipe.count * (options.trials or 1)
        recipe = replace(recipe, count=recipe.count * POOL)
    rows = _rows(config, recipe)
    said = budget is None or sum(len(mutations) for mutations, _ in rows) * (options.trials or 1) < budget
    return mutated_plan(
        [mutations for mutations, _ in rows],
        invariants=config.invariants,
        prompts=config.golden_prompts,
        trials=options.trials or 1,
        chaos=chaos,
        notes=[note for _, notes in rows for note in notes] if said else (),
        budget=budget,
    )


def _rows(config: Config, recipe: Recipe) -> list[tuple[list[Mutation], list[str]]]:
    """The mutations of each golden prompt, and what must be said about them."""
    if config.mutations.engine == "builtin":
        return [made(recipe, prompt) for prompt in config.golden_prompts]
    from flakestorm.api.writing import written  # few have a model write
    from flakestorm.models.client import ModelClient

    return written(config, recipe, ModelClient, in_a_loop)


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
