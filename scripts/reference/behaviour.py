"""docs/reference/faults.md, and the parts of invariants.md and mutations.md that are made."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from flakestorm.config.base import Strict, keys_of
from flakestorm.config.faults import ContextAttack, Fault, LlmFault, ToolFault
from flakestorm.config.invariants import Invariant
from flakestorm.config.vocabulary import MUTATION_WEIGHTS
from flakestorm.contracts.base import invariants
from flakestorm.contracts.base import settings as needs
from flakestorm.faults import modes, profiles
from flakestorm.faults.base import context_attacks, conversation_attacks, llm_faults, result_faults, tool_faults
from flakestorm.faults.schedule import Schedule
from flakestorm.mutations.base import AnyOperator
from flakestorm.mutations.generate import operators_of

from .markdown import cell, code, prose, table

__all__ = ["faults", "invariant_types", "operators"]

_INTRO = """# Faults

Every mode that is built in, in the words of the code: what happens to the call, and what the agent gets. [How faults
act](../explanation/faults.md) says how they fit together, [what each provider says](model-faults.md) in which form, and
[write your own](../how-to/write-a-fault.md) how to add one.

In a config a mode stands in a list: `tool_faults`, `llm_faults` or `context_attacks`, in a scenario or under `chaos`.
In one line it is `SITE=MODE:ARG,KEY=VALUE`, as `--inject` takes it and reports show it; ARG is the setting named for
the mode. A fault that finds nothing to do does not fire, and says so.
"""
_SHARED = tuple(keys_of(Fault))
_RULE = ("type", "id", "description", "severity", "when", "negate", "turn", "probes", "min_pass_rate")


def faults() -> str:
    """The page of faults."""
    tool, llm = modes.arguments(modes.TOOL), modes.arguments(modes.LLM)
    attacks = {**modes.arguments(modes.CONTEXT), **modes.arguments(modes.CONVERSATION)}
    parts = [
        _INTRO,
        "## When a fault fires",
        "Settings of every mode. All that are given must agree.",
        _settings(Fault, _SHARED),
        "## Tool faults",
        f"In `tool_faults`. `tool` (a name or a glob; `*` by default) says whose calls. {_about(ToolFault, 'where')}",
    ]
    results = set(modes.arguments(modes.RESULT)) | {m for inside in modes.RESULT.values() for m in inside}
    for mode in _names(modes.TOOL):
        about = prose(tool_faults.get(mode).__doc__)
        if mode in results:
            told = prose(result_faults.get(mode).__doc__)
            about += f"\n\nOf a result on its way to the model: {told[:1].lower()}{told[1:]}" if told else ""
        else:
            about += "\n\nIt has no form for results: a tool whose calls nobody sees cannot be broken so."
        parts += [f"### {mode} (tool)" if mode in _names(modes.LLM) else f"### {mode}", _arg(mode, tool), about]
        parts.append(_own(ToolFault, tool_faults.get(mode), tool.get(mode)))
    parts += ["## Model faults", "In `llm_faults`. `model` (a name or a glob; `*` by default) says whose replies."]
    for mode in _names(modes.LLM):
        title = f"### {mode} (model)" if mode in _names(modes.TOOL) else f"### {mode}"
        parts += [title, _arg(mode, llm), prose(llm_faults.get(mode).__doc__)]
        parts.append(_own(LlmFault, llm_faults.get(mode), llm.get(mode)))
    parts += ["## Context attacks", "In `context_attacks`: a list, or a mapping keyed by type. [How obedience is "
              "proven](../explanation/context-attacks.md)."]  # fmt: skip
    for registry, known in ((context_attacks, modes.CONTEXT), (conversation_attacks, modes.CONVERSATION)):
        for mode in _names(known):
            function: Any = registry.get(mode)
            parts += [f"### {mode}", _arg(mode, attacks, "type"), prose(function.__doc__)]
            parts.append(_own(ContextAttack, function, attacks.get(mode)))
    parts += ["## Profiles", "Ready-made bad days: `flakestorm chaos --profile NAME`, or `--chaos-profile` of `run`. "
              "[One of your own](../explanation/faults.md) is a YAML file with a `name`, a `description` and the lists "
              "`tool_faults`, `llm_faults` and `context_attacks`; it works by its path."]  # fmt: skip
    for found in map(profiles.profile, profiles.names()):
        lines = Schedule.written(found.scenario).describe()
        parts += [f"### {found.name}", f"{cell(found.description)}\n\n```text\n" + "\n".join(lines) + "\n```"]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def invariant_types() -> str:
    """The part of invariants.md that is made: every type in the words of the code."""
    keys = keys_of(Invariant)
    parts = ["## Every type, in the words of the code"]
    for name in sorted(invariants):
        function = invariants.get(name)
        required = {need.rstrip("_") for need in needs[name]}
        said = {key for key in keys if key not in _RULE and f"`{key}`" in (function.__doc__ or "")}
        named = {key for key, each in keys.items() if re.search(rf"\b{name}\b.*?:", each.about)}
        rows = [(f"`{key}`", "**required**" if key in required else "", cell(keys[key].about.partition(": ")[2] or
                 keys[key].about)) for key in keys if key in required | said | named]  # fmt: skip
        parts += [f"### {name}", prose(function.__doc__)]
        parts += [table(("setting", "", "meaning"), rows)] if rows else []
    return "\n\n".join(parts) + "\n"


def operators() -> str:
    """The part of mutations.md that is made: the operators of every type."""
    rows = []
    for name in MUTATION_WEIGHTS:
        made = operators_of(name, {})
        if made:
            rows.append((f"`{name}`", _of_kind(made, "benign"), _of_kind(made, "attack")))
    intro = (
        "## Every operator\n\nReports name them; `TYPE#N` is the N-th mutation of a type, and the seed says which.\n\n"
    )
    return intro + table(("type", "benign", "attack"), rows) + "\n"


def _of_kind(made: tuple[AnyOperator, ...], kind: str) -> str:
    return ", ".join(f"`{each.name}`" for each in made if each.kind == kind)


def _names(known: modes.Modes) -> list[str]:
    return [mode for inside in known.values() for mode in inside]


def _arg(mode: str, arguments: Mapping[str, str], key: str = "mode") -> str:
    main = arguments.get(mode)
    return f"`{key}: {mode}`" + (f", in one line `{mode}:{main.upper()}`" if main else "")


def _own(block: type[Strict], function: Callable[..., Any], main: str | None) -> str:
    """The settings that a mode's own words or the words about a setting connect with it."""
    mode = function.__name__
    doc = inspect.getdoc(function) or ""
    known = keys_of(block)
    own = [name for name in known if name not in (*_SHARED, "tool", "model", "mode", "type", "where", "enabled")]
    chosen = [
        name
        for name in own
        if name == main or f"`{name}" in doc or re.search(rf"\b{mode}\b", known[name].about.partition(": ")[0])
    ]
    return _settings(block, chosen) if chosen else ""


def _settings(block: type[Strict], names: tuple[str, ...] | list[str]) -> str:
    known = keys_of(block)
    return table(("setting", "meaning"), ((code(name), cell(known[name].about)) for name in names))


def _about(block: type[Strict], name: str) -> str:
    return f"`{name}` is {cell(keys_of(block)[name].about)}."
