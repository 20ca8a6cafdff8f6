"""The examples, run as their readers run them: one command, in a copy of the folder."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from e2e_support import FLAKESTORM, clean_env
from flakestorm.tape.reader import Tape

__all__ = ["EXAMPLES", "FRAMEWORKS", "HERE", "NODE", "Example", "copied", "try_out"]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NEVER_ASKED = ("error", "timeout", "connection_reset")  # faults that let nothing through


@dataclass(frozen=True)
class Example:
    """One example.

    Args:
        name: its folder.
        broken: the cells that fail, as scenario and invariant.
        arrived: what its tools' services were asked, in all scenarios together, where they are not the agent's own.
    """

    name: str
    broken: set[tuple[str, str]]
    arrived: Mapping[str, int] = field(default_factory=dict)


HERE = (
    Example("openai", {("refund-reply-lost", "pays-once")}),
    Example(
        "anthropic",
        {("answer-cut-short", "no-half-answers"), ("line-drops", "no-half-answers"), ("line-drops", "answers")},
    ),
    Example("mcp", {("mail-hangs", "in-time")}),
    Example("support", {("busy-for-longer", "remembers-the-order"), ("busy-for-longer", "asks-once")}),
)

FRAMEWORKS = (
    Example(
        "langgraph",
        {
            (scenario, rule)
            for scenario in ("platforms-down", "timetable-hangs")
            for rule in ("answers", "admits-failure")
        },
        {"GET /departures": 3, "GET /platforms": 2},
    ),
    Example(
        "pydantic-ai",
        {
            *(
                (scenario, rule)
                for scenario in ("bank-down", "rate-missing")
                for rule in ("no-invented-rate", "admits-failure")
            ),
            ("bank-unreachable", "admits-failure"),
            ("bank-unreachable", "answers"),
        },
        {"GET /rates": 3},  # in `rate-missing` it is asked, and its reply emptied
    ),
    Example(
        "openai-agents",
        {("billing-down", rule) for rule in ("no-retry-storm", "answers", "admits-failure")},
        {"GET /invoices/2026-17": 3},
    ),
    Example(
        "fastapi-ollama",
        {
            ("encyclopedia-down", "admits-failure"),
            ("encyclopedia-down", "only-what-it-was-told"),
            ("ollama-cut-short", "no-half-answers"),
        },
        {"GET /pages": 4},  # two questions in two of three scenarios
    ),
)

NODE = (Example("node", {("garbled-call", "answers")}),)


@dataclass(frozen=True)
class Ran:
    """One command, its report, and what arrived outside the agent."""

    code: int
    out: str
    report: dict[str, Any]
    arrived: Counter[str]

    @property
    def broken(self) -> set[tuple[str, str]]:
        return {(cell["scenario"], cell["invariant"]) for cell in self.report["cells"] if cell["verdict"] == "fail"}


def copied(folder: Path) -> Path:
    """A copy of all examples below this folder, as it would be cloned; the folder."""
    leave = shutil.ignore_patterns("reports", "node_modules", "__pycache__", ".pytest_cache")
    shutil.copytree(EXAMPLES, folder / "examples", ignore=leave)
    return folder


def run(root: Path, name: str, line: str) -> Ran:
    """Run a command of flakestorm's from the root, as in a shell with this environment activated."""
    program, *words = shlex.split(line)
    assert program == "flakestorm"
    log = root / "arrived.log"
    log.unlink(missing_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = clean_env({"PATH": path, "OFFLINE_LOG": str(log), "COLUMNS": "120"})
    done = subprocess.run(
        [FLAKESTORM, *words], cwd=root, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    reports = sorted(
        (root / "examples" / name / "reports").glob("*/report.json"), key=lambda file: file.stat().st_mtime_ns
    )
    assert reports, done.stdout + done.stderr
    arrived = Counter(log.read_text().splitlines()) if log.exists() else Counter()
    return Ran(done.returncode, done.stdout, json.loads(reports[-1].read_text()), arrived)


def try_out(example: Example, root: Path, *, again: bool = False) -> None:
    """What the README says is what happens: the command, what it shows, and that the fix mends it.

    Args:
        example: which one.
        root: where `copied` put it.
        again: whether to run the line that the README shows for doing it again, too.
    """
    folder = root / "examples" / example.name
    readme = (folder / "README.md").read_text()
    (shown,) = re.findall(r"```console\n\$ (.*?)```", readme, re.DOTALL)
    command, *lines = shown.splitlines()
    assert command == f"flakestorm contract run -c examples/{example.name}/flakestorm.yaml"
    first = run(root, example.name, command)
    assert (first.code, first.broken) == (1, example.broken), first.out
    printed = {line.rstrip() for line in first.out.splitlines()}
    assert [line for line in lines if line.strip() != "..." and line not in printed] == []
    tools = {line: times for line, times in first.arrived.items() if not line.startswith("POST ")}
    assert tools == dict(example.arrived)
    nothing_got_past_its_fault(folder, first)
    line = next(line.strip() for line in lines if line.startswith("  flakestorm run "))
    assert line in {run["reproduce"] for run in first.report["runs"]}
    if again:
        same = run(root, example.name, line)
        assert (same.code, bool(same.broken)) == (1, True), same.out

    tried_with_what_it_asks_for(folder)

    (patch,) = re.findall(r"git apply (\S+)", readme)
    subprocess.run(["git", "apply", patch], cwd=root, check=True)
    mended = run(root, example.name, command)
    assert (mended.code, mended.broken) == (0, set()), mended.out
    assert {cell["verdict"] for cell in mended.report["cells"]} == {"pass"}
    assert fired(mended) == fired(first)


def tried_with_what_it_asks_for(folder: Path) -> None:
    """What is installed here fits the example's requirements."""
    listed = folder / "requirements.txt"
    for line in listed.read_text().splitlines() if listed.exists() else ():
        wanted = Requirement(line)
        assert version(wanted.name) in wanted.specifier, line


def fired(ran: Ran) -> dict[str, set[str]]:
    """Which faults fired in each scenario."""
    return {
        run["scenario"]: {f"{fault['site'].partition('#')[0]} {fault['mode']}" for fault in run["faults"]["fired"]}
        for run in ran.report["runs"]
    }


def nothing_got_past_its_fault(folder: Path, ran: Ran) -> None:
    """On the tapes, no call that a fault kept from the world was sent. (Results that were rewritten have no call.)"""
    (place,) = (folder / "reports").iterdir()
    for run in ran.report["runs"]:
        stopped = {fault["site"] for fault in run["faults"]["fired"] if fault["mode"] in NEVER_ASKED}
        exchanges = {str(exchange.site): exchange for exchange in Tape.open(place / run["tape"]).exchanges()}
        assert {site for site in stopped & exchanges.keys() if exchanges[site].sent} == set()
