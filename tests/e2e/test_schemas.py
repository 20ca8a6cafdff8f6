"""What the commands write is what docs/reference says, key by key."""

import json
import os
import sys
from pathlib import Path

import pytest

from corpus_support import CORPUS, corpus_world, manifest, project
from e2e_support import Done, flakestorm, sdk_agent, world, write_config
from schema_support import held_to

WHOLE = {"id": "whole", "type": "completes"}
LISTED = [{"name": "calm"}, {"name": "down", "tool_faults": [{"match_url": "*/search*", "mode": "error"}]}]
SESSION = {
    "id": "s",
    "input": "a flight to Oslo",
    "contract": "c",
    "tool_responses": [{"tool": "search", "response": {}}],
}


def judged(done: Done, *keys: str) -> dict:
    assert done.report is not None, done.err
    held_to("report", done.report)
    assert set(keys) <= done.report.keys()
    return done.report


@pytest.fixture
def place(tmp_path: Path):
    with world() as up:
        write_config(
            tmp_path,
            agent=sdk_agent(up),
            boundary={"tools": {"search": "*/search*"}},
            invariants=[WHOLE],
            contract={"name": "c", "invariants": [WHOLE, {"type": "canary_absent"}], "chaos_matrix": LISTED},
            chaos={"context_attacks": [{"type": "indirect_injection"}]},
            replays={"sessions": [SESSION]},
            mutations={"count": 2, "types": ["noise", "http_header_injection"]},
        )
        yield tmp_path


def test_the_contract_with_trials_and_without_a_run(place) -> None:
    report = judged(flakestorm(place, "contract", "run", "--trials", "2", report=True), "reliability")
    assert {run["calls"]["llm"] for run in report["runs"]} <= {1, 2}
    dry = flakestorm(place, "contract", "run", "--dry-run", "--format", "json")
    assert dry.code == 0
    stopped = judged(flakestorm(place, "contract", "run", "--max-runs", "1", report=True))
    assert stopped["stopped"] == "--max-runs 1"
    tape = flakestorm(place, "tapes", "show", str(place / "out" / stopped["runs"][0]["tape"]), "--format", "json")
    held_to("tape", json.loads(tape.out))


def test_mutations_and_chaos(place) -> None:
    report = judged(flakestorm(place, "run", report=True))
    assert all(run["mutation"]["status"] == "sent" for run in report["runs"])
    attacked = judged(flakestorm(place, "chaos", report=True))
    assert any(run["canaries"] for run in attacked["runs"])
    judged(flakestorm(place, "run", "--prompt", "0", "--inject", "tool/search#1=error:503", report=True))


def test_sessions_and_the_whole(place) -> None:
    judged(flakestorm(place, "replay", "run", report=True))
    phases = judged(flakestorm(place, "ci", report=True), "phases")["phases"]
    assert {phase["name"] for phase in phases} == {"mutation", "chaos", "contract", "replay"}
    for tape in place.glob("out/**/*.tape"):
        shown = flakestorm(place, "tapes", "show", str(tape), "--format", "json")
        held_to("tape", json.loads(shown.out))
        break


def test_a_search(tmp_path) -> None:
    entry = next(each for each in manifest() if each.name == "both_down")
    env = {"PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(CORPUS)]).strip(os.pathsep)}
    with corpus_world() as up:
        project(tmp_path, entry, up)
        done = flakestorm(tmp_path, "explore", "--modes", "error", "--budget", "40", env=env, report=True)
    assert judged(done, "findings", "coverage")["findings"]


def test_scan_and_doctor(tmp_path) -> None:
    (tmp_path / "mail.jsonl").write_text(json.dumps({"text": "write to ann@example.com"}) + "\n")
    held_to("scan", json.loads(flakestorm(tmp_path, "scan", "mail.jsonl", "--format", "json").out))
    (tmp_path / "random_agent.py").write_text("import os\nprint(os.getpid())\n")
    done = flakestorm(tmp_path, "doctor", "--format", "json", "--", "python3", "random_agent.py")
    document = json.loads(done.out)
    held_to("doctor", document)
    assert document["divergences"]


TALKS = """import json, os, sys, urllib.request
def ask(path, **body):
    request = urllib.request.Request(os.environ["UP"] + path, json.dumps(body).encode())
    request.add_header("content-type", "application/json")
    return urllib.request.urlopen(request).read().decode()
print(ask("/search", to=sys.argv[1]), *[ask("/search") for _ in range(int(sys.argv[2]))])
"""


def test_a_diff(tmp_path) -> None:
    (tmp_path / "talks.py").write_text(TALKS)
    with world() as up:
        for name, *words in (("a", "Oslo", "1"), ("b", "Rome", "0"), ("c", "Oslo", "2")):
            command = ("record", "-o", f"{name}.tape", "--", sys.executable, "talks.py", *words)
            assert flakestorm(tmp_path, *command, env={"UP": up.url}).code == 0
    outcomes = set()
    for one, other in ("aa", "ab", "ac"):
        done = flakestorm(tmp_path, "diff", f"{one}.tape", f"{other}.tape", "--format", "json")
        document = json.loads(done.out)
        held_to("diff", document)
        assert done.code == (one != other) != document["equal"]
        outcomes |= {step["outcome"] for step in document["steps"]}
    assert outcomes == {"same", "changed", "missing", "added"}
