"""`flakestorm demo`, whole: a real agent process, its real calls broken, its promises judged."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from flakestorm.reports.document import read_json
from flakestorm.tape.reader import Tape

ROOT = Path(__file__).resolve().parents[2]


def test_one_promise_is_kept_under_chaos_and_one_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "demo.json"
    command = [sys.executable, "-m", "flakestorm", "demo", "--quiet", "--format", "json", "-o", str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    report = read_json(path)
    told = {(c.scenario, c.invariant): Counter[str]() for c in report.cells}
    for cell in report.cells:
        told[cell.scenario, cell.invariant][cell.verdict] += 1

    assert report.verdict == "fail"
    assert told["search-down", "no-false-booking"] == {"pass": 3}
    assert told["booking-times-out", "no-false-booking"] == {"fail": 2, "inconclusive": 1}
    assert {key for key, verdicts in told.items() if verdicts["fail"]} == {("booking-times-out", "no-false-booking")}
    assert {key[0] for key, verdicts in told.items() if verdicts["inconclusive"]} == {"booking-times-out"}

    fired = {run.scenario: [f"{f.site} {f.mode}" for f in run.fired] for run in report.runs if run.prompt == 0}
    assert fired["no-chaos"] == []
    assert fired["search-down"] == ["tool/search_flights#1 error"]
    assert fired["booking-times-out"] == ["tool/book_flight#1 timeout"]
    assert fired["model-rate-limited"] == ["llm/gpt-4o-mini#1 rate_limit"]
    assert fired["model-cut-short"] == [f"llm/gpt-4o-mini#{n} truncated_response" for n in (1, 2)]
    assert all(Path(run.tape).is_file() for run in report.runs)

    picture = [sys.executable, str(ROOT / "scripts" / "picture.py"), "--check", "--from", str(path)]
    done = subprocess.run(picture, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr  # the README's picture is of such a run


@pytest.mark.parametrize(("words", "code", "said"), [((), 1, "is booked"), (("--fixed",), 0, "I could not book it")])
def test_its_incident_fails_until_the_agent_is_fixed(
    tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    path = tmp_path / "demo.json"
    command = [
        sys.executable,
        "-m",
        "flakestorm",
        "demo",
        "--replay",
        *words,
        "-q",
        "--format",
        "json",
        "-o",
        str(path),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    report = read_json(path)
    (run,) = report.runs
    assert said in run.output
    assert run.latency_ms > 5000, "the recorded time-out is part of the run's own time"
    assert report.scores["replay"].passed == (code == 0)
    tools = [x for x in Tape.open(run.tape).exchanges() if x.kind == "tool"]
    assert [(x.name, x.sent) for x in tools] == [("search_flights", 0), ("book_flight", 0)], (
        "the live tools were not asked"
    )
