"""Agents in other languages, and an upstream that nobody here wrote."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e_support import LONG_ANSWER, Done, clean_env, flakestorm, write_config
from flakestorm.tape.reader import Tape, describe
from upstream import Upstream

__all__ = [
    "FOREIGN",
    "MODEL",
    "aimock",
    "needs_curl",
    "needs_node",
    "node_agent",
    "providers",
    "results_in",
    "sites",
    "tape_of",
    "try_out",
]

FOREIGN = Path(__file__).resolve().parent.parent / "foreign"
MODEL = {"openai": "gpt-4o", "fetch": "gpt-4o", "anthropic": "claude-sonnet-4-5"}


def _why_no_node() -> str:
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "there is no node with npm here; agents written for it cannot be tried"
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if tuple(map(int, version.lstrip("v").split(".")[:2])) < (20, 15):
        return f"node {version} is here, and the packages of tests/foreign need 20.15"
    return ""


needs_node = pytest.mark.skipif(bool(_why_no_node()), reason=_why_no_node() or "node is here")
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")


def node_agent(client: str, origin: str, *, tool: str = "function", stream: bool = False, **env: str) -> dict[str, Any]:
    """The `agent` block that runs `programs/agent.mjs` once per input.

    Args:
        client: `openai`, `anthropic` or `fetch`.
        origin: of the model providers.
        tool: `axios`, `fetch` or `function`.
        stream: whether replies are streamed.
        env: more variables.
    """
    assert (FOREIGN / "node_modules").is_dir(), "the packages are not installed; run `make foreign`"
    return {
        "type": "command",
        "start": ["node", str(FOREIGN / "programs" / "agent.mjs")],
        "env": {
            "CLIENT": client,
            "TOOL": tool,
            "STREAM": "1" if stream else "",
            **providers(origin),
            **env,
        },
    }


def providers(origin: str) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": f"{origin}/v1",
        "OPENAI_API_KEY": "test-key-of-nobody",
        "ANTHROPIC_BASE_URL": origin,
        "ANTHROPIC_API_KEY": "test-key-of-nobody",
        "GOOGLE_GEMINI_BASE_URL": origin,
        "GEMINI_API_KEY": "test-key-of-nobody",
        "OLLAMA_HOST": origin,
    }


def try_out(folder: Path, agent: dict[str, Any], *scenarios: dict[str, Any], **blocks: Any) -> Done:
    """`contract run` over these scenarios; what the agent prints is not judged here."""
    invariants = [{"id": "completes", "type": "completes"}]
    contract = {"name": "c", "invariants": invariants, "chaos_matrix": list(scenarios)}
    write_config(folder, agent=agent, contract=contract, advanced={"seed": 1, "concurrency": 2}, **blocks)
    done = flakestorm(folder, "contract", "run", report=True)
    assert done.code == 0, f"{done.out}{done.err}"
    return done


def tape_of(folder: Path, done: Done, scenario: str) -> list[dict[str, Any]]:
    """The exchanges of a scenario's run, decoded."""
    exchanges: list[dict[str, Any]] = describe(Tape.open(folder / "out" / done.run(scenario)["tape"]))["exchanges"]
    return exchanges


def sites(exchanges: list[dict[str, Any]]) -> list[str]:
    return [exchange["site"] for exchange in exchanges]


@contextmanager
def aimock(answer: str = LONG_ANSWER) -> Iterator[str]:
    """aimock, which asks for `search` once and then answers; its URL."""
    process = subprocess.Popen(
        ["node", str(FOREIGN / "programs" / "aimock.mjs")],
        env=clean_env({"ANSWER": answer}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


def results_in(up: Upstream, path: str) -> list[str]:
    """What the model was told about tools, in all requests to this path."""
    messages = [message for request in up.requests if request.path == path for message in request.json()["messages"]]
    told = [message["content"] for message in messages if message["role"] == "tool"]
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    told += [block["content"] for block in blocks if "tool_use_id" in block]
    return [each if isinstance(each, str) else json.dumps(each) for each in told]
