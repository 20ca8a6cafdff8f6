"""The tools that a run's models spoke of: those they asked for, and those whose results they were told.

A tool that is a plain function inside the agent has no exchange of its own; on a tape it is known from the model calls
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flakestorm.core.call import Call
from flakestorm.core.site import Site, Sites
from flakestorm.tape.document import said
from flakestorm.tape.model import Exchange
from flakestorm.wire.classify import UNNAMED
from flakestorm.wire.conversation import CallNames, tool_results
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.mcp.protocol import housekeeping
from flakestorm.wire.results import Key

__all__ = ["calls_of", "sites_of", "tool_results_of", "tools_named"]


def tools_named(exchanges: Iterable[Exchange]) -> tuple[str, ...]:
    """The names of the tools that models asked for or were told results of, in order of first appearance.

    Args:
        exchanges: of one run, in order of arrival.
    """
    return _read(exchanges)[0]


def tool_results_of(exchanges: Iterable[Exchange]) -> tuple[str, ...]:
    """The tool of each distinct result that models were told, in the order in which they were first told it.

    Args:
        exchanges: of one run, in order of arrival.
    """
    return _read(exchanges)[1]


def calls_of(exchanges: Iterable[Exchange]) -> tuple[Call, ...]:
    """The calls as faults look at them: what was called, and of MCP messages what they are, but no other body.

    Args:
        exchanges: of one run, in order of arrival.
    """
    return tuple(
        Call(
            x.method, x.url, body=x.body if x.kind == "mcp" else b"", kind=x.kind, name=x.name, wire=x.wire, site=x.site
        )
        for x in exchanges
    )


def sites_of(exchanges: Sequence[Exchange]) -> tuple[Site, ...]:
    """Where faults can act: the calls, but for a protocol's own, then the results of tools whose calls did not cross.

    Args:
        exchanges: of one run, in order of arrival.
    """
    calls = [x.site for x in exchanges if x.site is not None and not (x.kind == "mcp" and housekeeping(x.name))]
    crossed = {site.name for site in calls if site.kind in ("tool", "mcp")}
    met = Sites()
    results = [met.next("tool", name) for name in tool_results_of(exchanges)]
    return (*calls, *(site for site in results if site.name not in crossed and site.name != UNNAMED))


def _read(exchanges: Iterable[Exchange]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = CallNames()
    named: dict[str, None] = {}
    told: dict[Key, str] = {}
    for exchange in exchanges:
        if exchange.kind != "llm":
            continue
        body = decode_body(exchange.body, exchange.headers)
        for result in tool_results(exchange.wire, body, name_of=names.name_of):
            told.setdefault(result.key, result.name)
            named.setdefault(result.name)
        meaning = said(exchange, exchange.reply)
        if meaning is not None:
            names.learn(meaning.tool_calls)
            named.update((call.name, None) for call in meaning.tool_calls if call.name)
    named.pop(UNNAMED, None)
    return tuple(named), tuple(told.values())
