"""With an upstream that nobody here wrote: real SDKs, in Node and in Python, through the gateway and in process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from e2e_support import LONG_ANSWER, flakestorm, write_config
from foreign_support import FOREIGN, MODEL, aimock, needs_node, node_agent, providers, sites, tape_of, try_out

pytestmark = needs_node

MODELS = {
    "openai": "gpt-4o",
    "responses": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "ollama": "qwen3:8b",
}
BUSY = {"name": "busy", "llm_faults": [{"mode": "rate_limit"}]}
CUT = {"name": "cut", "llm_faults": [{"mode": "truncated_response", "max_tokens": 4, "after_calls": 1}]}
BROKEN = {"name": "broken", "tool_faults": [{"tool": "search", "mode": "error", "error_code": 503}]}


@pytest.mark.parametrize(("client", "stream"), [("openai", True), ("anthropic", False)])
def test_node(tmp_path: Path, client: str, stream: bool) -> None:
    with aimock() as url:
        done = try_out(tmp_path, node_agent(client, url, stream=stream), {"name": "calm"}, BUSY, CUT, BROKEN)
    assert done.run("calm")["output"] == LONG_ANSWER
    model = MODEL[client]
    assert sites(tape_of(tmp_path, done, "calm")) == [f"llm/{model}#1", f"llm/{model}#2"]
    assert done.run("busy")["output"] == "the model is busy"
    assert [e["reply"]["status"] for e in tape_of(tmp_path, done, "busy")] == [429, 429, 429]
    assert done.run("cut")["output"].startswith("CUT: I found")
    assert [f["site"] for f in done.run("broken")["faults"]["fired"]] == ["tool/search#1"]


@pytest.mark.parametrize("held", ["gateway", "in process"])
@pytest.mark.parametrize("sdk", MODELS)
def test_python(tmp_path: Path, sdk: str, held: str) -> None:
    program = FOREIGN / "programs" / "sdks.py"
    with aimock() as url:
        if held == "gateway":
            agent = {"type": "command", "start": [sys.executable, str(program), sdk], "env": providers(url)}
        else:
            (tmp_path / "sdks.py").write_text(program.read_text())
            agent = {"type": "python", "endpoint": f"sdks:{sdk}"}
        write_config(tmp_path, agent=agent, golden_prompts=["hello"])
        done = flakestorm(tmp_path, "run", "--prompt", "0", env=providers(url), report=True)
    (run,) = done.report["runs"]  # type: ignore[index]
    assert (run["output"], run["calls"]["llm"]) == (LONG_ANSWER, 1), f"{done.out}{done.err}"
    (exchange,) = tape_of(tmp_path, done, run["scenario"])
    assert (exchange["site"], exchange["reply"]["text"]) == (f"llm/{MODELS[sdk]}#1", LONG_ANSWER)
