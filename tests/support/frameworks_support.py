"""A small world for agents made with real frameworks, and one way to run them all.

Each model asks for `search`, then for `seats`, then answers. `search` is only a function; `seats` is a function that
asks a service. So a run of an agent is three calls of its model and one of each tool, whatever it is made with.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import flakestorm
from flakestorm.api import Options
from flakestorm.engine.events import Report, RunResult
from flakestorm.tape.model import Exchange
from flakestorm.tape.reader import Tape
from upstream import Canned, Gate, Request, Upstream, document, openai_for, sse, text

PROGRAMS = Path(__file__).resolve().parent.parent / "agents" / "programs"
ANSWER = "Three flights go to Oslo and the first of them has seven free seats."
FOUND = {"to": "Oslo", "flights": 3}
SEATS = "7 free"
CHAT, SEATS_PATH = "/v1/chat/completions", "/seats"
OLLAMA_CHAT = "/api/chat"
GEMINI = "/v1/models/gemini-2.5-flash:generateContent"
GEMINI_STREAM = "/v1/models/gemini-2.5-flash:streamGenerateContent"


@contextmanager
def world() -> Iterator[Upstream]:
    """Every provider, and the seat service."""
    with Upstream() as up:
        up.reply(CHAT, _openai)
        up.reply(OLLAMA_CHAT, _ollama)
        up.reply(GEMINI, _gemini)
        up.reply(SEATS_PATH, text(SEATS))
        yield up


@dataclass(frozen=True)
class Done:
    """What a contract's run found."""

    report: Report
    up: Upstream

    def run(self, scenario: str) -> RunResult:
        return next(run for run in self.report.runs if run.scenario == scenario)

    def tape(self, scenario: str) -> list[Exchange]:
        """The exchanges in order of arrival."""
        return sorted(Tape.open(Path(self.run(scenario).tape)).exchanges(), key=lambda exchange: exchange.n)

    def sites(self, scenario: str) -> list[str]:
        return [str(exchange.site) for exchange in self.tape(scenario)]

    def fired(self, scenario: str) -> list[tuple[str, str]]:
        return [(str(firing.site), firing.mode) for firing in self.run(scenario).fired]


def judge(folder: Path, up: Upstream, agent: dict[str, Any], *scenarios: dict[str, Any], trials: int = 1) -> Done:
    """Run an agent of `programs` through these scenarios, as `flakestorm contract run` would."""
    for program in PROGRAMS.glob("*.py"):
        shutil.copy(program, folder)
    config = {
        "version": "2.0",
        "agent": agent,
        "golden_prompts": ["a flight to Oslo"],
        "boundary": {"tools": {"seats": "*/seats*"}},
        "contract": {
            "name": "travel",
            "invariants": [{"id": "answers", "type": "output_not_empty"}],
            "chaos_matrix": list(scenarios),
        },
        "advanced": {"seed": 7},
    }
    path = folder / "flakestorm.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UPSTREAM_URL", up.url)
        report = flakestorm.load(path).contract(Options(trials=trials, tapes=folder / "tapes"))
    return Done(report, up)


def requests_of(up: Upstream, path: str) -> list[Any]:
    """The bodies that arrived on a path."""
    return [request.json() for request in up.requests if request.path == path]


def tool_results(request: Any) -> list[str]:
    """What a chat request tells the model of its tools' results, as text; smolagents puts them into words."""
    found: list[str] = []
    for message in request["messages"]:
        said = _text(message.get("content"))
        found += [said] if message["role"] == "tool" else _OBSERVED.split(said)[1:]
    return found


_OBSERVED = re.compile(r"^(?:Observation|Error):\n", re.MULTILINE)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def _openai(request: Request) -> Canned:
    asked = request.json()
    make = openai_for(asked)
    results = len(tool_results(asked))
    tools = {tool["function"]["name"] for tool in asked.get("tools") or ()}
    if "search" not in tools:
        return make(ANSWER)
    if results < 2:
        return make(tool_calls=[_asks(results)])
    if "final_answer" in tools:
        return make(tool_calls=[("call_3", "final_answer", {"answer": ANSWER})])
    return make(ANSWER)


def _asks(step: int) -> tuple[str, str, dict[str, object]]:
    return ("call_1", "search", {"to": "Oslo"}) if step == 0 else ("call_2", "seats", {"flight": "SK1"})


def _ollama(request: Request) -> Canned:
    asked = request.json()
    results = sum(message["role"] == "tool" for message in asked["messages"])
    message: dict[str, object] = {"role": "assistant", "content": ANSWER}
    if asked.get("tools") and results < 2:
        _, name, arguments = _asks(results)
        message = {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": name, "arguments": arguments}}],
        }
    return document(ollama_reply(message))


def ollama_reply(message: dict[str, object], *, done: bool = True) -> dict[str, object]:
    ending = {"done_reason": "stop", "prompt_eval_count": 11, "eval_count": 7} if done else {}
    return {"model": "qwen3", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done, **ending}


def ollama_stream(words: Sequence[str], *, gate: Gate) -> Canned:
    """Words as NDJSON, one HTTP chunk each; the gate holds the second."""
    pieces: list[Any] = []
    for index, word in enumerate([*words, ""]):
        pieces += [gate] if index == 1 else []
        reply = ollama_reply({"role": "assistant", "content": word}, done=index == len(words))
        pieces.append(json.dumps(reply).encode() + b"\n")
    return Canned(tuple(pieces), 200, (("Content-Type", "application/x-ndjson"),), chunked=True)


def _gemini(request: Request) -> Canned:
    asked = request.json()
    results = sum("functionResponse" in part for content in asked["contents"] for part in content["parts"])
    part: dict[str, object] = {"text": ANSWER}
    if asked.get("tools") and results < 2:
        _, name, arguments = _asks(results)
        part = {"functionCall": {"name": name, "args": arguments}}
    return document(_gemini_reply(part))


def _gemini_reply(part: dict[str, object]) -> dict[str, object]:
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}


def gemini_stream(words: Sequence[str], *, gate: Gate) -> Canned:
    return sse([_gemini_reply({"text": word}) for word in words], gates={1: gate})
