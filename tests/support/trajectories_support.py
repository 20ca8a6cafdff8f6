"""Runs that others recorded, as runs that invariants judge: written to a tape by the importers' way and read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from flakestorm.contracts.base import RunView
from flakestorm.core.call import Call, Reply
from flakestorm.importers.taping import write_tape
from flakestorm.tape.reader import Tape

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "trajectories"
URL = "https://api.openai.com/v1/chat/completions"
JSON = (("content-type", "application/json"),)


@cache
def airline() -> tuple[dict[str, Any], ...]:
    """tau-bench's airline runs of gpt-4o, as they were published."""
    return _rows("tau_bench_gpt4o_airline.jsonl")


@cache
def dojo() -> tuple[dict[str, Any], ...]:
    """AgentDojo's ground-truth runs."""
    return tuple(row for row in _rows("agentdojo_groundtruth_workspace_slack.jsonl") if row["kind"] == "run")


@cache
def dojo_tools(suite: str) -> tuple[dict[str, Any], ...]:
    """The tools of one of AgentDojo's suites."""
    rows = _rows("agentdojo_groundtruth_workspace_slack.jsonl")
    return tuple(next(row["tools"] for row in rows if row["kind"] == "suite" and row["suite"] == suite))


@cache
def airline_run(index: int) -> RunView:
    row = airline()[index]
    return run_of(row["traj"], asked=next(m["content"] for m in row["traj"] if m["role"] == "user"))


@cache
def dojo_run(index: int) -> RunView:
    row = dojo()[index]
    return run_of(_as_openai(row), asked=row["prompt"], tools=dojo_tools(row["suite"]))


def run_of(messages: list[dict[str, Any]], *, asked: str, tools: Iterable[dict[str, Any]] = ()) -> RunView:
    """A conversation as a run: each of the model's messages is the reply to a request with all that went before."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.tape"
        write_tape(path, _crossings(messages, list(tools)), header={"run": "r-1", "input": asked})
        tape = Tape.open(path)
        tape.verify()
        exchanges = tape.exchanges()
    output = next((m["content"] or "" for m in reversed(messages) if m["role"] == "assistant"), "")
    return RunView(input=asked, output=output, exchanges=exchanges)


def _crossings(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Iterator[tuple[Call, Reply]]:
    offered = [{"type": "function", "function": tool} for tool in tools]
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        asked = {"model": "gpt-4o", "messages": messages[:index], **({"tools": offered} if offered else {})}
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        said = {
            "id": f"chatcmpl-{index}",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-4o",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        }
        yield Call("POST", URL, JSON, json.dumps(asked).encode()), Reply(200, JSON, json.dumps(said).encode())


def _as_openai(row: dict[str, Any]) -> list[dict[str, Any]]:
    """AgentDojo's messages in OpenAI's words; its calls carry no ids, so each gets one."""
    ids, waiting = count(1), []
    messages: list[dict[str, Any]] = [{"role": "user", "content": row["prompt"]}]
    for message in row["messages"]:
        content = "".join(part.get("text") or "" for part in message["content"] or ())
        if message["role"] == "tool":
            messages.append({"role": "tool", "tool_call_id": waiting.pop(0), "content": content})
            continue
        calls = []
        for wanted in message["tool_calls"] or ():
            waiting.append(f"call_{next(ids)}")
            function = {"name": wanted["function"], "arguments": json.dumps(wanted["args"])}
            calls.append({"id": waiting[-1], "type": "function", "function": function})
        messages.append({"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})})
    return messages


def _rows(name: str) -> tuple[dict[str, Any], ...]:
    if not DATA.is_dir():
        pytest.skip(f"the recorded runs are not at {DATA}")
    return tuple(json.loads(line) for line in (DATA / name).read_text().splitlines())
