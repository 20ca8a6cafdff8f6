"""An agent that is a shell script around curl."""

from __future__ import annotations

from pathlib import Path

from e2e_support import LONG_ANSWER, world
from foreign_support import FOREIGN, aimock, needs_curl, needs_node, providers, sites, tape_of, try_out

pytestmark = needs_curl

BUSY = {"name": "busy", "llm_faults": [{"mode": "rate_limit"}]}
DOWN = {"name": "down", "tool_faults": [{"tool": "search", "mode": "error", "error_code": 503}]}
TOOLS = {"tools": {"search": "*/search"}}


def curl_agent(origin: str, search: str) -> dict[str, object]:
    env = {**providers(origin), "SEARCH_URL": search}
    return {"type": "command", "start": ["sh", str(FOREIGN / "programs" / "agent.sh")], "env": env}


def test_a_shell_script_is_recorded_and_broken(tmp_path: Path) -> None:
    with world() as up:
        done = try_out(tmp_path, curl_agent(up.url, f"{up.url}/search"), {"name": "calm"}, BUSY, DOWN, boundary=TOOLS)
        assert up.count("/search") == 1  # in the calm run alone
    assert done.run("calm")["output"] == LONG_ANSWER
    assert sites(tape_of(tmp_path, done, "calm")) == ["llm/gpt-4o#1", "tool/search#1", "llm/gpt-4o#2"]
    assert done.run("busy")["output"] == "the model is busy"
    assert done.run("down")["output"] == "search is unavailable"


@needs_node
def test_with_an_upstream_that_nobody_here_wrote(tmp_path: Path) -> None:
    with world() as up, aimock() as url:
        done = try_out(tmp_path, curl_agent(url, f"{up.url}/search"), {"name": "calm"}, BUSY, DOWN, boundary=TOOLS)
    assert done.run("calm")["output"] == LONG_ANSWER
    assert done.run("busy")["output"] == "the model is busy"
    assert done.run("down")["output"] == "search is unavailable"
