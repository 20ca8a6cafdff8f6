"""Short ways to write runs and invariants in tests of the contracts room."""

from __future__ import annotations

import json
from typing import Any

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView
from flakestorm.contracts.cells import Cell
from flakestorm.core.answer import AgentError
from flakestorm.core.ledger import Family, Firing, Ledger
from flakestorm.core.site import Kind, Site
from flakestorm.core.verdict import Verdict, failed, inconclusive, passed
from flakestorm.tape.model import Exchange, Recorded

CRASH = AgentError("crash", "exit code 1: KeyError: 'flights'")
GONE = AgentError("unreachable", "connection refused on 127.0.0.1:9")


def inv(type_: str = "contains", **settings: Any) -> Invariant:
    return Invariant.of({"type": type_, "id": settings.pop("id", type_), **settings})


def said(output: str, **more: Any) -> RunView:
    """A run without chaos that ended with this output."""
    return RunView(input="hi", output=output, **more)


def fired(*sites: tuple[Kind, str, Family], tools: int = 0, llms: int = 0, planned: int | None = None) -> Ledger:
    """A ledger in which these faults fired; `planned` is the sum of tools and llms unless given."""
    firings = [Firing(Site(kind, name, 1), "error", family) for kind, name, family in sites]
    return Ledger(tools + llms if planned is None else planned, tools, llms, firings)


def call(kind: Kind, name: str, n: int = 1, *, body: Any = b"", **more: Any) -> Exchange:
    """One exchange; a body that is not bytes is sent as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Exchange(Site(kind, name, n), body=raw, **more)


def asks_for(*tools: tuple[str, dict[str, Any]]) -> Exchange:
    """A model's whole OpenAI Chat reply that asks for these tools."""
    wanted = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for i, (name, args) in enumerate(tools)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": wanted}
    reply = {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    recorded = Recorded(200, (("content-type", "application/json"),), chunks=[json.dumps(reply).encode()])
    return Exchange(Site("llm", "gpt-4o", 1), wire="openai_chat", reply=recorded)


def tells(*results: tuple[str, str], n: int = 2, **more: Any) -> Exchange:
    """A model request, in OpenAI's words, that tells these results (tool, text) of the calls `asks_for` asked for."""
    asked = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for i, (name, _) in enumerate(results)
    ]
    told = [{"role": "tool", "tool_call_id": f"call_{i}", "content": text} for i, (_, text) in enumerate(results)]
    body = {"model": "gpt-4o", "messages": [{"role": "assistant", "tool_calls": asked}, *told]}
    return Exchange(Site("llm", "gpt-4o", n), wire="openai_chat", body=json.dumps(body).encode(), **more)


def inside(*calls: tuple[str, dict[str, Any], str]) -> list[Exchange]:
    """What is on the tape of calls (tool, arguments, result) of tools that are functions inside the agent, in order."""
    run: list[Exchange] = []
    for n, (tool, given, text) in enumerate(calls, 1):
        asked, told = asks_for((tool, given)), tells((tool, text), n=2 * n)
        asked.site = Site("llm", "gpt-4o", 2 * n - 1)
        asked.reply.chunks = [asked.reply.body.replace(b"call_0", b"call_%d" % n)]
        told.body = told.body.replace(b"call_0", b"call_%d" % n)
        run += [asked, told]
    return run


OUTCOMES: dict[str, Verdict] = {"p": passed("kept"), "f": failed("broken"), "i": inconclusive("unknown")}


def cells(outcomes: str, **more: Any) -> list[Cell]:
    """One cell per letter, as trials 1, 2, ...: p(ass), f(ail), i(nconclusive)."""
    base = {"scenario": "down", "invariant": "admits", "severity": "medium", "prompt": 0, **more}
    return [Cell(**base, trial=i, verdict=OUTCOMES[letter]) for i, letter in enumerate(outcomes, 1)]
