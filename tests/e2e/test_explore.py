"""Searching and shrinking through the real command line: what is found, and that every printed line shows it again."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from threading import Event

import yaml

from corpus_support import CORPUS, corpus_world, found, manifest, project
from e2e_support import FLAKESTORM, clean_env, flakestorm, wait_until
from schema_support import held_to
from upstream import Canned, Request, document

ENV = {"PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(CORPUS)]).strip(os.pathsep)}
ENTRIES = {entry.name: entry for entry in manifest()}


def test_from_a_search_to_the_smallest_line_and_a_session(tmp_path: Path) -> None:
    entry = ENTRIES["both_down"]
    with corpus_world() as up:
        project(tmp_path, entry, up)
        done = flakestorm(tmp_path, "explore", "--modes", "error", "--budget", "40", env=ENV, report=True)
        assert (done.code, done.report is not None) == (1, True), done.err
        assert done.report is not None
        assert found(done.report) == list(entry.planted)
        (finding,) = done.report["findings"]
        assert {run["id"] for run in done.report["runs"]} >= {finding["run"]}
        assert done.report["coverage"]["singles"] == 2
        again = flakestorm(tmp_path, *shlex.split(finding["reproduce"])[1:], env=ENV, report=True)
        assert again.code == 1
        case = tmp_path / "report.json"
        case.write_text(json.dumps({**done.report, "runs": [{**run, "tape": ""} for run in done.report["runs"]]}))
        small = flakestorm(tmp_path, "shrink", f"report.json#{finding['run']}", "-o", "case.yaml", env=ENV)
        assert small.code == 1, small.err
        line = shlex.split(small.out.splitlines()[-1])
        assert frozenset(line[at + 1] for at, word in enumerate(line) if word == "--inject") == entry.planted[0]
        assert flakestorm(tmp_path, *line[1:], env=ENV).code == 1
        session = yaml.safe_load((tmp_path / "case.yaml").read_text())
        assert [reply["status"] for reply in session["tool_responses"]] == [503, 503]
        again = flakestorm(tmp_path, "shrink", "case.yaml", "--format", "json", env=ENV)
        held_to("report", told := json.loads(again.out))
        faults = {f"{each['site']}={each['fault']}" for each in told["findings"][0]["schedule"]}
        assert (again.code, told["command"], faults) == (1, "shrink", entry.planted[0])


def test_a_fault_that_lasts_is_told_in_one_line_that_shows_it(tmp_path: Path) -> None:
    entry = ENTRIES["loops_on_429"]
    with corpus_world() as up:
        project(tmp_path, entry, up)
        done = flakestorm(tmp_path, "explore", "--modes", "rate_limit", env=ENV, report=True)
        assert done.report is not None, done.err
        (finding,) = done.report["findings"]
        assert finding["schedule"] == [{"site": "llm/gpt-4o", "mode": "rate_limit", "fault": "rate_limit"}]
        assert flakestorm(tmp_path, *shlex.split(finding["reproduce"])[1:], env=ENV).code == 1


def test_an_interrupted_search_keeps_what_it_knows_and_goes_on(tmp_path: Path) -> None:
    entry = ENTRIES["wrong_fallback"]
    with corpus_world() as up:
        project(tmp_path, entry, up, which="twin")
        words = ["explore", "--modes", "error,empty,timeout", "--format", "json", "-o", "part.json"]
        running = subprocess.Popen(
            [FLAKESTORM, *words], cwd=tmp_path, env=clean_env(ENV), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        wait_until(lambda: up.count() > 6 or running.poll() is not None)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
        assert running.returncode == 130, said.decode()
        assert b"--resume part.json" in said or b"part.json" in said
        part = json.loads((tmp_path / "part.json").read_text())
        assert part["interrupted"]
        assert part["runs"]
        whole = flakestorm(tmp_path, "explore", "--modes", "error,empty,timeout", "--resume", "part.json", env=ENV)
        assert whole.code == 0, whole.err
        assert "2 of these faults" in whole.out or "at most two" in whole.out


def test_an_interrupted_shrink_keeps_what_it_knows_and_goes_on(tmp_path: Path) -> None:
    entry, stuck = ENTRIES["no_average"], Event()

    def answer(request: Request) -> Canned:
        if up.count("/south") > 2 * once:
            stuck.wait(30)
        return document({"price": 130})

    with corpus_world() as up:
        project(tmp_path, entry, up)
        planted = [
            word for line in sorted(entry.planted[0]) for word in ("--inject", line.replace("error", "malformed"))
        ]
        assert flakestorm(tmp_path, "run", *planted, "--format", "json", "-o", "report.json", env=ENV).code == 1
        once = up.count("/south")
        up.reply("/south", answer)
        running = subprocess.Popen(
            [FLAKESTORM, "shrink", "report.json", "-o", "case.yaml"],
            cwd=tmp_path, env=clean_env(ENV), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        wait_until(lambda: up.count("/south") > 2 * once or running.poll() is not None)
        running.send_signal(signal.SIGINT)
        out, said = running.communicate(timeout=60)
        stuck.set()
        assert running.returncode == 130, said.decode()
        assert out.decode().splitlines()[-1].startswith("flakestorm run")
        resume = next(line for line in said.decode().splitlines() if "To resume: " in line).partition("To resume: ")[2]
        whole = flakestorm(tmp_path, *shlex.split(resume)[1:], env=ENV)
        assert whole.code == 1, whole.err
        line = shlex.split(whole.out.splitlines()[-1])
        assert frozenset(line[at + 1] for at, word in enumerate(line) if word == "--inject") == entry.planted[0]


def test_what_the_guide_shows_can_be_typed(tmp_path: Path) -> None:
    guide = (CORPUS.parents[2] / "docs" / "how-to" / "find-the-weakest-point.md").read_text()
    lines = [line[2:] for line in guide.splitlines() if line.startswith("$ flakestorm explore")]
    assert len(lines) == 3
    with corpus_world() as up:
        project(tmp_path, ENTRIES["makes_up_a_price"], up)
        for line in lines:
            assert flakestorm(tmp_path, *shlex.split(line)[1:], env=ENV).code == 1
