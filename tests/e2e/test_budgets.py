"""Budgets, dry runs, early stopping, statefulness and resuming, counted at the agent's own door."""

import itertools
import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from e2e_support import FLAKESTORM, clean_env, flakestorm, sdk_agent, wait_until, world, write_config
from upstream import Upstream, document

FINE = {"id": "fine", "type": "contains", "value": "hello"}
PROMPTS = [f"prompt {n}" for n in range(5)]


def contract(**more):
    return {"name": "x", "invariants": [FINE], "chaos_matrix": [{"name": "calm"}], **more}


@pytest.fixture
def door(tmp_path):
    """An agent that says hello, and the folder of a project for it."""
    with Upstream() as up:
        up.reply("/invoke", document({"output": "hello"}))
        yield up, tmp_path


def project(up: Upstream, folder: Path, **blocks) -> None:
    write_config(folder, **{"agent": {"endpoint": f"{up.url}/invoke"}, "golden_prompts": PROMPTS, **blocks})


def test_max_runs_is_kept_exactly_and_the_rest_is_inconclusive(door) -> None:
    up, folder = door
    project(up, folder, contract=contract())
    done = flakestorm(folder, "contract", "run", "--max-runs", "3", report=True)
    assert (done.code, up.count("/invoke")) == (3, 3), done.err
    assert done.report["stopped"] == "--max-runs 3"
    assert Counter(cell["verdict"] for cell in done.report["cells"]) == {"pass": 3, "inconclusive": 2}
    assert {c["reason"] for c in done.report["cells"][3:]} == {"budget: --max-runs 3 was reached before this run"}
    assert "--resume" in done.err
    again = flakestorm(folder, "contract", "run", "--resume", "out/report.json", report=True)
    assert (again.code, up.count("/invoke")) == (0, 5), again.err


def test_a_failure_within_the_budget_stays_one(door) -> None:
    up, folder = door
    up.reply("/invoke", document({"output": "no"}))
    project(up, folder, contract=contract())
    assert flakestorm(folder, "contract", "run", "--max-runs", "1").code == 1
    lenient = {**FINE, "min_pass_rate": 0.5}
    project(up, folder, golden_prompts=["a"], contract=contract(invariants=[lenient], trials=4))
    assert flakestorm(folder, "contract", "run", "--max-runs", "2").code == 3  # two passes more would do


@pytest.mark.parametrize("words", [["chaos"], ["ci"], ["run", "--chaos-only"]])
def test_every_judging_command_has_a_budget(door, words) -> None:
    up, folder = door
    project(up, folder, contract=contract(), invariants=[FINE], chaos={"tool_faults": [{"tool": "x", "mode": "error"}]})
    done = flakestorm(folder, *words, "--max-runs", "2", report=True)
    assert (done.code, up.count("/invoke")) == (3, 2), done.err
    assert "the budget was reached (--max-runs 2)" in done.err


def test_time_and_money_are_budgets_too(tmp_path) -> None:
    with world() as up:
        write_config(
            tmp_path,
            agent=sdk_agent(up),
            golden_prompts=PROMPTS,
            contract=contract(invariants=[{"id": "whole", "type": "completes"}]),
        )
        words = ["contract", "run", "--concurrency", "1"]
        dear = flakestorm(tmp_path, *words, "--max-cost", "0.0000001", report=True)
        assert (dear.code, len(dear.report["runs"])) == (3, 1), dear.err
        assert dear.report["runs"][0]["cost"] > 0
        asked = up.count("/v1/chat/completions")
        long = flakestorm(tmp_path, *words, "--max-tokens", str(dear.report["runs"][0]["tokens"] + 1), report=True)
        assert (long.code, len(long.report["runs"])) == (3, 2), long.err
        quick = flakestorm(tmp_path, *words, "--max-time", "0.000001", report=True)
        assert (quick.code, quick.report["runs"]) == (3, [])
        before = up.count("/v1/chat/completions")
        assert before == 3 * asked
        dry = flakestorm(tmp_path, *words, "--dry-run")
        assert (dry.code, up.count("/v1/chat/completions")) == (0, before)
        assert "5 runs would be made" in dry.out
        assert "US dollars (3 earlier runs)" in dry.out


def test_a_dry_run_spends_nothing_and_admits_what_it_does_not_know(door) -> None:
    up, folder = door
    project(up, folder, contract=contract(trials=3))
    done = flakestorm(folder, "contract", "run", "--dry-run")
    assert (done.code, up.requests) == (0, [])
    assert done.out == (
        "15 runs would be made\n"
        "cost: unknown; no earlier run of this agent is saved whose model calls could be priced\n"
    )
    assert flakestorm(folder, "ci", "--dry-run").out.startswith("contract: 15 runs would be made\n")


@pytest.mark.parametrize(("answer", "code"), [("hello", 0), ("no", 1)])
def test_clear_cells_are_left_early_with_the_same_verdict(door, answer, code) -> None:
    up, folder = door
    up.reply("/invoke", document({"output": answer}))
    project(up, folder, contract=contract(trials=20, invariants=[{**FINE, "min_pass_rate": 0.6}]))
    early = flakestorm(folder, "contract", "run", report=True)
    made = up.count("/invoke")
    assert (early.code, made) == (code, len(early.report["runs"])), early.err
    assert made <= 50
    assert early.report["saved"] == 100 - made
    assert f"{100 - made} of 100 runs were not made" in " ".join(early.report["notes"])
    assert "reliability" not in early.report
    whole = flakestorm(folder, "contract", "run", "--all-trials", report=True)
    assert (whole.code, up.count("/invoke") - made) == (code, 100)
    k = whole.report["reliability"]["pass_k"]
    assert [(each["k"], each["value"]) for each in k] == [(n, float(answer == "hello")) for n in range(1, 11)]
    assert "flake rate" in whole.out


def uneven(up: Upstream) -> None:
    """An agent that is right in every second run, but always with `prompt 0`."""
    count: Counter[str] = Counter()

    def answer(request):
        text = request.json()["input"]
        count[text] += 1
        return document({"output": "hello" if text == PROMPTS[0] or count[text] % 2 else "no"})

    up.reply("/invoke", answer)


@pytest.mark.parametrize(
    "words",
    [("run", "--chaos-only"), ("ci", "--min-score", "0.7"), ("contract", "score"), ("contract", "run")],
    ids=" ".join,
)
def test_a_score_is_of_all_trials_and_not_of_those_that_decide_cells(door, words) -> None:
    """Left early, what fails is run once or twice and what passes twenty times: the score would be far too good."""
    up, folder = door
    uneven(up)
    common: dict[str, Any] = {"invariants": [{**FINE, "severity": "medium"}], "advanced": {"concurrency": 1}}
    if words == ("contract", "run"):
        common["certificate"] = {"pass_threshold": 50}
    asked = {"contract": contract(invariants=common["invariants"])} if words[0] == "contract" else {}
    project(up, folder, **common, **asked, **({} if asked else {"chaos": {}}))
    done = flakestorm(folder, *words, "--trials", "20", report=True)
    assert up.count("/invoke") == 100, done.err
    score = done.report["scores"]["contract" if words[0] == "contract" else "chaos"]
    assert (score["passed"], score["conclusive"]) == (60, 100)
    assert score["value"] == (60 if words[0] == "contract" else 0.6)
    if words[0] == "ci":
        assert (done.code, done.report["saved"]) == (1, 0)
        assert "the overall score 0.6 is below the 0.7 asked for" in done.report["headline"]


def test_equal_runs_that_differ_are_said_once_and_marked(door) -> None:
    up, folder = door
    count = itertools.count()
    up.reply("/invoke", lambda _: document({"output": f"hello {next(count)}"}))
    project(up, folder, contract=contract(trials=2))
    done = flakestorm(folder, "contract", "run", report=True)
    assert done.code == 0
    assert len([note for note in done.report["notes"] if "two equal runs differ" in note]) == 1
    assert all(cell["unsteady"] for cell in done.report["cells"])
    up.reply("/reset", document({}))
    project(
        up,
        folder,
        agent={"endpoint": f"{up.url}/invoke", "reset_endpoint": f"{up.url}/reset"},
        contract=contract(trials=2),
    )
    done = flakestorm(folder, "contract", "run", report=True)
    assert not any("equal runs" in note for note in done.report["notes"])
    assert up.count("/reset") == 10


def test_200_cells_interrupted_anywhere_resume_without_repeating_a_finished_one(door) -> None:
    up, folder = door
    matrix = [{"name": f"s{n}"} for n in range(4)]
    project(up, folder, golden_prompts=[f"prompt {n}" for n in range(50)], contract=contract(chaos_matrix=matrix))
    finished: Counter[tuple[str, int]] = Counter()
    resume: list[str] = []
    for at in (1, 37, 90, 151):
        words = ["contract", "run", "--seed", "1", "--concurrency", "3", "--format", "json", "-o", f"{at}.json"]
        running = subprocess.Popen(
            [FLAKESTORM, *words, *resume], cwd=folder, env=clean_env(), stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda at=at: up.count("/invoke") >= at)
        os.kill(running.pid, signal.SIGINT)
        _, err = running.communicate(timeout=60)
        assert running.returncode == 130, err
        report = json.loads((folder / f"{at}.json").read_text())
        now = {(run["scenario"], run["prompt"]) for run in report["runs"]}
        assert set(finished) <= now
        finished.update(now - set(finished))
        resume = ["--resume", f"{at}.json"]
    before, known = up.count("/invoke"), len(finished)
    assert known < 200
    done = flakestorm(folder, "contract", "run", *resume, "--seed", "1", report=True)
    assert done.code == 0, done.err
    assert len(done.report["cells"]) == len(done.report["runs"]) == 200
    assert up.count("/invoke") == before + 200 - known
    asked = Counter(json.loads(request.body)["input"] for request in up.requests)
    assert sum(asked.values()) <= 200 + 4 * 3  # what was under way when the signal came, and nothing else
