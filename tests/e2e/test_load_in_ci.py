"""Load as a phase of `ci`, its latency limits, and going on after an interruption, by the real command."""

import json
import os
import signal
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from e2e_support import FLAKESTORM, Done, clean_env, flakestorm, wait_until, write_config
from schema_support import held_to

AGENT = """
import pathlib, threading
begun, asked, go = threading.Lock(), pathlib.Path("asked"), pathlib.Path("go")

def answer(text):
    with begun:
        with asked.open("a") as file:
            file.write("x")
        count = len(asked.read_text())
    if count > HANGS and not go.exists():
        pathlib.Path("hanging").touch()
        threading.Event().wait(60)
    return "what?" if count in FORGETS else f"hello {text}"
"""
GREETS = {"type": "contains", "id": "greets", "value": "hello", "severity": "medium"}


def configure(
    folder: Path, load: dict[str, Any], *, hangs: int = 10_000, forgets: Iterable[int] = (), **blocks: Any
) -> None:
    """A config whose agent, after so many runs, hangs until a file says go, and greets nobody in these runs."""
    agent = AGENT.replace("HANGS", str(hangs)).replace("FORGETS", str(list(forgets)))
    (folder / "my_agent.py").write_text(agent)
    write_config(
        folder,
        agent={"type": "python", "endpoint": "my_agent:answer"},
        golden_prompts=["Ada", "Bob"],
        invariants=[GREETS],
        load=load,
        advanced={"seed": 5},
        **blocks,
    )


CONTRACT = {"name": "c", "invariants": [GREETS], "chaos_matrix": [{"name": "calm"}]}


def phases(done: Done) -> list[tuple[str, str, float]]:
    assert done.report is not None, done.err
    held_to("report", done.report)
    return [(phase["name"], phase["verdict"], phase["weight"]) for phase in done.report["phases"]]


def test_a_build_whose_agent_keeps_its_promises_under_load_may_ship(tmp_path: Path) -> None:
    configure(tmp_path, {"users": [1, 2], "runs": 6, "max_ms": {"p50": 60_000}}, contract=CONTRACT)
    done = flakestorm(tmp_path, "ci", "--min-score", "1", "--trials", "2", "--concurrency", "3", report=True)
    assert (done.code, phases(done)) == (0, [("contract", "pass", 0.35), ("load", "pass", 0.0)]), done.err
    assert [level["runs"] for level in done.report["load"]["levels"]] == [6, 6]  # --trials is not for load
    assert [limit["verdict"] for level in done.report["load"]["levels"] for limit in level["limits"]] == ["pass"] * 2
    assert set(done.report["scores"]) == {"contract", "overall"}
    assert done.report["scores"]["contract"]["conclusive"] == 4
    assert done.report["phases"][1]["score"]["conclusive"] == 12
    assert ", 2 latency limits kept; " in done.report["phases"][1]["headline"]
    assert done.report["reliability"]["pass_k"][0]["tasks"] == 2  # those of the contract


def test_a_promise_that_is_broken_under_load_alone_stops_the_build_in_every_form(tmp_path: Path) -> None:
    configure(tmp_path, {"users": [1, 12], "runs": 12}, contract=CONTRACT, forgets=range(2 + 12 + 1, 99))
    done = flakestorm(tmp_path, "ci", "--min-score", "0.9", report=True)
    assert (done.code, phases(done)) == (1, [("contract", "pass", 0.35), ("load", "fail", 0.0)])
    assert done.report["headline"].startswith("load: a promise was broken: greets (medium) in scenario 12 users")
    assert done.report["load"]["knee"] == 12
    report = str(tmp_path / "out" / "report.json")
    terminal, markdown, xml = (
        flakestorm(tmp_path, "report", report, "--format", form).out for form in ("terminal", "markdown", "junit")
    )
    assert "12 users: greets held in 0 of 12 runs" in terminal
    assert "| load | ❌ Fail | 0 |" in markdown
    failing = {s.get("name"): s.get("failures") for s in ET.fromstring(xml).iter("testsuite")}
    assert failing == {"calm": "0", "1 user": "0", "12 users": "12"}
    [invocation] = json.loads(flakestorm(tmp_path, "report", report, "--format", "sarif").out)["runs"][0]["invocations"]
    assert invocation["exitCode"] == 1


@pytest.mark.parametrize(
    ("max_ms", "code", "verdict", "said"),
    [
        ({"p50": 60_000}, 0, "pass", "p50 within 60000 ms held"),
        ({"p50": 0.0001}, 1, "fail", "p50 within 0.0001 ms did not hold"),
        ({"p50": 60_000, "p95": 60_000}, 3, "inconclusive", "it takes 72 runs to tell, and there were 6"),
    ],
)
def test_a_latency_limit_is_kept_broken_or_cannot_be_judged(tmp_path, max_ms, code, verdict, said) -> None:
    configure(tmp_path, {"users": [1], "runs": 6, "max_ms": max_ms})
    done = flakestorm(tmp_path, "ci", report=True)
    assert (done.code, phases(done)) == (code, [("load", verdict, 0.0)]), done.err
    report = str(tmp_path / "out" / "report.json")
    assert said in flakestorm(tmp_path, "report", report, "--format", "terminal").out
    assert (said in done.report["headline"]) == (code > 0)
    xml = ET.fromstring(flakestorm(tmp_path, "report", report, "--format", "junit").out)
    cases = {
        case.get("name"): [child.tag for child in case] for case in xml.iter("testcase") if "ms" in case.get("name")
    }
    told = {"pass": [], "fail": ["failure"], "inconclusive": ["error"]}
    limits = [limit["verdict"] for limit in done.report["load"]["levels"][0]["limits"]]
    assert list(cases.values()) == [told[each] for each in limits]


def test_a_share_of_passed_runs_can_be_promised_for_load_alone(tmp_path: Path) -> None:
    configure(tmp_path, {"users": [1], "runs": 6, "min_pass_rate": 0.5}, forgets=[3])
    done = flakestorm(tmp_path, "ci", report=True)
    assert (done.code, {cell["min_pass_rate"] for cell in done.report["cells"]}) == (0, {0.5}), done.out
    assert "5/6" in flakestorm(tmp_path, "report", str(tmp_path / "out" / "report.json"), "--format", "terminal").out


def test_what_is_wrong_with_the_load_block_is_said_before_anything_is_run(tmp_path: Path) -> None:
    configure(tmp_path, {"users": [1]}, contract=CONTRACT | {"invariants": [{"type": "max_calls", "limit": 1}]})
    text = (tmp_path / "flakestorm.yaml").read_text().replace("type: python", "type: http")
    (tmp_path / "flakestorm.yaml").write_text(text.replace("my_agent:answer", "http://127.0.0.1:9/"))
    done = flakestorm(tmp_path, "ci")
    assert (done.code, "load needs an invariant to judge by" in done.err) == (2, True), done.err
    configure(tmp_path, {"users": [1], "max_ms": {"p96": 3}})
    done = flakestorm(tmp_path, "ci")
    assert (done.code, "load.max_ms.p96: unknown key" in done.err) == (2, True), done.err
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("command", ["load", "ci"])
def test_after_an_interruption_the_levels_that_were_not_finished_are_made(tmp_path: Path, command: str) -> None:
    configure(tmp_path, {"users": [1, 2], "runs": 6, "max_ms": {"p50": 60_000}}, hangs=7)
    running = subprocess.Popen(
        [FLAKESTORM, command, "--format", "json", "-o", "one.json"],
        cwd=tmp_path,
        env=clean_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until((tmp_path / "hanging").exists)
    os.kill(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert (running.returncode, "--resume" in err) == (130, True), err
    before = json.loads((tmp_path / "one.json").read_text())
    assert [level["duration_ms"] is None for level in before["load"]["levels"]] == [False, True]

    (tmp_path / "go").touch()
    (tmp_path / "asked").unlink()
    words = err.split("To resume: flakestorm ")[1].split()
    done = flakestorm(tmp_path, *words)
    assert done.code == 0, done.err
    after = json.loads((tmp_path / "one.json").read_text())
    held_to("report", after)
    assert len((tmp_path / "asked").read_text()) == 6  # all of the second level, and none of the first
    assert after["load"]["levels"][0] == before["load"]["levels"][0]
    assert [level["runs"] for level in after["load"]["levels"]] == [6, 6]
    assert after["load"]["levels"][1]["duration_ms"] is not None
