"""Users at once, by the real command against a real agent: what breaks, what holds, and whose calls are whose."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e_support import PROGRAMS, Done, flakestorm, write_config
from pages_support import DOCS, Reader
from schema_support import held_to
from upstream import Upstream, document

CHECKS = """
def greeted(run):
    return f"hello {run.input}," in run.output

def looks_at_calls(run):
    return not run.calls("search")
"""
GREETED = {"id": "greeted", "type": "check", "function": "checks:greeted"}


def load(
    folder: Path,
    *words: str,
    env: dict[str, str] | None = None,
    session: dict[str, str] | None = None,
    **blocks: Any,
) -> Done:
    """`flakestorm load` against `crowded_agent.py`."""
    (folder / "checks.py").write_text(CHECKS)
    agent = {
        "endpoint": "http://127.0.0.1:{port}",
        "start": [sys.executable, str(PROGRAMS / "crowded_agent.py"), "{port}"],
        "request_template": '{"input": "{prompt}"}',
        "env": env or {},
        **({"session": session} if session else {}),
    }
    usual = {
        "golden_prompts": ["Ada", "Bob", "Cleo", "Dan"],
        "invariants": [GREETED, {"type": "completes", "id": "completes"}],
    }
    write_config(folder, agent=agent, **{**usual, **blocks})
    done = flakestorm(folder, "load", *words, report=True)
    assert done.report is not None, done.err
    held_to("report", done.report)
    return done


def at_once(done: Done) -> set[int]:
    assert done.report is not None
    return {int(found[1]) for run in done.report["runs"] if (found := re.search(r"(\d+) at once", run["output"]))}


def promise(done: Done, level: int, invariant: str) -> dict[str, Any]:
    assert done.report is not None
    promises = done.report["load"]["levels"][level]["promises"]
    return next(found for found in promises if found["invariant"] == invariant)


def test_a_promise_that_ten_users_break_is_found(tmp_path: Path) -> None:
    done = load(tmp_path, "--users", "1,10", "--runs", "20", env={"MODE": "global"})
    assert done.code == 1
    assert (promise(done, 0, "greeted")["passed"], promise(done, 0, "greeted")["conclusive"]) == (20, 20)
    assert promise(done, 1, "greeted")["worse"]
    assert not promise(done, 1, "completes")["failing"]
    found = done.report["load"]
    assert found["knee"] == 10
    assert "the knee is at 10 users: greeted holds in" in done.report["headline"]
    assert {cell["scenario"] for cell in done.report["cells"] if cell["verdict"] == "fail"} == {"10 users"}
    failing = next(cell["run"] for cell in done.report["cells"] if cell["verdict"] == "fail")
    again = next(run["reproduce"] for run in done.report["runs"] if run["id"] == failing)
    assert again.startswith("flakestorm load -c flakestorm.yaml --users 10 --seed")


def test_its_healthy_twin_is_clean_and_one_instance_serves_all_users_at_once(tmp_path: Path) -> None:
    done = load(tmp_path, "--users", "10", "--runs", "10", env={"UNTIL": "10"})
    assert (done.code, at_once(done)) == (0, {10})
    assert len({run["output"].split(",")[1] for run in done.report["runs"]}) == 1
    assert done.report["load"]["levels"][0]["answered"] == 12


def test_new_users_come_though_nobody_has_been_answered(tmp_path: Path) -> None:
    done = load(tmp_path, "--rates", "50", "--runs", "8", env={"UNTIL": "4"})
    assert (done.code, done.report["load"]["levels"][0]["rate"]) == (0, 50)
    assert min(at_once(done)) >= 4  # the first is answered when the fourth has come
    assert {run["scenario"] for run in done.report["runs"]} == {"50 users a second"}
    assert "open loop: users come at this rate" in done.out


def test_rules_about_calls_are_not_judged_by_calls_of_other_runs(tmp_path: Path) -> None:
    looks = {"id": "looks", "type": "check", "function": "checks:looks_at_calls"}
    told = ["max_calls", "max_cost", "canary_absent", "grounded", "acknowledges_failure", "recovers"]
    rules = [GREETED, looks, *({"id": name, "type": name, "limit": 3} for name in told[:2])]
    rules += [{"id": name, "type": name} for name in told[2:]]
    done = load(tmp_path, "--users", "2", "--runs", "4", invariants=rules)
    assert done.code == 3
    assert {(cell["invariant"], cell["verdict"]) for cell in done.report["cells"]} == {
        ("greeted", "pass"),
        ("looks", "inconclusive"),
    }
    assert any(f"not judged under load: {', '.join(told)};" in note for note in done.report["notes"])
    assert any("cannot be told" in cell["reason"] for cell in done.report["cells"])


@pytest.mark.parametrize(("mode", "why"), [("dies", "the agent died under load"), ("full", "HTTP 503")])
def test_an_agent_that_gives_way_fails_and_its_quick_failures_are_not_quick_answers(tmp_path, mode, why) -> None:
    done = load(tmp_path, "--users", "1,10", "--runs", "20", env={"MODE": mode})
    assert (done.code, done.report["load"]["knee"]) == (1, 10)
    reasons = [cell["reason"] for cell in done.report["cells"] if cell["verdict"] == "fail"]
    assert any(why in reason for reason in reasons), reasons
    level = done.report["load"]["levels"][1]
    assert level["answered"] < level["runs"]
    assert level["latencies"][0]["high"] is None


def test_conversations_of_many_users_are_told_apart_by_their_sessions(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(CHECKS)
    done = load(
        tmp_path,
        *("--users", "1,10", "--runs", "10"),
        session={"header": "X-Session"},
        env={"MODE": "talks"},
        golden_prompts=[["Ada", "Bob"], ["Cleo", "Dan"]],
        invariants=[
            {"id": "both", "type": "regex", "pattern": "^hello (Ada and Bob|Cleo and Dan),"},
            {"id": "first", "type": "regex", "pattern": "^hello (Ada|Cleo),", "turn": 1},
            {"id": "looks", "type": "check", "function": "checks:looks_at_calls", "turn": 2},
        ],
    )
    found = {(cell["invariant"], cell["verdict"]) for cell in done.report["cells"]}
    assert found == {("both", "pass"), ("first", "pass"), ("looks", "inconclusive")}


def test_calls_of_an_agent_in_this_process_belong_to_their_runs(tmp_path: Path) -> None:
    with Upstream() as up:
        up.reply("/search", document({"flights": 3}))
        (tmp_path / "my_agent.py").write_text(
            f"import httpx\n\ndef answer(text):\n    return httpx.get('{up.url}/search').text\n"
        )
        write_config(
            tmp_path,
            agent={"type": "python", "endpoint": "my_agent:answer"},
            boundary={"tools": {"search": "*/search*"}},
            invariants=[{"type": "tool_called", "tool": "search"}, {"type": "max_calls", "limit": 1}],
        )
        done = flakestorm(tmp_path, "load", "--users", "1,8", "--runs", "8", report=True)
        assert (done.code, up.count()) == (0, 16), done.out + done.err
    assert {run["calls"]["tool"] for run in done.report["runs"]} == {1}


def test_a_budget_ends_it_in_order(tmp_path: Path) -> None:
    done = load(tmp_path, "--users", "1,10", "--runs", "10", "--max-runs", "12")
    assert (done.code, len(done.report["runs"])) == (3, 12)
    assert "To resume: flakestorm load --users 1,10" in done.err
    assert [level["duration_ms"] is None for level in done.report["load"]["levels"]] == [False, True]


def test_what_is_resumed_is_judged_by_calls_no_more_than_before(tmp_path: Path) -> None:
    looks = {"id": "looks", "type": "check", "function": "checks:looks_at_calls"}
    words = ("--users", "1,2", "--runs", "4", "--seed", "3")
    first = load(tmp_path, *words, "--max-runs", "6", invariants=[GREETED, looks])
    assert (first.code, "To resume: " in first.err) == (3, True), first.err
    done = load(tmp_path, *words, "--resume", "out/report.json", invariants=[GREETED, looks])
    assert (done.code, len(done.report["runs"])) == (3, 8)
    assert done.report["load"]["levels"][0] == first.report["load"]["levels"][0]
    assert {cell["verdict"] for cell in done.report["cells"] if cell["invariant"] == "looks"} == {"inconclusive"}
    taken = {cell["run"]: cell["verdict"] for cell in done.report["cells"] if cell["invariant"] == "greeted"}
    assert list(taken.values()) == ["pass"] * 8
    told = [{run["id"]: run["latency_ms"] for run in each.report["runs"][:4]} for each in (first, done)]
    assert told[0] == told[1]  # the first level's, and what the budget left of the second one is made anew


def test_the_page_can_be_followed(tmp_path: Path) -> None:
    Reader(tmp_path).follow(DOCS / "how-to" / "load.md")
