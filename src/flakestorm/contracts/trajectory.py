"""Invariants on the tape: which calls the agent made.

A call counts when it arrived at the boundary, whether or not a fault answered it: the agent meant to make it. Only
what a seam sees is on the tape, so where the model asked for a tool that no seam has ever seen, its absence proves
nothing and the verdict is inconclusive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView, built_in
from flakestorm.contracts.evidence import plain
from flakestorm.core.call import header
from flakestorm.core.site import KINDS
from flakestorm.core.verdict import Verdict, failed, inconclusive, passed
from flakestorm.errors import Misuse
from flakestorm.tape.model import Exchange
from flakestorm.tape.tools import tools_named
from flakestorm.wire.classify import wire_of
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.mcp import housekeeping
from flakestorm.wire.mcp_reply import output_schemas

__all__ = ["COUNTED", "arguments", "includes", "tools_seen"]

COUNTED = ("llm", "tool", "mcp", "http")
"""The kinds that are calls of the agent to somebody; its input and its draws are not."""


@built_in("tool_called", "requires", needs=("tool",), evidence="tape")
def tool_called(spec: Invariant, run: RunView) -> Verdict:
    """The tool (a name or a glob) was called, with at least these `args` where any are given."""
    tool = spec.tool or ""
    hits = _hits(spec, run)
    if hits:
        return passed(f"{tool} was called: {_sites(hits)}")
    if unseen := _unseen(spec, run):
        return inconclusive(unseen)
    calls = _calls(tool, run)
    if calls:
        last = next(arguments(calls[-1]), {})
        return failed(f"{tool} was called, but never with {_json(spec.args)}; last with {_json(last)}: {_sites(calls)}")
    return failed(f"{tool} was never called; {tools_seen(run)}")


@built_in("tool_not_called", "forbids", needs=("tool",), evidence="tape")
def tool_not_called(spec: Invariant, run: RunView) -> Verdict:
    """The tool (a name or a glob) was not called; where `args` are given, not with these."""
    hits = _hits(spec, run)
    if hits:
        with_args = f" with {_json(spec.args)}" if spec.args else ""
        return failed(f"{spec.tool} was called{with_args}: {_sites(hits)}")
    if unseen := _unseen(spec, run):
        return inconclusive(unseen)
    return passed(f"{spec.tool} was not called; {tools_seen(run)}")


def _vet_kind(spec: Invariant) -> None:
    if spec.kind is not None and spec.kind not in KINDS:
        raise Misuse(f"unknown kind {spec.kind!r}; one of {', '.join(KINDS)}")


@built_in("max_calls", "forbids", needs=("limit",), evidence="tape", vet=_vet_kind)
def max_calls(spec: Invariant, run: RunView) -> Verdict:
    """At most `limit` calls of this `kind` (all of them by default), to this `tool` where one is named.

    An SDK's own retries are calls like any other.
    """
    kinds = (spec.kind,) if spec.kind else ("tool", "mcp") if spec.tool else COUNTED
    calls = [x for x in run.exchanges if x.kind in kinds and (not spec.tool or _is_call(x, spec.tool))]
    limit = spec.limit or 0
    what = " ".join(word for word in (spec.kind, "calls", f"to {spec.tool}" if spec.tool else None) if word)
    if len(calls) > limit:
        return failed(f"{len(calls)} {what}, more than {limit:g}; the first too many is {calls[int(limit)].site}")
    return passed(f"{len(calls)} {what}, at most {limit:g} allowed")


def tools_seen(run: RunView) -> str:
    """The names of the tools this run called, or its model spoke of, in words."""
    names = dict.fromkeys(x.name for x in run.exchanges if x.kind in ("tool", "mcp") and not housekeeping(x.name))
    inside = [name for name in tools_named(run.exchanges) if name not in names]
    if names or inside:
        only = f" (in the model's conversation only: {_list(inside)})" if inside else ""
        return f"tools seen: {_list([*names, *inside])}{only}"
    return "no tool was seen" if run.exchanges else "nothing crossed the boundary"


def _list(names: list[str]) -> str:
    return ", ".join(plain(name, 60) for name in names)


def _calls(tool: str, run: RunView) -> list[Exchange]:
    return [x for x in run.exchanges if x.kind in ("tool", "mcp") and _is_call(x, tool)]


def _is_call(exchange: Exchange, tool: str) -> bool:
    """Whether this is a call the glob means. MCP's own housekeeping is meant only by its exact name."""
    return fnmatchcase(exchange.name, tool) and (exchange.name == tool or not housekeeping(exchange.name))


def _hits(spec: Invariant, run: RunView) -> list[Exchange]:
    calls = _calls(spec.tool or "", run)
    if not spec.args:
        return calls
    return [x for x in calls if any(includes(given, spec.args) for given in arguments(x))]


def _unseen(spec: Invariant, run: RunView) -> str | None:
    """Why the absence of this tool's calls from the tape proves nothing, or None if it does."""
    tool = spec.tool or ""
    if _calls(tool, run) or any(fnmatchcase(tool, name) for name in run.visible):
        return None
    if any(fnmatchcase(name, tool) for name in _listed(run)):
        return None  # its server is held, so a call to it would have been seen
    for exchange in run.exchanges:
        wire = wire_of(exchange.wire) if exchange.kind == "llm" else None
        if wire is None:
            continue
        said = wire.said(decode_body(exchange.reply.body, exchange.reply.headers), stream=exchange.reply.stream)
        for asked in said.tool_calls:
            if fnmatchcase(asked.name, tool) and (not spec.args or includes(_loads(asked.arguments), spec.args)):
                return (
                    f"the model asked for {plain(asked.name, 60)} ({exchange.site}), but no call to it crossed the "
                    "boundary, so nobody knows whether it was made; name its URL in boundary.tools, or register it in "
                    "agent.tools"
                )
    return None


def arguments(exchange: Exchange) -> Iterator[Mapping[str, Any]]:
    """What a call was given, in each form it may be read: MCP arguments, JSON object, form fields, query parameters."""
    body = _loads(exchange.body)
    if isinstance(body, dict):
        inner = body.get("params")
        if exchange.kind == "mcp" and isinstance(inner, dict) and isinstance(inner.get("arguments"), dict):
            yield inner["arguments"]
        else:
            yield body
    elif (header(exchange.headers, "content-type") or "").startswith("application/x-www-form-urlencoded"):
        yield dict(parse_qsl(exchange.body.decode("utf-8", "replace"), keep_blank_values=True))
    try:
        query = urlsplit(exchange.url).query
    except ValueError:  # not a URL; the agent may have meant anything
        return
    if query:
        yield dict(parse_qsl(query, keep_blank_values=True))


def includes(given: Any, wanted: Any) -> bool:
    """Whether everything wanted is in what was given: objects by subset, everything else by JSON equality.

    A string that was given (all a query can carry) equals a number or boolean that is written the same in JSON.
    """
    if isinstance(wanted, Mapping):
        return isinstance(given, Mapping) and all(k in given and includes(given[k], v) for k, v in wanted.items())
    if isinstance(wanted, (list, tuple)):
        same = isinstance(given, (list, tuple)) and len(given) == len(wanted)
        return same and all(includes(g, w) for g, w in zip(given, wanted, strict=True))
    if isinstance(given, bool) or isinstance(wanted, bool):  # True == 1 in Python, but not in JSON
        return given is wanted or given == ("true" if wanted is True else "false")
    if isinstance(given, str) and isinstance(wanted, (int, float)):
        return given == str(wanted)
    return bool(given == wanted)


def _listed(run: RunView) -> Iterator[str]:
    """The tools that MCP servers told the agent of, in this run."""
    for exchange in run.exchanges:
        if exchange.kind == "mcp" and exchange.name == "tools/list":
            yield from output_schemas(decode_body(exchange.reply.body, exchange.reply.headers))


def _loads(text: bytes | str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _json(value: Any) -> str:
    return plain(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode())


def _sites(exchanges: list[Exchange]) -> str:
    shown = ", ".join(str(x.site) for x in exchanges[:5])
    return shown if len(exchanges) <= 5 else f"{shown} and {len(exchanges) - 5} more"
