"""Tools that are plain functions inside a launched agent: broken by name all the same, in the model's next request."""

import json
import shlex
from pathlib import Path

import pytest

from e2e_support import LONG_ANSWER, flakestorm, sdk_agent, world, write_config
from upstream import Upstream

MODEL_PATH = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
ARMS = [("openai", False), ("openai", True), ("anthropic", False), ("anthropic", True)]
RESULT, OUTAGE = '{"flights": 3}', "Error: 503 Service Unavailable"


def judge(folder: Path, up: Upstream, sdk: str, stream: bool, *faults: dict, invariants: list[dict] | None = None):
    scenario = {"name": "down", "tool_faults": list(faults)}
    rules = invariants or [{"id": "answers", "type": "output_not_empty", "severity": "critical"}]
    write_config(
        folder,
        agent=sdk_agent(up, sdk=sdk, client="function", stream=stream),
        contract={"name": "booking", "invariants": rules, "chaos_matrix": [scenario]},
        advanced={"seed": 42},
    )
    return flakestorm(folder, "contract", "run", report=True)


def results(up: Upstream, sdk: str) -> list[str]:
    """What the model was told by tools, in every request that told it anything; a failure's mark is shown."""
    found = []
    for request in [request for request in up.requests if request.path == MODEL_PATH[sdk]]:
        for message in request.json()["messages"]:
            if message["role"] == "tool":
                found.append(message["content"])
            for block in message["content"] if isinstance(message.get("content"), list) else []:
                if block["type"] == "tool_result":
                    found.append(block["content"] + (" [is_error]" if block.get("is_error") else ""))
    return found


@pytest.mark.parametrize(("sdk", "stream"), ARMS)
@pytest.mark.parametrize("where", [{}, {"where": "result"}], ids=["by default", "as asked"])
def test_a_function_tool_is_broken_by_name(tmp_path: Path, sdk: str, stream: bool, where: dict) -> None:
    with world() as up:
        done = judge(tmp_path, up, sdk, stream, {"tool": "search", "mode": "error", **where})
        mark = " [is_error]" if sdk == "anthropic" else ""
        assert results(up, sdk) == [OUTAGE + mark]
    run = done.run("down")
    assert (done.code, run["output"]) == (0, LONG_ANSWER)
    assert [(f["site"], f["mode"]) for f in run["faults"]["fired"]] == [("tool/search#1", "error")]
    assert run["calls"] == {"llm": 2, "tool": 0, "mcp": 0, "http": 0}
    shown = flakestorm(tmp_path, "tapes", "show", str(tmp_path / "out" / run["tape"]), "--format", "json")
    first, second = json.loads(shown.out)["exchanges"]
    assert (first["world_request"], first["faults"]) == (None, [])
    assert RESULT in json.dumps(second["request"]).replace("\\", "")
    assert OUTAGE in json.dumps(second["world_request"])
    assert [fault["site"] for fault in second["faults"]] == ["tool/search#1"]


@pytest.mark.parametrize(("sdk", "stream"), ARMS)
def test_an_untouched_run_is_told_what_the_tool_said(tmp_path: Path, sdk: str, stream: bool) -> None:
    with world() as up:
        done = judge(tmp_path, up, sdk, stream)
        assert results(up, sdk) == [RESULT]
    assert done.code == 0


def test_a_fault_that_misses_lists_the_functions_that_the_model_asked_for(tmp_path: Path) -> None:
    with world() as up:
        done = judge(tmp_path, up, "openai", False, {"tool": "serch", "mode": "error"})
        assert results(up, "openai") == [RESULT]
    assert done.code == 3
    assert "tools seen: search" in done.cell("down", "answers")["reason"]


@pytest.mark.parametrize("where", [{}, {"where": "result"}], ids=["by default", "as asked"])
def test_a_failing_run_is_made_again_by_its_line(tmp_path: Path, where: dict) -> None:
    never = [{"id": "finds", "type": "contains", "value": "no flight", "severity": "critical"}]
    fault = {"tool": "search", "mode": "error", "error_code": 500, **where}
    with world() as up:
        done = judge(tmp_path, up, "openai", False, fault, invariants=never)
        assert done.code == 1
        line = shlex.split(done.run("down")["reproduce"])
        up.requests.clear()
        again = flakestorm(tmp_path, *line[1:], report=True)
        assert "Error: 500 Internal Server Error" in results(up, "openai")
    assert again.code == 1
    assert [f["site"] for f in again.run("injected")["faults"]["fired"]] == ["tool/search#1"]
