"""Tool faults through the real command line: what the agent met, how often its tool really ran, and what is judged."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e_support import PROGRAMS, Done, flakestorm, sdk_agent, world, write_config
from flakestorm.demo.run import CONFIG, serve
from mcp_support import PLAIN
from upstream import Upstream, document

ONCE = {"id": "pays-once", "type": "no_duplicate_side_effect", "tool": "pay", "key": "order_id", "severity": "critical"}
LOST = {"tool": "pay", "mode": "timeout_after_commit", "delay_ms": 200, "calls": [1]}
CLIENTS = ("httpx", "requests", "aiohttp")


def pays(
    folder: Path,
    up: Upstream,
    *faults: dict[str, Any],
    client: str = "httpx",
    keyed: bool = False,
    rule: dict[str, Any] = ONCE,
) -> Done:
    """An agent that pays once, as it thinks. A run that fails is made once more without chaos, as a control."""
    up.reply("/pay", document({"price": 120, "receipt": "R1001"}))
    env = {"PAY_URL": f"{up.url}/pay", "CLIENT": client, "KEYED": "1" if keyed else "0"}
    write_config(
        folder,
        agent={"type": "command", "start": [sys.executable, str(PROGRAMS / "paying_agent.py")], "env": env},
        boundary={"tools": {"pay": "*/pay"}},
        contract={
            "name": "shop",
            "invariants": [rule],
            "chaos_matrix": [{"name": "storm", "tool_faults": list(faults)}],
        },
        advanced={"seed": 3},
    )
    return flakestorm(folder, "contract", "run", report=True)


def fired(done: Done, scenario: str = "storm") -> list[tuple[str, str]]:
    return [(fault["site"], fault["mode"]) for fault in done.run(scenario)["faults"]["fired"]]


@pytest.mark.parametrize(
    ("mode", "reached", "errors"),
    [
        ("connection_reset", 1, {"httpx": "ReadError", "requests": "ConnectionError", "aiohttp": "ClientOSError"}),
        (
            "timeout_after_commit",
            2,
            {"httpx": "ReadTimeout", "requests": "ReadTimeout", "aiohttp": "SocketTimeoutError"},
        ),
        ("duplicate", 2, {}),
        ("flap", 1, {"httpx": "HTTPStatusError", "requests": "HTTPError", "aiohttp": "ClientResponseError"}),
    ],
)
@pytest.mark.parametrize("client", CLIENTS)
def test_the_servers_counter_tells_what_got_through(
    tmp_path: Path, client: str, mode: str, reached: int, errors: dict[str, str]
) -> None:
    settings = {"delay_ms": 200} if mode == "timeout_after_commit" else {}
    with Upstream() as up:
        fault = {"tool": "pay", "mode": mode, "calls": [1], **settings}
        done = pays(tmp_path, up, fault, client=client, rule={"id": "ends", "type": "completes"})
        assert up.count("/pay") == reached
    output = json.loads(done.run("storm")["output"])
    assert output["after"] == ([errors[client]] if errors else [])
    assert output["paid"]["price"] == 120
    assert fired(done) == [("tool/pay#1", mode)]


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("fault", [LOST, {"tool": "pay", "mode": "duplicate", "calls": [1]}], ids=["lost", "twice"])
def test_an_agent_that_pays_twice_is_caught_and_one_with_a_key_is_not(
    tmp_path: Path, fault: dict[str, Any], keyed: bool
) -> None:
    with Upstream() as up:
        done = pays(tmp_path, up, fault, keyed=keyed)
        assert up.count("/pay") == (2 if keyed else 3), "with the control run of what failed"
    cell = done.cell("storm", "pays-once")
    assert {request.headers.get("idempotency-key") is not None for request in up.requests} == {keyed}
    assert len({request.headers.get("idempotency-key") for request in up.requests}) == 1
    assert (cell["verdict"], done.code) == (("pass", 0) if keyed else ("fail", 1)), cell["reason"]
    if not keyed:
        assert "no idempotency key" in cell["reason"]


def test_an_agent_that_tries_again_after_a_refusal_is_not_caught(tmp_path: Path) -> None:
    with Upstream() as up:
        done = pays(tmp_path, up, {"tool": "pay", "mode": "error", "calls": [1]})
        assert up.count("/pay") == 1
    assert done.cell("storm", "pays-once")["verdict"] == "pass"


def test_a_lie_is_told_in_the_report_and_on_the_tape(tmp_path: Path) -> None:
    with Upstream() as up:
        done = pays(tmp_path, up, {"tool": "pay", "mode": "wrong_value"})
        assert up.count("/pay") == 1
    told = json.loads(done.run("storm")["output"])["paid"]
    assert told.keys() == {"price", "receipt"}
    assert told != {"price": 120, "receipt": "R1001"}
    tape = flakestorm(tmp_path, "tapes", "show", str(tmp_path / "out" / done.run("storm")["tape"]), "--format", "json")
    (exchange,) = json.loads(tape.out)["exchanges"]
    assert json.loads(exchange["reply"]["text"]) == told
    assert json.loads(exchange["world"]["text"]) == {"price": 120, "receipt": "R1001"}
    assert " -> " in json.dumps(exchange["faults"])


def test_the_line_of_a_failing_run_loses_the_same_reply(tmp_path: Path) -> None:
    with Upstream() as up:
        done = pays(tmp_path, up, LOST)
        line = shlex.split(done.run("storm")["reproduce"])
        assert "tool/pay#1=timeout_after_commit:200" in line
        before = up.count("/pay")
        again = flakestorm(tmp_path, *line[1:], report=True)
        assert again.code == 1
        assert up.count("/pay") - before == 3, "two with the fault, and one in the control run"
    assert fired(again, "injected") == [("tool/pay#1", "timeout_after_commit")]


@pytest.mark.parametrize("mode", ["session_lost", "tool_poisoning"])
def test_a_fault_for_mcp_on_another_tool_is_inconclusive_and_says_why(tmp_path: Path, mode: str) -> None:
    with Upstream() as up:
        done = pays(tmp_path, up, {"tool": "pay", "mode": mode})
    cell = done.cell("storm", "pays-once")
    assert (cell["verdict"], done.code) == ("inconclusive", 3)
    assert (
        f"{mode} did nothing at tool/pay#1: it is for tools of MCP servers, and pay is not called by MCP"
        in (cell["reason"])
    )


FUNCTIONS = """
import json
from pathlib import Path

def pay(order: str, amount: int) -> dict:
    with Path("paid.txt").open("a") as log:
        log.write(order + "\\n")
    return {"order": order, "amount": amount, "receipt": "R1001"}

TOOLS = [pay]

def answer(text: str) -> str:
    try:
        return json.dumps(pay(text, amount=120))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""


@pytest.mark.parametrize(
    ("mode", "ran", "said"),
    [
        ("connection_reset", 0, "ConnectionResetError: pay: connection reset by peer"),
        ("timeout_after_commit", 1, "TimeoutError: pay: no answer within 20 ms"),
        ("duplicate", 2, '{"order": "o-7", "amount": 120, "receipt": "R1001"}'),
        ("flap", 0, "RuntimeError: 503 Service Unavailable"),
        ("empty", 1, "{}"),
        ("wrong_value", 1, None),
        ("drop_fields", 1, None),
    ],
)
def test_a_plain_function_runs_as_often_as_the_fault_says(
    tmp_path: Path, mode: str, ran: int, said: str | None
) -> None:
    (tmp_path / "shop.py").write_text(FUNCTIONS)
    settings = {"delay_ms": 20} if mode == "timeout_after_commit" else {}
    write_config(
        tmp_path,
        golden_prompts=["o-7"],
        agent={"type": "python", "endpoint": "shop:answer", "tools": "shop:TOOLS"},
        contract={
            "name": "shop",
            "invariants": [{**ONCE, "key": "order"}],
            "chaos_matrix": [{"name": "storm", "tool_faults": [{"tool": "pay", "mode": mode, **settings}]}],
        },
    )
    done = flakestorm(tmp_path, "contract", "run", report=True)
    log = tmp_path / "paid.txt"
    control = 1 if mode == "duplicate" else 0  # what failed is run once more without chaos
    assert (log.read_text() if log.exists() else "") == "o-7\n" * (ran + control)
    output = done.run("storm")["output"]
    assert fired(done) == [("tool/pay#1", mode)]
    assert done.cell("storm", "pays-once")["verdict"] == ("fail" if ran == 2 else "pass")
    if said is not None:
        assert output == said
        return
    truth, told = {"order": "o-7", "amount": 120, "receipt": "R1001"}, json.loads(output)
    assert told != truth
    assert set(told) == set(truth) if mode == "wrong_value" else set(told) < set(truth)


@pytest.mark.parametrize("mode", ["wrong_value", "drop_fields", "flap", "empty"])
def test_a_result_that_only_the_model_is_told_is_changed_on_its_way(tmp_path: Path, mode: str) -> None:
    with world() as up:
        write_config(
            tmp_path,
            agent=sdk_agent(up, client="function"),
            contract={
                "name": "x",
                "invariants": [{"id": "answers", "type": "output_not_empty"}],
                "chaos_matrix": [{"name": "storm", "tool_faults": [{"tool": "search", "mode": mode}]}],
            },
        )
        done = flakestorm(tmp_path, "contract", "run", report=True)
        (told,) = [
            message["content"]
            for request in up.requests
            for message in request.json()["messages"]
            if message["role"] == "tool"
        ]
    assert fired(done) == [("tool/search#1", mode)]
    if mode == "wrong_value":
        assert json.loads(told).keys() == {"flights"}
        assert json.loads(told) != {"flights": 3}
    else:
        assert told == {"drop_fields": "{}", "flap": "Error: 503 Service Unavailable", "empty": ""}[mode]


@pytest.mark.parametrize("profile", ["lying_tools", "flaky_network"])
def test_a_profile_plays_against_the_demo(tmp_path: Path, profile: str) -> None:
    blocks = yaml.safe_load(CONFIG.read_text())
    write_config(tmp_path, **{**blocks, "invariants": [{"id": "answers", "type": "completes"}]})
    with serve(reports=tmp_path / "reports") as env:
        done = flakestorm(tmp_path, "chaos", "--profile", profile, "--seed", "1", "--trials", "2", env=env, report=True)
    assert done.report is not None, done.err
    modes = {fault["mode"] for run in done.report["runs"] for fault in run["faults"]["fired"]}
    known = {
        "lying_tools": {"wrong_value", "drop_fields", "empty"},
        "flaky_network": {"connection_reset", "timeout_after_commit", "duplicate", "slow"},
    }
    assert len(modes) > 1
    assert modes <= known[profile]


def test_mcp_chaos_plays_against_an_mcp_agent(tmp_path: Path) -> None:
    write_config(
        tmp_path,
        agent={
            "type": "command",
            "start": [sys.executable, str(PROGRAMS / "mcp_agent.py")],
            "mcp": {"notes": [sys.executable, "-I", str(PLAIN)]},
        },
        contract={
            "name": "notes",
            "invariants": [{"id": "calls", "type": "tool_called", "tool": "echo"}],
            "chaos_matrix": [{"name": "forgetful", "tool_faults": [{"tool": "echo", "mode": "session_lost"}]}],
        },
        invariants=[{"id": "obeys-nobody", "type": "canary_absent"}],
    )
    done = flakestorm(tmp_path, "chaos", "--profile", "mcp_chaos", "--seed", "1", report=True)
    assert done.report is not None, done.err
    modes = [fault["mode"] for run in done.report["runs"] for fault in run["faults"]["fired"]]
    assert "tool_poisoning" in modes

    forgotten = flakestorm(tmp_path, "contract", "run", report=True)
    assert forgotten.run("forgetful")["output"] == "the notes failed: Session not found"
    assert fired(forgotten, "forgetful") == [("mcp/echo#1", "session_lost")]
