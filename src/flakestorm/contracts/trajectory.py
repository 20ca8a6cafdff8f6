"""Invariants on the tape: which calls the agent made, in which order, with what, and how many.

A call counts when it arrived at the boundary, whether or not a fault answered it: the agent meant to make it. A tool
that is a plain function inside the agent counts when the model asked for it and was told its result (`calls.py`). Where
the model asked for a tool and nobody knows what came of it, its absence proves nothing and the verdict is inconclusive.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import orjson

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView, built_in
from flakestorm.contracts.calls import ToolCall, calls_of, includes, offered, sites, tool_calls, tools_seen, unseen
from flakestorm.contracts.evidence import plain
from flakestorm.contracts.schemas import problem, schema_of, vet_schema
from flakestorm.core.site import KINDS
from flakestorm.core.verdict import Verdict, failed, inconclusive, passed
from flakestorm.errors import Misuse

__all__ = ["COUNTED", "vet_kind"]

COUNTED = ("llm", "tool", "mcp", "http")
"""The kinds that are calls of the agent to somebody; its input and its draws are not."""


@built_in("tool_called", "requires", needs=("tool",), evidence="tape")
def tool_called(spec: Invariant, run: RunView) -> Verdict:
    """The tool (a name or a glob) was called, with at least these `args` where any are given."""
    tool = spec.tool or ""
    hits = _hits(spec, run)
    if hits:
        return passed(f"{tool} was called: {sites(hits)}")
    if blind := unseen(tool, run, spec.args):
        return inconclusive(blind)
    calls = calls_of(tool, run)
    if calls:
        last = next(iter(calls[-1].arguments), {})
        return failed(f"{tool} was called, but never with {_json(spec.args)}; last with {_json(last)}: {sites(calls)}")
    return failed(f"{tool} was never called; {tools_seen(run)}")


@built_in("tool_not_called", "forbids", needs=("tool",), evidence="tape")
def tool_not_called(spec: Invariant, run: RunView) -> Verdict:
    """The tool (a name or a glob) was not called; where `args` are given, not with these."""
    hits = _hits(spec, run)
    if hits:
        with_args = f" with {_json(spec.args)}" if spec.args else ""
        return failed(f"{spec.tool} was called{with_args}: {sites(hits)}")
    if blind := unseen(spec.tool or "", run, spec.args):
        return inconclusive(blind)
    return passed(f"{spec.tool} was not called; {tools_seen(run)}")


def vet_kind(spec: Invariant) -> None:
    """Refuse a `kind` that is none."""
    if spec.kind is not None and spec.kind not in KINDS:
        raise Misuse(f"unknown kind {spec.kind!r}; one of {', '.join(KINDS)}")


@built_in("max_calls", "forbids", needs=("limit",), evidence="tape", vet=vet_kind)
def max_calls(spec: Invariant, run: RunView) -> Verdict:
    """At most `limit` calls of this `kind` (all of them by default), to this `tool` where one is named.

    An SDK's own retries are calls like any other.
    """
    found = tool_calls(run)
    kinds = (spec.kind,) if spec.kind else ("tool", "mcp") if spec.tool else COUNTED
    if spec.tool:
        counted = [call.site for call in calls_of(spec.tool, run) if call.kind in kinds]
    else:
        inside = [call for call in found.made if call.exchange is None and call.kind in kinds]
        at = [(n, str(x.site)) for n, x in enumerate(run.exchanges) if x.kind in kinds]
        counted = [site for _, site in sorted([*at, *((call.n + 0.5, call.site) for call in inside)])]
    doubtful = [c for c in found.open if c.kind in kinds and (not spec.tool or c.means(spec.tool))]
    limit = spec.limit or 0
    what = " ".join(word for word in (spec.kind, "calls", f"to {spec.tool}" if spec.tool else None) if word)
    if len(counted) > limit:
        return failed(f"{len(counted)} {what}, more than {limit:g}; the first too many is {counted[int(limit)]}")
    if len(counted) + len(doubtful) > limit:
        return inconclusive(f"{len(counted)} {what}, and nobody knows whether {sites(doubtful)} was called too")
    return passed(f"{len(counted)} {what}, at most {limit:g} allowed")


@built_in("tool_order", "forbids", needs=("before", "after"), evidence="tape")
def tool_order(spec: Invariant, run: RunView) -> Verdict:
    """`after` (a name or a glob) was never called before `before` had been.

    It says nothing about whether `before` alone was called, and is kept where `after` was not called at all. Calls that
    the model asks for in one reply count in the order in which they stand there.
    """
    first, second = spec.before or "", spec.after or ""
    made = tool_calls(run).made
    late = next((i for i, call in enumerate(made) if call.means(second)), None)
    early = next((i for i, call in enumerate(made) if call.means(first)), None)
    if late is None:
        if blind := unseen(second, run) or _stranger(second, run):
            return inconclusive(blind)
        return passed(f"{second} was not called, so nothing was out of order; {tools_seen(run)}")
    if early is not None and early < late:
        return passed(f"{first} ({made[early].site}) came before {second} ({made[late].site})")
    if blind := unseen(first, run):
        return inconclusive(blind)
    when = f"only afterwards: {made[early].site}" if early is not None and early != late else "not before it"
    return failed(f"{second} was called ({made[late].site}), and {first} {when}; {tools_seen(run)}")


@built_in("tool_args", "forbids", needs=("tool", "schema_"), evidence="tape", vet=vet_schema)
def tool_args(spec: Invariant, run: RunView) -> Verdict:
    """Every call of the tool (a name or a glob) had arguments that fit the JSON Schema.

    Queries and form fields carry text only: where the schema wants a number or a boolean, one that is written as text
    will do. A call that can be read in several ways fits if one of them does.
    """
    tool = spec.tool or ""
    calls = calls_of(tool, run)
    if not calls:
        if blind := unseen(tool, run) or _stranger(tool, run):
            return inconclusive(blind)
        return passed(f"{tool} was not called; {tools_seen(run)}")
    unread = [call for call in calls if not call.arguments]
    for call in calls:
        if call.arguments and (wrong := _misfit(call, schema_of(spec))):
            return failed(f"{call.site} was called with {_json(call.arguments[0])}: {wrong}")
    if unread:
        return inconclusive(f"the arguments of {sites(unread)} cannot be read as an object")
    return passed(f"the arguments of all {len(calls)} calls fit the schema: {sites(calls)}")


def _misfit(call: ToolCall, schema: Mapping[str, Any]) -> str:
    wrong = ""
    for given in call.arguments:
        forms = [given, {name: _typed(value) for name, value in given.items()}] if call.loose else [given]
        found = [problem(schema, form) for form in forms]
        if not all(found):
            return ""
        wrong = wrong or found[0]
    return wrong


def _typed(value: Any) -> Any:
    """A value of a query as the number or boolean it is written as."""
    try:
        return orjson.loads(value) if isinstance(value, str) and value[:1] in "-0123456789tf" else value
    except orjson.JSONDecodeError:
        return value


def _stranger(tool: str, run: RunView) -> str | None:
    """Why a tool that was not called may be a slip of the pen: nobody in this run has heard of it."""
    if any(fnmatchcase(name, tool) or fnmatchcase(tool, name) for name in offered(run)):
        return None
    return (
        f"{tool} was not called, and nothing in this run shows that there is such a tool: no model was offered it and "
        f"boundary.tools does not name it; {tools_seen(run)}"
    )


def _hits(spec: Invariant, run: RunView) -> list[ToolCall]:
    calls = calls_of(spec.tool or "", run)
    if not spec.args:
        return calls
    return [call for call in calls if any(includes(given, spec.args) for given in call.arguments)]


def _json(value: Any) -> str:
    return plain(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode())
