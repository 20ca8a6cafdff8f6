"""The command line in a subprocess, and a small world for agents to live in."""

import json
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from upstream import Canned, Request, Upstream, anthropic_for, document, openai_for

PROGRAMS = Path(__file__).resolve().parent.parent / "e2e" / "programs"
FLAKESTORM = Path(sys.executable).parent / "flakestorm"
LONG_ANSWER = "I found three flights to Oslo for you and the first of them leaves at nine in the morning."


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str
    report: dict[str, Any] | None = None

    def cell(self, scenario: str, invariant: str) -> dict[str, Any]:
        assert self.report is not None, self.err
        return next(c for c in self.report["cells"] if (c["scenario"], c["invariant"]) == (scenario, invariant))

    def run(self, scenario: str) -> dict[str, Any]:
        assert self.report is not None, self.err
        return next(r for r in self.report["runs"] if r["scenario"] == scenario)


def clean_env(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without keys, proxies or base URLs of whoever runs the tests."""
    dropped = ("_API_KEY", "_BASE_URL", "_PROXY", "_proxy", "FLAKESTORM_")
    kept = {k: v for k, v in os.environ.items() if not any(part in k for part in dropped)}
    return {**kept, "NO_COLOR": "1", **(extra or {})}


def flakestorm(folder: Path, *args: str, env: Mapping[str, str] | None = None, report: bool = False) -> Done:
    """Run the real command in a folder; with `report`, also ask for the JSON document."""
    file = folder / "out" / "report.json"
    words = [str(FLAKESTORM), *args, *(["--format", "json", "-o", str(file)] if report else [])]
    done = subprocess.run(
        words, cwd=folder, env=clean_env(env), capture_output=True, text=True, timeout=120, check=False
    )
    found = json.loads(file.read_text()) if report and file.exists() else None
    if "internal error" in done.stderr or "Traceback" in done.stderr:
        raise AssertionError(done.stderr)
    return Done(done.returncode, done.stdout, done.stderr, found)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something another process does; a stuck test is ended by the deadline."""
    deadline, tick = time.monotonic() + 60, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        tick.wait(0.02)


def write_config(folder: Path, **blocks: Any) -> Path:
    """A version 2.0 config with these blocks and a golden prompt."""
    config = {"version": "2.0", "golden_prompts": ["a flight to Oslo"], **blocks}
    path = folder / "flakestorm.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def _openai(request: Request) -> Canned:
    asked = request.json()
    answered = any(message["role"] == "tool" for message in asked["messages"])
    make = openai_for(asked)
    return make(LONG_ANSWER) if answered else make(tool_calls=[("call_1", "search", {"to": "Oslo"})])


def _anthropic(request: Request) -> Canned:
    asked = request.json()
    answered = any(isinstance(message["content"], list) for message in asked["messages"])
    make = anthropic_for(asked)
    return make(LONG_ANSWER) if answered else make(tool_calls=[("toolu_1", "search", {"to": "Oslo"})])


@contextmanager
def world(tls: ssl.SSLContext | None = None) -> Iterator[Upstream]:
    """Both model providers, which ask for `search` once and then answer, and the search service itself."""
    with Upstream(tls=tls) as up:
        up.reply("/v1/chat/completions", _openai)
        up.reply("/v1/messages", _anthropic)
        up.reply("/search", document({"flights": 3}))
        yield up


def services(up: Upstream) -> dict[str, str]:
    """The environment in which programs find that world."""
    return {
        "SEARCH_URL": f"{up.url}/search",
        "OPENAI_BASE_URL": f"{up.url}/v1",
        "OPENAI_API_KEY": "test-key-of-nobody",
        "ANTHROPIC_BASE_URL": up.url,
        "ANTHROPIC_API_KEY": "test-key-of-nobody",
    }


def sdk_agent(up: Upstream, *, sdk: str = "openai", client: str = "httpx", stream: bool = False) -> dict[str, Any]:
    """The `agent` block that launches `programs/sdk_agent.py` in that world."""
    return {
        "type": "http",
        "start": [sys.executable, str(PROGRAMS / "sdk_agent.py"), "--port", "{port}"],
        "endpoint": "http://127.0.0.1:{port}/invoke",
        "ready": "http://127.0.0.1:{port}/health",
        "request_template": '{"input": "{prompt}"}',
        "response_path": "output",
        "env": {
            "SDK": sdk,
            "CLIENT": client,
            "STREAM": "1" if stream else "0",
            **services(up),
        },
    }
