"""Delays of seconds and minutes: the agent's own time-out branch runs as it would in real time, and the report counts
the time that was skipped."""

import json
import sys
from pathlib import Path

import yaml

from e2e_support import clean_env, flakestorm, write_config
from flakestorm.demo.run import CONFIG, serve
from upstream import Upstream, document

PATIENT = """
import asyncio

async def search(city: str) -> str:
    return f"three flights to {city}"

TOOLS = [search]

async def agent(prompt: str) -> str:
    try:
        async with asyncio.timeout(4):
            return await search("Oslo")
    except TimeoutError:
        return "I gave up waiting for the search."
"""

BLOCKING = """
def search(city: str) -> str:
    return f"three flights to {city}"

TOOLS = [search]

def agent(prompt: str) -> str:
    return search("Oslo")
"""

FOREIGN = """
import http.client, os, sys
from urllib.parse import urlsplit

place = urlsplit(os.environ["OPENAI_BASE_URL"])
connection = http.client.HTTPConnection(place.hostname, place.port, timeout=0.5)
try:
    connection.request("POST", f"{place.path}/chat/completions", body=b'{"model": "m", "messages": []}')
    print(connection.getresponse().status)
except TimeoutError:
    print("I gave up waiting for the model.")
"""

SLOW = {"name": "slow", "tool_faults": [{"tool": "search", "mode": "slow", "delay_ms": 20000}]}
ANSWERS = {"id": "answers", "type": "completes"}
QUICK = {"id": "quick", "type": "latency", "max_ms": 10000}


def in_process(folder: Path, code: str, scenario: dict, *, timeout: int = 30000, env: dict | None = None):
    (folder / "program.py").write_text(code)
    write_config(
        folder,
        agent={"type": "python", "endpoint": "program:agent", "tools": "program:TOOLS", "timeout": timeout},
        contract={"name": "c", "invariants": [ANSWERS, QUICK], "chaos_matrix": [scenario]},
        advanced={"seed": 1},
    )
    return flakestorm(folder, "contract", "run", report=True, env=env)


def exchange(folder: Path, run: dict, site: str) -> dict:
    shown = flakestorm(folder, "tapes", "show", str(folder / "out" / run["tape"]), "--format", "json")
    return next(x for x in json.loads(shown.out)["exchanges"] if x["site"] == site)


def test_the_demos_agent_runs_into_its_own_time_out_under_high_latency(tmp_path) -> None:
    config = yaml.safe_load(CONFIG.read_text())
    config["invariants"] = [ANSWERS, {**QUICK, "max_ms": 4000}]
    (tmp_path / "flakestorm.yaml").write_text(yaml.safe_dump(config))
    with serve(reports=tmp_path / "reports") as env:
        done = flakestorm(tmp_path, "chaos", "--profile", "high_latency", "--seed", "1", env=env, report=True)
    assert done.report is not None
    runs = [run for run in done.report["runs"] if run["scenario"] == "high_latency"]
    gave_up = [run for run in runs if "search is unavailable" in run["output"]]
    assert gave_up
    for run in gave_up:
        waited = exchange(tmp_path, run, "tool/search_flights#1")
        assert 4900 <= waited["duration_ms"] < 20000  # the client's own time-out, not the fault's delay
        assert run["latency_ms"] > 5000
        assert done.cell("high_latency", "quick")["verdict"] == "fail"
    (late,) = (run for run in runs if run not in gave_up)  # the model too: more than the agent was given
    assert (late["error"], late["latency_ms"]) == ("timeout: no answer within 20000 ms", 20000)


def test_an_agents_own_time_limit_around_a_tool_ends_it(tmp_path) -> None:
    done = in_process(tmp_path, PATIENT, SLOW)
    run = done.run("slow")
    assert run["output"] == "I gave up waiting for the search."
    assert 4000 <= run["latency_ms"] < 20000


def test_a_delay_counts_in_latency_and_on_the_tape_though_it_was_skipped(tmp_path) -> None:
    done = in_process(tmp_path, BLOCKING, SLOW)
    run = done.run("slow")
    assert run["output"] == "three flights to Oslo"
    assert run["latency_ms"] >= 20000
    assert exchange(tmp_path, run, "tool/search#1")["duration_ms"] >= 20000
    assert done.cell("slow", "quick")["reason"].endswith("more than 10,000 ms")
    assert done.report is not None
    assert done.report["duration_ms"] < run["latency_ms"]


def test_an_agent_that_would_have_taken_too_long_has_timed_out(tmp_path) -> None:
    done = in_process(tmp_path, BLOCKING, SLOW, timeout=15000)
    run = done.run("slow")
    assert (run["output"], run["error"]) == ("", "timeout: no answer within 15000 ms")
    assert done.cell("slow", "answers")["verdict"] == "fail"


def test_delays_take_their_real_time_where_that_is_wanted(tmp_path) -> None:
    slow = {"name": "slow", "tool_faults": [{"tool": "search", "mode": "slow", "delay_ms": 1200}]}
    done = in_process(tmp_path, BLOCKING, slow, env={"FLAKESTORM_REAL_TIME": "1"})
    assert done.report is not None
    assert done.report["duration_ms"] >= 1200


def test_a_foreign_client_is_kept_waiting_until_it_leaves(tmp_path) -> None:
    """Nobody knows how long it waits: the shim is not in this program."""
    program = tmp_path / "foreign.py"
    program.write_text(FOREIGN)
    with Upstream() as up:
        up.reply("/v1/chat/completions", document({}))
        write_config(
            tmp_path,
            agent={
                "type": "command",
                "start": [sys.executable, "-I", str(program)],
                "env": {"OPENAI_BASE_URL": f"{up.url}/v1"},
            },
            contract={
                "name": "c",
                "invariants": [ANSWERS],
                "chaos_matrix": [{"name": "mute", "llm_faults": [{"mode": "timeout", "delay_ms": 60000}]}],
            },
        )
        done = flakestorm(tmp_path, "contract", "run", report=True, env=clean_env())
        assert up.count("/v1/chat/completions") == 0
    assert done.run("mute")["output"] == "I gave up waiting for the model."
