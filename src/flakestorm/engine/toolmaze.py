"""Scenarios made from what an agent does: every tool it uses, broken openly and quietly, once and for good.

`contract.generate: toolmaze` runs each prompt without chaos first. Each tool that was called there, or whose result a
model was told, then gets its scenarios:

- *explicit*: the tool says that it failed (`error`); an agent can see that.
- *implicit*: the tool says something else than it should, in good form (`wrong_value`); an agent can only suspect that.
- *transient*: the first call only. An agent should try again. *permanent*: every call. It should say so.
- *timeout after commit*: the tool did its work, and the answer to the first call is lost.

The four corners are those of ToolMaze's tool failures. The runs without chaos serve as the controls of all the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from flakestorm.config.model import Scenario, ToolFault
from flakestorm.core.call import Call
from flakestorm.engine.judged import Judged
from flakestorm.faults.base import tool_faults
from flakestorm.wire.mcp.protocol import housekeeping

__all__ = ["scenarios_for", "tools_in", "tools_used"]

_LIES = ("wrong_value", "empty", "malformed")
"""What stands for a quiet failure: the first of these that can be played."""

_CORNERS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    ("explicit transient", ("error",), {"calls": [1]}),
    ("explicit permanent", ("error",), {}),
    ("implicit transient", _LIES, {"calls": [1]}),
    ("implicit permanent", _LIES, {}),
    ("timeout after commit", ("timeout_after_commit",), {"calls": [1]}),
)


def tools_used(calm: Iterable[Judged]) -> tuple[str, ...]:
    """The names of the tools in these runs without chaos; see `tools_in`."""
    return tools_in((judged.calls, judged.results) for judged in calm)


def tools_in(runs: Iterable[tuple[Sequence[Call], Sequence[str]]]) -> tuple[str, ...]:
    """The names of the tools whose calls crossed, and of those whose results models were told of, as they appeared.

    Args:
        runs: of each, its calls and the tools of its results.
    """
    names: dict[str, None] = {}
    for calls, results in runs:
        called = (call.name for call in calls if call.kind in ("tool", "mcp") and not housekeeping(call.name))
        names.update(dict.fromkeys((*called, *results)))
    return tuple(names)


def scenarios_for(tools: Iterable[str], *, taken: Iterable[str] = ()) -> tuple[Scenario, ...]:
    """The scenarios of these tools, named `toolmaze: TOOL explicit transient` and so on.

    Args:
        tools: by name.
        taken: names of scenarios that there are already; those are left out.
    """
    known, playable = set(taken), tool_faults.names()
    made = []
    for tool in tools:
        for corner, modes, triggers in _CORNERS:
            mode = next((mode for mode in modes if mode in playable), None)
            name = f"toolmaze: {tool} {corner}"
            if mode is not None and name not in known:
                made.append(Scenario(name=name, tool_faults=[ToolFault(tool=_exactly(tool), mode=mode, **triggers)]))
    return tuple(made)


def _exactly(name: str) -> str:
    """A glob that this name alone matches."""
    return re.sub(r"[*?\[]", lambda sign: f"[{sign[0]}]", name)
