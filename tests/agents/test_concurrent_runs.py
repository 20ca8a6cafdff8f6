"""Sixteen runs at once of one LangGraph agent in one process: no exchange ever ends up on another run's tape."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import flakestorm
from flakestorm.api import Options
from flakestorm.tape.reader import Tape
from upstream import Canned, Request, Upstream, document, text

AT_ONCE, REPEATS = 16, 200
NUMBER = re.compile(r"run (\d+)\b")

PROGRAM = '''
"""A LangGraph agent: asks its model over HTTP, calls a tool in a thread and a service in another task, and answers."""
import asyncio, os, re
import httpx
from langgraph.graph import END, START, MessagesState, StateGraph

URL = os.environ["UPSTREAM_URL"]
# loopback needs no certificates, and reading them would take longer than all the rest
client, blocking = httpx.AsyncClient(verify=False, timeout=60), httpx.Client(verify=False, timeout=60)

def lookup(question):
    return blocking.get(f"{URL}/lookup", params={"q": question}).text

TOOLS = [lookup]

async def model(state):
    said = [{"role": "user", "content": message.content} for message in state["messages"]]
    reply = await client.post(f"{URL}/v1/chat/completions", json={"model": "gpt-4o", "messages": said})
    return {"messages": [("ai", reply.json()["choices"][0]["message"]["content"])]}

async def tool(state):
    return {"messages": [("user", await asyncio.to_thread(lookup, state["messages"][0].content))]}

builder = StateGraph(MessagesState)
builder.add_node("model", model)
builder.add_node("tool", tool)
builder.add_edge(START, "tool")
builder.add_edge("tool", "model")
builder.add_edge("model", END)
graph = builder.compile()
'''


def test_concurrent_runs_of_one_graph_never_mix(tmp_path: Path) -> None:
    (tmp_path / "busy_agent.py").write_text(PROGRAM)
    config = {
        "version": "2.0",
        "agent": {"type": "langchain", "endpoint": "busy_agent:graph", "tools": "busy_agent:TOOLS", "timeout": 300_000},
        "golden_prompts": [f"run {n}" for n in range(AT_ONCE * REPEATS)],  # each run has a number of its own
        "contract": {
            "name": "apart",
            "invariants": [{"type": "completes"}],
            "chaos_matrix": [{"name": "calm"}],
        },
    }
    path = tmp_path / "flakestorm.yaml"
    path.write_text(yaml.safe_dump(config))
    with Upstream() as up, pytest.MonkeyPatch.context() as patch:
        up.reply("/v1/chat/completions", _model)
        up.reply("/lookup", lambda request: text(f"found {request.query['q'][0]}"))
        patch.setenv("UPSTREAM_URL", up.url)
        options = Options(concurrency=AT_ONCE, tapes=tmp_path / "tapes", seed=1)
        report = flakestorm.load(path).contract(options)
        assert (up.count("/v1/chat/completions"), up.count("/lookup")) == (AT_ONCE * REPEATS, AT_ONCE * REPEATS)
    assert len(report.runs) == AT_ONCE * REPEATS
    for run in report.runs:
        number = _numbers(run.input)
        assert _numbers(run.output) == number, run.output
        exchanges = Tape.open(Path(run.tape)).exchanges()
        assert sorted(exchange.kind for exchange in exchanges) == ["http", "llm", "tool"]
        for exchange in exchanges:
            assert _numbers(f"{exchange.url} {_words(exchange.body)}".replace("+", " ")) == number
            assert _numbers(_words(exchange.reply.body)) == number


def _model(request: Request) -> Canned:
    said = request.json()["messages"][-1]["content"]
    return document({"choices": [{"index": 0, "message": {"role": "assistant", "content": f"I {said}"}}]})


def _numbers(words: str) -> set[str]:
    return set(NUMBER.findall(words))


def _words(body: bytes) -> Any:
    return body.decode() if not body.startswith(b"{") else json.dumps(json.loads(body))
