"""The tool calls of a run, wherever they can be seen, each of them once.

A tool behind a seam has an exchange of its own. A tool that is a plain function inside the agent has none: it is known
from the model's conversation, where the model asks for it and is later told its result. Most agents show both, so what
the model asked for is matched with the exchange that came of it before anything is counted.

What the model asked for and was told the result of was called. What it asked for and never heard of again (the agent
ended, or held the call back) is open: nobody knows, unless the tool is one that a seam would have seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from flakestorm.contracts.evidence import plain
from flakestorm.contracts.failures import call_failed, result_failed
from flakestorm.core.call import header
from flakestorm.tape.document import said
from flakestorm.tape.model import Exchange
from flakestorm.tape.tools import tools_named
from flakestorm.wire.base import ToolCall as Wanted
from flakestorm.wire.conversation import CallNames, results_read
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.mcp.protocol import housekeeping
from flakestorm.wire.mcp.reply import output_schemas
from flakestorm.wire.protocols import wire_of
from flakestorm.wire.results import Key, Result, Told

if TYPE_CHECKING:
    from flakestorm.contracts.base import RunView

__all__ = [
    "ToolCall",
    "ToolCalls",
    "arguments",
    "calls_of",
    "includes",
    "is_call",
    "listed",
    "offered",
    "sites",
    "tool_calls",
    "tools_seen",
    "unseen",
]

_SEAM = ("tool", "mcp")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool.

    Args:
        names: what the tool is called: at the seam, and by the model where that differs.
        site: where it can be found, e.g. `tool/search#1`, or `search in llm/gpt-4o#2` for what only the model's
            conversation shows.
        arguments: what it was given, in each form it may be read; empty where it cannot be read.
        kind: `tool` or `mcp`.
        failed: whether it failed, as far as its result shows; None where no result was seen.
        text: what its result said.
        said: what the tool itself said, whatever a fault made of that, where only the model's conversation shows it.
        exchange: the exchange it is, where a seam saw it.
        n: the exchange it was met in, by order of arrival; calls asked for in one reply share it and stand in order.
        t_ms: when, since the run began.
        loose: the arguments come from a query or a form, where every value is text.
    """

    names: tuple[str, ...]
    site: str
    arguments: tuple[Mapping[str, Any], ...] = ()
    kind: str = "tool"
    failed: bool | None = None
    text: str = field(default="", repr=False)
    said: Told | None = field(default=None, repr=False)
    exchange: Exchange | None = field(default=None, repr=False)
    n: int = 0
    t_ms: float = 0.0
    loose: bool = False

    @property
    def tool(self) -> str:
        """The tool's name in reports."""
        return self.names[0]

    def means(self, tool: str) -> bool:
        """Whether it is a call of what this name or glob means. MCP's housekeeping is meant by its exact name only."""
        return any(name == tool or (fnmatchcase(name, tool) and not housekeeping(name)) for name in self.names)


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """A run's tool calls.

    Args:
        made: those that were made, in order.
        open: those that the model asked for and of which nobody knows whether they were made, in order.
    """

    made: tuple[ToolCall, ...] = ()
    open: tuple[ToolCall, ...] = ()


@dataclass(slots=True)
class _Asked:
    """What a model asked for, and what came of it."""

    call: Wanted
    exchange: Exchange
    by: int
    """The place of the reply that asked, among the run's exchanges."""
    sole: bool
    """Whether the reply asked for nothing else."""
    said: Told | None = None
    """What the tool itself said, before any fault."""
    told: Result | None = None
    teller: Exchange | None = None
    until: int | None = None
    """The place of the request that told the result."""


def tool_calls(run: RunView) -> ToolCalls:
    """All tool calls of a run. Worked out once for each run."""
    if "tool_calls" not in run.memo:
        run.memo["tool_calls"] = _tool_calls(run)
    found = run.memo["tool_calls"]
    assert isinstance(found, ToolCalls)  # noqa: S101 - narrows the type
    return found


def _tool_calls(run: RunView) -> ToolCalls:
    seams = [_of_seam(x, n) for n, x in enumerate(run.exchanges) if x.kind in _SEAM]
    asked = _conversation(run.exchanges)
    met = {name for call in seams for name in call.names}
    made, undecided = list(seams), []
    free = set(range(len(seams)))
    alone: list[_Asked] = []
    for alike in (_by_name, _by_values, _by_turn):  # the surest sign first
        alone = []
        for wanted in asked:
            near = [i for i in sorted(free) if _between(wanted, seams[i])]
            match = next((i for i in near if alike(wanted, seams[i], len(near))), None)
            if match is None:
                alone.append(wanted)
                continue
            free.discard(match)
            made[match] = _joined(made[match], wanted)
        asked = alone
    for wanted in alone:
        if wanted.call.name in met or _held(wanted.call.name, run):
            continue  # a seam sees this tool's calls, and saw none: the agent held it back
        call = _of_conversation(wanted, run)
        if wanted.told is not None:
            made.append(call)
        else:
            undecided.append(call)
    return ToolCalls(tuple(sorted(made, key=lambda call: call.n)), tuple(undecided))


def _conversation(exchanges: Sequence[Exchange]) -> list[_Asked]:
    """What models asked for, each with the first result that answers it."""
    names, asked, told = CallNames(), list[_Asked](), set[Key]()
    for n, exchange in enumerate(exchanges):
        if exchange.kind != "llm":
            continue
        for result, as_told in _results(exchange, names):
            if result.key in told:
                continue
            told.add(result.key)
            fits = [a for a in asked if a.told is None and _answers(result, a.call)]
            # Of the latest reply that asked for it: an agent drops replies (cut ones, say) and asks the model again.
            if waiting := next((a for a in fits if a.by == fits[-1].by), None):
                waiting.said, waiting.told, waiting.teller, waiting.until = result.told, as_told, exchange, n
        meaning = said(exchange, exchange.reply)
        if meaning is not None and exchange.reply.status < 400:
            names.learn(meaning.tool_calls)
            sole = len(meaning.tool_calls) == 1
            asked += [_Asked(call, exchange, n, sole) for call in meaning.tool_calls if call.name]
    return asked


def _results(exchange: Exchange, names: CallNames) -> Iterator[tuple[Result, Result]]:
    """The results in a request as the agent wrote them, each with what the model was told after any fault."""
    body = decode_body(exchange.body, exchange.headers)
    written = results_read(exchange.wire, body, name_of=names.name_of)
    if exchange.world_body is None:
        yield from zip(written, written, strict=True)
        return
    world = results_read(exchange.wire, decode_body(exchange.world_body, exchange.headers), name_of=names.name_of)
    yield from zip(written, world if len(world) == len(written) else written, strict=True)


def _answers(result: Result, call: Wanted) -> bool:
    return result.call_id == call.id if result.call_id and call.id else result.name == call.name


def _between(wanted: _Asked, seam: ToolCall) -> bool:
    """Whether this exchange came after the model asked and before it was told."""
    if housekeeping(seam.tool):
        return False
    return seam.n > wanted.by and (wanted.until is None or seam.n < wanted.until)


def _by_name(wanted: _Asked, seam: ToolCall, _near: int) -> bool:
    """The names agree; frameworks put the server's name before that of an MCP tool."""
    name = wanted.call.name
    return seam.tool == name or (seam.kind == "mcp" and name.endswith(("_" + seam.tool, "." + seam.tool)))


def _by_values(wanted: _Asked, seam: ToolCall, _near: int) -> bool:
    """The names differ (the model's word for a tool is not that of `boundary.tools`), and the values agree."""
    values = _values(_loads(wanted.call.arguments))
    there = [_values(given) for given in seam.arguments]
    return bool(values) and any(given and (given <= values or values <= given) for given in there)


def _by_turn(wanted: _Asked, _seam: ToolCall, near: int) -> bool:
    """The model asked for one thing, and one call was made before it was told the result."""
    return wanted.sole and wanted.told is not None and near == 1


def _values(value: Any) -> set[str]:
    """The scalars in some arguments, as text."""
    if isinstance(value, Mapping):
        return set().union(*map(_values, value.values())) if value else set()
    if isinstance(value, (list, tuple)):
        return set().union(*map(_values, value)) if value else set()
    return set() if value is None or value == "" else {str(value)}


def _joined(seam: ToolCall, wanted: _Asked) -> ToolCall:
    """A seam's call that is known to be what the model asked for: it goes by both names."""
    return seam if wanted.call.name in seam.names else replace(seam, names=(*seam.names, wanted.call.name))


def _of_seam(exchange: Exchange, n: int) -> ToolCall:
    body = _loads(exchange.body)
    return ToolCall(
        names=(exchange.name,),
        site=str(exchange.site),
        arguments=tuple(arguments(exchange)),
        kind=exchange.kind,
        failed=call_failed(exchange),
        text=decode_body(exchange.reply.body, exchange.reply.headers).decode("utf-8", "replace"),
        exchange=exchange,
        n=n,
        t_ms=exchange.t_ms,
        loose=not isinstance(body, dict),
    )


def _of_conversation(wanted: _Asked, run: RunView) -> ToolCall:
    given = _loads(wanted.call.arguments or "{}")
    told, teller = wanted.told, wanted.teller
    failed = None
    if told is not None:
        hit = any(
            f.site.name == wanted.call.name and teller is not None and f.via == teller.site for f in run.ledger.fired
        )
        failed = result_failed(told.told, modes=[f.mode for f in run.ledger.fired] if hit else ())
    return ToolCall(
        names=(wanted.call.name,),
        site=f"{plain(wanted.call.name, 60)} in {wanted.exchange.site}",
        arguments=(given,) if isinstance(given, dict) else (),
        failed=failed,
        text="" if told is None else told.told.text,
        said=wanted.said,
        n=wanted.by,
        t_ms=wanted.exchange.t_ms + wanted.exchange.duration_ms,
    )


def _held(tool: str, run: RunView) -> bool:
    """Whether a call of this tool would have crossed the boundary where a seam sees it."""
    return any(fnmatchcase(tool, name) for name in run.visible) or tool in set(listed(run))


def calls_of(tool: str, run: RunView) -> list[ToolCall]:
    """The calls of the tools that this name or glob means, in order."""
    return [call for call in tool_calls(run).made if call.means(tool)]


def is_call(exchange: Exchange, tool: str) -> bool:
    """Whether this is a call the glob means. MCP's own housekeeping is meant only by its exact name."""
    return exchange.name == tool or (fnmatchcase(exchange.name, tool) and not housekeeping(exchange.name))


def tools_seen(run: RunView) -> str:
    """The names of the tools this run called, or its model spoke of, in words."""
    names = dict.fromkeys(x.name for x in run.exchanges if x.kind in _SEAM and not housekeeping(x.name))
    inside = [name for name in tools_named(run.exchanges) if name not in names]
    if names or inside:
        only = f" (in the model's conversation only: {_list(inside)})" if inside else ""
        return f"tools seen: {_list([*names, *inside])}{only}"
    return "no tool was seen" if run.exchanges else "nothing crossed the boundary"


def unseen(tool: str, run: RunView, args: Mapping[str, Any] | None = None) -> str | None:
    """Why the absence of calls of this tool (with these arguments) proves nothing, or None if it does."""
    for call in tool_calls(run).open:
        if call.means(tool) and (not args or any(includes(given, args) for given in call.arguments)):
            return (
                f"the model asked for {plain(call.tool, 60)} ({call.site.rpartition(' ')[2]}), but no call to it "
                "crossed the boundary and no result of it came back, so nobody knows whether it was made; name its URL "
                "in boundary.tools, or register it in agent.tools"
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


def listed(run: RunView) -> Iterator[str]:
    """The tools that MCP servers told the agent of, in this run."""
    for exchange in run.exchanges:
        if exchange.kind == "mcp" and exchange.name == "tools/list":
            yield from output_schemas(decode_body(exchange.reply.body, exchange.reply.headers))


def offered(run: RunView) -> Iterator[str]:
    """The tools that the agent offered its models, and those that some seam is known to see."""
    for exchange in run.exchanges:
        wire = wire_of(exchange.wire) if exchange.kind == "llm" else None
        if wire is not None:
            yield from wire.asked(decode_body(exchange.body, exchange.headers)).tools
    yield from run.visible
    yield from listed(run)


def sites(calls: Sequence[ToolCall] | Sequence[Exchange]) -> str:
    """Where these calls were made, in words."""
    shown = ", ".join(str(call.site) for call in calls[:5])
    return shown if len(calls) <= 5 else f"{shown} and {len(calls) - 5} more"


def _list(names: list[str]) -> str:
    return ", ".join(plain(name, 60) for name in names)


def _loads(text: bytes | str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
