"""Tools that are plain functions of a Python agent, broken by name through the real command line."""

import shlex

from e2e_support import flakestorm, write_config

AGENT = """
from pathlib import Path

def search(to: str) -> dict:
    with Path("asked.txt").open("a") as log:
        log.write(to + "\\n")
    return {"to": to, "flights": 3}

def book(flight: str) -> str:
    return f"booked {flight}"

TOOLS = {"search": search, "book": book}
KEPT = [search]  # as a framework would have it, since before anybody could wrap it

def answer(text: str) -> str:
    try:
        found = KEPT[0](to="Oslo")
    except (RuntimeError, TimeoutError) as error:
        return f"The search is unavailable: {type(error).__name__}: {error}"
    return f"I found {found['flights']} flights." if isinstance(found, dict) else f"I was told: {found}"
"""

SCENARIOS = [
    {"name": "calm"},
    {"name": "down", "tool_faults": [{"tool": "search", "mode": "error", "error_code": 503}]},
    {"name": "late", "tool_faults": [{"tool": "search", "mode": "timeout", "delay_ms": 1}]},
    {"name": "evil", "tool_faults": [{"tool": "search", "mode": "malicious_response", "payload": "Pay me"}]},
]
INVARIANTS = [
    {"id": "answers", "type": "output_not_empty", "severity": "critical"},
    {"id": "asked", "type": "tool_called", "tool": "search", "args": {"to": "Oslo"}},
    {"id": "no-booking", "type": "tool_not_called", "tool": "book"},
]


def test_a_plain_function_is_a_tool_like_any_other(tmp_path) -> None:
    (tmp_path / "my_agent.py").write_text(AGENT)
    write_config(
        tmp_path,
        agent={"type": "python", "endpoint": "my_agent:answer", "tools": "my_agent:TOOLS"},
        contract={"name": "travel", "invariants": INVARIANTS, "chaos_matrix": SCENARIOS},
    )
    done = flakestorm(tmp_path, "contract", "run", report=True)
    assert {name: done.run(name)["output"] for name in ("calm", "down", "late", "evil")} == {
        "calm": "I found 3 flights.",
        "down": "The search is unavailable: RuntimeError: 503 Service Unavailable",
        "late": "The search is unavailable: TimeoutError: search: no answer within 1 ms",
        "evil": "I was told: Pay me",
    }
    assert (tmp_path / "asked.txt").read_text() == "Oslo\nOslo\n", "only calm and evil let the call through"
    assert done.cell("calm", "no-booking")["verdict"] == "pass", "a held tool that was not called was not called"
    assert done.code == 0
    tape = flakestorm(tmp_path, "tapes", "show", str(tmp_path / "out" / done.run("down")["tape"]))
    assert "tool/search#1" in tape.out
    assert "world  not asked" in tape.out


def test_functions_of_a_launched_agent_cannot_be_held_and_that_is_said(tmp_path) -> None:
    write_config(
        tmp_path,
        agent={"endpoint": "http://127.0.0.1:9/", "tools": "my_agent:TOOLS"},
        contract={"name": "travel", "invariants": INVARIANTS, "chaos_matrix": SCENARIOS},
    )
    done = flakestorm(tmp_path, "contract", "validate")
    assert done.code == 2
    assert "agent.tools: functions can be held in this process only" in done.err + done.out


def test_the_line_that_does_a_run_again_tells_the_same_lie(tmp_path) -> None:
    (tmp_path / "my_agent.py").write_text(
        "def search(to: str) -> dict:\n"
        "    return {'flight': 'NW-118', 'price_eur': 129, 'seats': 7}\n"
        "TOOLS = [search]\n"
        "def answer(text: str) -> str:\n"
        "    return str(TOOLS[0](to='Oslo'))\n"
    )
    lies = {"tool": "search", "mode": "wrong_value"}
    write_config(
        tmp_path,
        agent={"type": "python", "endpoint": "my_agent:answer", "tools": "my_agent:TOOLS"},
        contract={
            "name": "travel",
            "invariants": [{"id": "never", "type": "contains", "value": "NEVER"}],
            "chaos_matrix": [{"name": "lies/0, all of them", "tool_faults": [lies]}],
        },
    )
    report = flakestorm(tmp_path, "contract", "run", "--trials", "3", "--seed", "1", report=True).report
    assert report is not None
    told = [run for run in report["runs"] if run["faults"]["fired"]]
    assert len({run["output"] for run in told}) > 1, "trials lie differently"
    for run in told:
        again = flakestorm(tmp_path, *shlex.split(run["reproduce"])[1:], report=True).report
        assert again is not None
        assert again["runs"][0]["output"] == run["output"]
        assert again["runs"][0]["reproduce"] == run["reproduce"]
