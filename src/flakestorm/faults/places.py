"""Where a context attack goes: what `inject_at` says.

| `inject_at` | where |
|---|---|
| `conversation` (the default) | the newest message: the user's, or a new one behind the results of tools |
| `step_N` | the same, with the N-th model call that the attack is for |
| `system` | the system prompt, which is made where there is none |
| `input` | the agent's own input (memory poisoning only): the one attack that changes what flakestorm asks |
"""

from __future__ import annotations

from typing import Literal

from flakestorm.config.model import ContextAttack
from flakestorm.core.record import Record
from flakestorm.core.regex import later
from flakestorm.errors import Misuse

__all__ = ["Place", "place_of"]

_STEP = later(r"step_([1-9]\d{0,5})")


class Place(Record, frozen=True):
    """Where in a run an attack acts: `at` the conversation, the system prompt or the input, and, where it is for one
    model call only, with which of those it is for (from 1)."""

    at: Literal["conversation", "system", "input"]
    step: int | None = None


def place_of(spec: ContextAttack) -> Place:
    """What `inject_at` says.

    Raises:
        Misuse: it names no such place, or one that this attack cannot go to.
    """
    said = spec.inject_at or ("input" if (spec.site or "").startswith("agent/") else "conversation")
    if step := _STEP.fullmatch(said):
        return Place("conversation", int(step[1]))
    if said == "input" and spec.type != "memory_poisoning":
        raise Misuse(f"{spec.type}: 'inject_at: input' is for memory_poisoning; use conversation, system or step_N")
    match said:
        case "conversation" | "system" | "input":
            return Place(said)
    known = "conversation, system, step_N" + (" or input" if spec.type == "memory_poisoning" else "")
    raise Misuse(f"{spec.type}: there is no place {said!r} to inject at; use {known}")
