"""The corpus of planted bugs: its manifest, its world, and a project for each of its agents."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from flakestorm import api
from flakestorm.api.blame_case import case_of
from flakestorm.api.blaming import blame
from flakestorm.engine.blamed import Blaming
from flakestorm.reports.document import to_document
from upstream import Canned, Request, Upstream, document, openai_for, sse

CORPUS = Path(__file__).resolve().parent.parent / "quality" / "corpus"
TOOLS: Mapping[str, Mapping[str, object]] = {
    "search": {"price": 120},
    "backup": {"price": 140},
    "price": {"price": 120},
    "north": {"price": 110},
    "south": {"price": 130},
    "hotel": {"price": 80, "name": "Grand"},
    "pay": {"receipt": "R1001"},
    "refund": {"receipt": "R1002"},
    "weather": {"value": "sunny"},
    "stock": {"value": 42},
    "notify": {"sent": True},
}


@dataclass(frozen=True)
class Planted:
    """One entry of the manifest: an agent with a bug, and its healthy twin."""

    name: str
    planted: tuple[frozenset[str], ...]
    invariant: str
    rules: list[dict[str, Any]]
    prompts: tuple[str, ...]
    prompt: int
    modes: tuple[str, ...]
    inputs: int = 0
    home: Path = CORPUS

    @property
    def sites(self) -> set[str]:
        """The calls that the bug is about."""
        return {line.partition("=")[0].partition("#")[0] for schedule in self.planted for line in schedule}


def manifest(home: Path = CORPUS) -> list[Planted]:
    """All of them that live in this folder."""
    entries = yaml.safe_load((home / "corpus.yaml").read_text())
    return [
        Planted(
            name,
            tuple(frozenset(schedule) for schedule in entry["planted"]),
            entry["invariant"],
            entry["rules"],
            tuple(entry.get("prompts", ["what does a flight to Oslo cost?"])),
            entry.get("prompt", 0),
            tuple(entry.get("modes", ())),
            entry.get("inputs", 0),
            home,
        )
        for name, entry in entries.items()
    ]


WORDS = "Two flights to Oslo leave in the morning, and one comes back at night. Total: 120 EUR."
BAD_NEWS = "Sorry, this is unavailable right now."
AGAIN = re.compile("(?i)try again|fix your mistakes")
FAILED = re.compile("(?i)error|fail|unavailable|not found")


def _model(request: Request) -> Canned:
    """It follows the first word it is told, or else uses the tools it is offered and hands on what they say."""
    asked = request.json()
    make = openai_for(asked)
    said = str(asked["messages"][-1]["content"])
    if said.startswith("CALL BOTH"):
        return _whole_calls(("pay", {"order_id": "A-17"}), ("search", {"query": "Oslo"}))
    if said.startswith("CALL"):
        return make(tool_calls=[("call_1", "search", {"query": "Oslo"})])
    if said.startswith("SUMMARY") or not asked.get("tools"):
        return make(WORDS)
    return _with_tools(asked, make)


def _with_tools(asked: dict[str, Any], make: Callable[..., Canned]) -> Canned:
    """Each tool is used, all at once if the agent says so, and again where it is told to try again."""
    messages = asked["messages"]
    names = {call["id"]: call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()}
    told = {names[m["tool_call_id"]]: _text(m["content"]) for m in messages if m["role"] == "tool"}
    open_ = [tool["function"]["name"] for tool in asked["tools"]]
    open_ = [name for name in open_ if name not in told or AGAIN.search(told[name])]
    if "AT ONCE" not in str(messages[0]["content"]):
        open_ = open_[:1]
    if open_:
        return make(tool_calls=[(f"call_{len(names) + n}", name, {"query": "Oslo"}) for n, name in enumerate(open_)])
    heard = "; ".join(told.values())
    return make(BAD_NEWS if FAILED.search(heard) else f"This is what I found: {heard}")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content or ())


def _whole_calls(*calls: tuple[str, dict[str, str]]) -> Canned:
    """A stream in which each tool call is one event, as several servers of this protocol send it."""
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": None}]
    for index, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "gpt-4o"}
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    return sse([*events, "[DONE]"])


def _rooms(request: Request) -> Canned:
    """An MCP server with one tool, which keeps sessions."""
    if request.method != "POST":
        return Canned(status=405)
    asked = request.json()
    if "id" not in asked:
        return Canned(status=202)
    says: dict[str, object]
    match asked["method"]:
        case "initialize":
            version, about = asked["params"]["protocolVersion"], {"name": "rooms", "version": "1"}
            says = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            says = {"tools": [{"name": "book_room", "inputSchema": {"type": "object"}}]}
        case _:
            says = {"content": [{"type": "text", "text": "Room 4.12 is yours."}]}
    session = {"mcp-session-id": "of-a-room"} if asked["method"] == "initialize" else {}
    return document({"jsonrpc": "2.0", "id": asked["id"], "result": says}, headers=session)


@contextmanager
def corpus_world() -> Iterator[Upstream]:
    """The tools and the model of all agents of the corpus."""
    with Upstream() as up:
        up.reply("/v1/chat/completions", _model)
        up.reply("/mcp", _rooms)
        for name, says in TOOLS.items():
            up.reply(f"/{name}", document(dict(says)))
        yield up


def project(folder: Path, entry: Planted, up: Upstream, *, which: str = "bug", **advanced: Any) -> Path:
    """The config of one of these agents, in this folder; its path."""
    config = {
        "version": "2.0",
        "agent": {
            "type": "python",
            "endpoint": f"{entry.name}:{which}",
            "timeout": 200_000,  # more than the patience of several calls one after the other
            "env": {"CORPUS_WORLD": up.url},
        },
        "boundary": {"tools": {name: f"*/{name}" for name in TOOLS}},
        "golden_prompts": list(entry.prompts),
        "invariants": entry.rules,
        "advanced": {"seed": 7, "concurrency": 4, **advanced},
    }
    path = folder / "flakestorm.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    for place in (CORPUS, entry.home):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))
    return path


def found(report: dict[str, Any]) -> list[frozenset[str]]:
    """The schedules of a report's findings, each fault as in `--inject`."""
    return [frozenset(f"{at['site']}={at['fault']}" for at in f["schedule"]) for f in report["findings"]]


def shown(report: dict[str, Any]) -> str:
    """A report's findings and coverage, for messages."""
    return json.dumps({"findings": report.get("findings"), "coverage": report.get("coverage")}, indent=1)


def explored(
    folder: Path, entry: Planted, up: Upstream, which: str, modes: Sequence[str] | None = None, **how: Any
) -> dict[str, Any]:
    """The report of a search: with the entry's modes unless others are said, the default ones with none."""
    path = project(folder, entry, up, which=which)
    chosen = entry.modes if modes is None else modes
    return to_document(api.load(path).explore(api.Options(tapes=folder / "tapes"), budget=120, modes=chosen, **how))


def is_found(entry: Planted, report: dict[str, Any]) -> None:
    """What is planted is found, and nothing else."""
    schedules = found(report)
    assert all(planted in schedules for planted in entry.planted), shown(report)
    for finding in report["findings"]:
        assert finding["invariant"] == entry.invariant
        assert finding["prompt"] == entry.prompt
        assert {at["site"].partition("#")[0] for at in finding["schedule"]} <= entry.sites
    assert report["exit_code"] == 1


def is_clean(report: dict[str, Any]) -> None:
    """Nothing is found, and all of it was searched."""
    assert (report["exit_code"], report["findings"]) == (0, []), shown(report)
    assert report["coverage"]["complete"]


SAME = {"timeout_after_commit": "timeout"}  # the reply does not tell


def cases(home: Path = CORPUS) -> list[tuple[Planted, list[str]]]:
    """The planted schedules that can be blamed: a tape does not take its time, so none that is slow."""
    planted = [(entry, sorted(schedule)) for entry in manifest(home) for schedule in entry.planted]
    return [(entry, lines) for entry, lines in planted if not any("=slow" in line for line in lines)]


def blamed(folder: Path, entry: Planted, schedule: list[str], up: Upstream) -> Blaming:
    """What is blamed for a run with these faults, once all that says they were injected is off its tape."""
    work = api.load(project(folder, entry, up))
    run = work.inject(entry.prompt, schedule, api.Options(tapes=folder / "tapes")).runs[0]
    case = case_of(work, Path(run.tape), run=run, breaks=[entry.invariant])
    bare = [replace(x, faults=(), world=None, world_body=None) for x in case.exchanges]
    named = blame(work, replace(case, exchanges=bare), api.Options(tapes=folder / "continued")).blame
    assert named is not None
    return named


def verdict_on(named: Blaming, schedule: Sequence[str]) -> tuple[bool, bool]:
    """Whether the step that was blamed is one of those that were broken, and whether the kind of fault is right too."""
    planted = {line.partition("=")[0]: line.partition("=")[2].partition(":")[0] for line in schedule}
    step = named.named
    site = "" if step is None else step.event.site
    mode = planted.get(site) or planted.get(site.partition("#")[0], "")
    return bool(mode), bool(mode) and step is not None and step.event.looks_like == SAME.get(mode, mode)
