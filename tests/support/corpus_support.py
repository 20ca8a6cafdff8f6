"""The corpus of planted bugs: its manifest, its world, and a project for each of its agents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from upstream import Canned, Request, Upstream, document, openai_chat

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

    @property
    def sites(self) -> set[str]:
        """The calls that the bug is about."""
        return {line.partition("=")[0].partition("#")[0] for schedule in self.planted for line in schedule}


def manifest() -> list[Planted]:
    """All of them."""
    entries = yaml.safe_load((CORPUS / "corpus.yaml").read_text())
    return [
        Planted(
            name,
            tuple(frozenset(schedule) for schedule in entry["planted"]),
            entry["invariant"],
            entry["rules"],
            tuple(entry.get("prompts", ["what does a flight to Oslo cost?"])),
            entry.get("prompt", 0),
            tuple(entry["modes"]),
        )
        for name, entry in entries.items()
    ]


def _model(request: Request) -> Canned:
    said = str(request.json()["messages"][-1]["content"])
    if said.startswith("CALL"):
        return openai_chat(tool_calls=[("call_1", "search", {"query": "Oslo"})])
    return openai_chat("Two flights to Oslo leave in the morning, and one comes back at night. Total: 120 EUR.")


@contextmanager
def corpus_world() -> Iterator[Upstream]:
    """The tools and the model of all agents of the corpus."""
    with Upstream() as up:
        up.reply("/v1/chat/completions", _model)
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
    if str(CORPUS) not in sys.path:
        sys.path.insert(0, str(CORPUS))
    return path


def found(report: dict[str, Any]) -> list[frozenset[str]]:
    """The schedules of a report's findings, each fault as in `--inject`."""
    return [frozenset(f"{at['site']}={at['fault']}" for at in f["schedule"]) for f in report["findings"]]


def shown(report: dict[str, Any]) -> str:
    """A report's findings and coverage, for messages."""
    return json.dumps({"findings": report.get("findings"), "coverage": report.get("coverage")}, indent=1)
