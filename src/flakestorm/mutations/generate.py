"""Mutations of a golden prompt: the endless row of each type, and as many of it as are wanted.

A mutation is decided by (seed, prompt, type, number) and by nothing else: not by the other types, the other prompts or
the order they are made in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import cast

from flakestorm.config.vocabulary import MUTATION_WEIGHTS
from flakestorm.core.choices import Choices, Draw
from flakestorm.core.conversation import Conversation
from flakestorm.errors import Misuse
from flakestorm.mutations.base import (
    TEXT_LIMIT,
    AnyOperator,
    ConversationOperator,
    Mutation,
    Operator,
    RequestOperator,
    types,
)
from flakestorm.mutations.outgoing import Outgoing

__all__ = ["Recipe", "made", "nth", "operators_of", "row", "shortfall"]

PATIENCE = 12
"""How many rounds in which no operator found anything new end a row."""

CORE = 6
"""How many operators of a type come first for every prompt; the others follow in an order of the prompt's own, so that
a small count reaches all of them over the prompts and seeds."""

_PROBE = Outgoing("POST", "http://agent.invalid/", body=b'{"input": "hello"}')
"""What changes of a request are told apart by."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Which mutations are wanted of each golden prompt.

    Args:
        types: in order; count: of each.
        seed: every choice follows from it.
        weights: by type, where the default is not wanted.
        templates: texts with `{prompt}`, by name, for the type `custom`.
    """

    types: Sequence[str]
    count: int
    seed: int
    weights: Mapping[str, float]
    templates: Mapping[str, str]

    def weight(self, name: str) -> float:
        """What a test of this type counts."""
        return self.weights.get(name, MUTATION_WEIGHTS.get(name, 1.0))


def made(recipe: Recipe, prompt: str) -> tuple[list[Mutation], list[str]]:
    """The mutations of a prompt, type by type, and what must be said where there are fewer than wanted.

    No two are alike, of whatever type, and none is the prompt itself.
    """
    taken: set[bytes] = set()
    found: list[Mutation] = []
    notes: list[str] = []
    for name in dict.fromkeys(recipe.types):
        own: list[Mutation] = []
        for mutation in row(recipe, name, prompt):
            if (key := _key(mutation)) not in taken:
                taken.add(key)
                own.append(mutation)
            if len(own) == recipe.count:
                break
        found += own
        if len(own) < recipe.count:
            notes.append(shortfall(name, len(own), recipe.count, prompt))
    return found, notes


def shortfall(name: str, got: int, wanted: int, prompt: str) -> str:
    """What is said where a type has fewer mutations of a prompt than were asked for."""
    shown = prompt if len(prompt) <= 60 else f"{prompt[:57]}..."
    return f"{name}: {got} of {wanted} mutations of {shown!r}; there are no more distinct ones"


def row(recipe: Recipe, name: str, prompt: str) -> Iterator[Mutation]:
    """The distinct mutations of one type in their order, until there are no more to be found.

    Raises:
        Misuse: the type is not known, or an operator of a plug-in failed.
    """
    operators = operators_of(name, recipe.templates)
    if isinstance(prompt, Conversation):
        from flakestorm.mutations.dialogue import dialogue  # few golden prompts have turns

        operators = (*dialogue(name), *operators)
    choices = Choices(recipe.seed, "mutation", prompt, name)
    seen = {_digest(prompt)}
    idle = turn = number = 0
    while idle < PATIENCE and operators:
        order = list(operators[CORE:] if not turn else operators)
        choices.stream("order", turn).shuffle(order)
        if not turn:
            order = [*operators[:CORE], *order]
        fresh = False
        for operator in order:
            found = _applied(operator, name, prompt, choices, turn)
            if found is None or (key := _key(found)) in seen:
                continue
            seen.add(key)
            fresh, number = True, number + 1
            yield Mutation(name, operator.name, operator.kind, prompt, found.text, number, recipe.weight(name),
                           found.change)  # fmt: skip
        turn += 1
        idle = 0 if fresh else idle + 1


def nth(recipe: Recipe, name: str, prompt: str, number: int) -> Mutation:
    """The mutation with this number, from 1.

    Raises:
        Misuse: the row of this type ends before it.
    """
    found = next(islice(row(recipe, name, prompt), number - 1, None), None) if number > 0 else None
    if found is None:
        raise Misuse(f"there is no mutation {name}#{number} of this prompt; they are numbered from 1")
    return found


def operators_of(name: str, templates: Mapping[str, str]) -> tuple[AnyOperator, ...]:
    """The operators of a type.

    Raises:
        Misuse: there is no such type, or a plug-in's gives something else.
    """
    if name == "custom":
        from flakestorm.mutations.custom import operators  # only where there are templates

        return operators(templates)
    make = types.get(name)
    try:
        found = tuple(make())
    except Exception as error:
        raise Misuse(f"mutation type {name!r} gives no operators: {type(error).__name__}: {error}") from error
    if not all(isinstance(operator, (Operator, RequestOperator)) for operator in found):
        raise Misuse(f"mutation type {name!r} must give a tuple of flakestorm.mutations.base.Operator")
    return found


def _applied(operator: AnyOperator, name: str, prompt: str, choices: Choices, turn: int) -> Mutation | None:
    """What this operator makes of the prompt this time; None where that is nothing."""
    if isinstance(operator, RequestOperator):
        change = partial(_changed, operator.change, choices, operator.name, turn)
        return Mutation(name, operator.name, operator.kind, prompt, prompt, 0, change=change)
    draw = choices.stream(operator.name, turn)
    if isinstance(operator, ConversationOperator):
        text: str | None = operator.change(cast(Conversation, prompt), draw)
    elif isinstance(prompt, Conversation):
        at = choices.below(len(prompt.turns), "turn", operator.name, turn)
        text = _written(operator, name, prompt.turns[at], draw)
        text = None if text is None else prompt.changed(at, lambda _, text=text: text)  # type: ignore[misc]
    else:
        text = _written(operator, name, prompt, draw)
    if text is None or len(text) > TEXT_LIMIT:
        return None
    return Mutation(name, operator.name, operator.kind, prompt, text, 0)


def _written(operator: Operator, name: str, prompt: str, draw: Draw) -> str | None:
    try:
        text = operator.write(prompt, draw)
    except Exception as error:
        raise Misuse(f"mutation {name}/{operator.name} failed on {prompt[:60]!r}: {error}") from error
    return None if not isinstance(text, str) or text == prompt else text


def _changed(
    change: Callable[..., Outgoing], choices: Choices, operator: str, turn: int, request: Outgoing
) -> Outgoing:
    return change(request, choices.stream(operator, turn)).within_limits(request)


def _key(mutation: Mutation) -> bytes:
    if mutation.change is None:
        return _digest(mutation.text)
    return _digest(f"{mutation.type}: {mutation.change(_PROBE)!r}")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
