"""Blocking tools that one turn of the model calls at once: a graph asks them on a pool, and which of its threads takes
which is chance. The recording is verified all the same, every time, however busy the machine is."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import flakestorm
from busy_support import busy, numbers
from flakestorm.api import Options
from flakestorm.api.verifying import verify
from flakestorm.tape.reader import Tape
from launched_support import launched
from upstream import Canned, Request, Upstream, document

SEATS, REPLAYS, LAUNCHED = 4, 100, 30

PROGRAM = '''
"""LangGraph's ReAct agent. Its one tool blocks, and asks a service three times; the first and the last time every call
of it asks the same, word for word, and is told something else."""
import asyncio, json, os, threading
import httpx
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import ToolNode, create_react_agent

URL = os.environ["UPSTREAM_URL"]
client = httpx.Client(verify=False, timeout=60)  # loopback needs no certificates, and reading them takes long
again = httpx.AsyncClient(verify=False, timeout=60)
mine = threading.local()  # httpcore's pool may close a connection that another thread has just taken (EBADF)

def ask(**what):
    if not hasattr(mine, "client"):
        mine.client = httpx.Client(verify=False, timeout=60)
    reply = mine.client.post(f"{URL}/seats", json=what)
    return reply.json()["number"] if reply.status_code == 200 else None

def seat(row: int) -> str:
    """Which seat is free."""
    ticket = ask(next="ticket")
    return json.dumps([ticket, ask(row=row, ticket=ticket), ask(next="ticket")])

model = ChatOpenAI(
    model="gpt-4o", base_url=f"{URL}/v1", api_key="test", max_retries=0, http_client=client, http_async_client=again
)
graph = create_react_agent(model, ToolNode([seat], handle_tool_errors=True))

def blocking(prompt):
    return graph.invoke({"messages": [("user", prompt)]})["messages"][-1].content

async def _awaited(prompt):
    return (await graph.ainvoke({"messages": [("user", prompt)]}))["messages"][-1].content

def awaited(prompt):
    return asyncio.run(_awaited(prompt))
'''


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    (tmp_path / "seated.py").write_text(PROGRAM)
    with Upstream() as up:
        up.reply("/v1/chat/completions", _model)
        up.reply("/seats", numbers())
        monkeypatch.setenv("UPSTREAM_URL", up.url)
        monkeypatch.delitem(sys.modules, "seated", raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        yield up


@pytest.mark.parametrize("endpoint", ["blocking", "awaited"])
def test_every_replay_of_a_graph_s_blocking_tools_is_verified(up: Upstream, tmp_path: Path, endpoint: str) -> None:
    ask = getattr(importlib.import_module("seated"), endpoint)
    with busy():
        with flakestorm.record(tmp_path / "a.tape", input="four seats") as recording:
            recording.output = ask("four seats")
        called = up.count()
        for _ in range(REPLAYS):
            assert flakestorm.replay(tmp_path / "a.tape", ask) == recording.output
    assert up.count() == called, "somebody was asked again"
    jobs = {exchange.lane for exchange in Tape.open(tmp_path / "a.tape").exchanges() if "/seats" in exchange.url}
    assert len(jobs) == SEATS, "a call of the tool is a lane, whichever thread makes it"


@pytest.mark.parametrize("endpoint", ["blocking", "awaited"])
async def test_every_replay_of_a_launched_graph_is_verified(up: Upstream, tmp_path: Path, endpoint: str) -> None:
    tape = tmp_path / "a.tape"
    program = (
        f"{PROGRAM}\nloop = asyncio.new_event_loop()\n"
        + """
def play(mode):
    return blocking("four seats") if mode == "blocking" else loop.run_until_complete(_awaited("four seats"))
"""
    )
    async with launched(program, tmp_path, {"UPSTREAM_URL": up.url}) as agent:
        recorded = await agent.record(tape, endpoint)
        called = up.count()
        played = [await agent.replay(tape, endpoint) for _ in range(LAUNCHED)]
    footer = Tape.open(tape).footer
    assert footer is not None
    assert [problems for _, problems, _ in played if problems] == []
    assert {(answer, digest) for answer, _, digest in played} == {(recorded, footer.digest)}
    assert up.count() == called, "somebody was asked again"
    jobs = {exchange.lane for exchange in Tape.open(tape).exchanges() if "/seats" in exchange.url}
    assert len(jobs) == SEATS, "a call of the tool is a lane, whichever thread and connection it takes"


@pytest.mark.parametrize("agent", [("langchain", "graph"), ("python", "blocking")])
def test_a_contract_s_run_is_verified_and_gives_its_own_digest(
    up: Upstream, tmp_path: Path, agent: tuple[str, str]
) -> None:
    kind, endpoint = agent
    project = _project(tmp_path, {"type": kind, "endpoint": f"seated:{endpoint}"})
    with busy():
        report = project.contract(Options(tapes=tmp_path / "tapes", seed=1))
        found = [verify(Path(report.runs[0].tape), project=project) for _ in range(5)]
    assert [each.differences for each in found] == [[]] * 5
    assert len({digest for each in found for digest in each.digests}) == 1


def test_a_seed_gives_the_same_faults_at_any_concurrency(up: Upstream, tmp_path: Path) -> None:
    fired = []
    for concurrency in (1, 10):
        project = _project(
            tmp_path, {"type": "python", "endpoint": "seated:blocking"},
            {"name": "seats-down", "tool_faults": [{"tool": "seats", "mode": "error", "probability": 0.5}]},
        )  # fmt: skip
        report = project.contract(Options(seed=7, trials=10, concurrency=concurrency))
        fired.append([sorted(str(each.site) for each in run.fired) for run in report.runs])
    assert fired[0] == fired[1]
    assert any(fired[0])


def _project(folder: Path, agent: dict[str, Any], *scenarios: dict[str, Any]) -> flakestorm.Project:
    config = {
        "version": "2.0",
        "agent": {**agent, "timeout": 300_000},
        "golden_prompts": ["four seats"],
        "boundary": {"tools": {"seats": "*/seats"}},
        "contract": {
            "name": "seated",
            "invariants": [{"type": "completes"}],
            "chaos_matrix": list(scenarios) or [{"name": "calm"}],
        },
    }
    path = folder / "flakestorm.yaml"
    path.write_text(yaml.safe_dump(config))
    return flakestorm.load(path)


def _model(request: Request) -> Canned:
    said = [message for message in request.json()["messages"] if message["role"] == "tool"]
    if said:
        message: dict[str, Any] = {"content": " and ".join(str(each["content"]) for each in said)}
    else:
        calls = [
            {"id": f"call_{n}", "type": "function", "function": {"name": "seat", "arguments": json.dumps({"row": n})}}
            for n in range(SEATS)
        ]
        message = {"content": None, "tool_calls": calls}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return document({"id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-4o", "choices": [choice]})
