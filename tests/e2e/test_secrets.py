"""Planted secrets are on no tape, in no report and not in the store, through the real command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from e2e_support import PROGRAMS, clean_env, flakestorm, write_config
from flakestorm.tape.files import lines_of
from flakestorm.tape.reader import Tape
from leaking_support import PLANTED, SECRETS, spread
from upstream import Upstream


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    with Upstream() as up:
        spread(up)
        env = {"TOOL_URL": up.url, "PLANTED": json.dumps(PLANTED), "AGENT_PASSWORD": "planted-agent-0014"}
        write_config(
            tmp_path,
            agent={"type": "command", "start": [sys.executable, str(PROGRAMS / "leaky_agent.py")], "env": env},
            boundary={"redact": ["CUST-[0-9]+"]},
            invariants=[
                {"id": "leaks", "type": "contains", "value": PLANTED["late"], "severity": "low"},
                {"id": "kept", "type": "excludes_pattern", "patterns": ["planted-agent-[0-9]+"], "severity": "low"},
            ],
            contract={
                "name": "c",
                "invariants": [
                    {"id": "leaks", "type": "contains", "value": PLANTED["late"], "severity": "low"},
                    {"id": "kept", "type": "excludes_pattern", "patterns": ["planted-agent-[0-9]+"], "severity": "low"},
                ],
                "chaos_matrix": [{"name": "calm"}],
            },
        )
        for form in ("json", "html", "junit", "markdown"):
            done = flakestorm(
                tmp_path,
                *("contract", "run", "--format", form, "-o", f"out/report.{form}"),
                env={"CALLER_TOKEN": "planted-caller-0015"},
            )
            assert done.code in (0, 1), done.err
    return tmp_path


def test_planted_secrets_are_found_nowhere(ended: Path) -> None:
    assert len(set(SECRETS)) >= 30
    spelled = {spelled for secret in SECRETS for spelled in (secret, json.dumps(secret)[1:-1])}
    kept = [path for path in ended.rglob("*") if path.is_file() and path.name != "flakestorm.yaml"]
    assert {".tape", ".json", ".html", ".junit", ".markdown", ".sqlite3"} <= {path.suffix for path in kept}
    for path in kept:
        data = path.read_bytes()
        shown = json.dumps([str(each) for each in Tape.open(path)]) if path.suffix == ".tape" else ""
        found = [each for each in spelled if each.encode() in data or each in shown]
        assert found == [], path


def test_what_the_agent_really_said_was_judged(ended: Path) -> None:
    report = json.loads((ended / "out" / "report.json").read_text())
    verdicts = {cell["invariant"]: cell["verdict"] for cell in report["cells"]}
    assert verdicts == {"leaks": "pass", "kept": "fail"}
    [run] = report["runs"][:1]
    assert run["output"].count("[secret:") >= 5
    tape = Tape.open(ended / "out" / run["tape"])
    tape.verify()
    late = tape.redactor(known=()).placeholder(b"planted-late-0011")
    early = next(exchange for exchange in tape.exchanges() if exchange.url.endswith("/early"))
    assert early.body == b"before it is known: " + late


RECORDING = """
import json, os, random, signal, sys, time
from dataclasses import replace
from pathlib import Path
from faults_support import JSON, RESULTS, tool_call
from flakestorm.core.call import Reply
from tape_support import Run

def record(path, told, calls=100_000):
    run = Run(path)
    for n in range(1, calls):
        run.ask(replace(tool_call(n=n), body=b"x" * 2000 + b"%d" % n), lambda _: Reply(200, JSON, RESULTS))
        os.write(told, b"%d " % n)

record(Path(sys.argv[1]) / f"warm.{sys.argv[2]}", os.open(os.devnull, os.O_WRONLY), 3)  # what is imported late
dice = random.Random(sys.argv[2])
for kill in range(100):
    path = Path(sys.argv[1]) / f"{kill}.{sys.argv[2]}"
    hears, told = os.pipe()
    child = os.fork()
    if not child:
        record(path, told)
    os.close(told)
    data, least = b"", dice.randrange(60)
    while data.count(b" ") < least:
        data += os.read(hears, 1 << 16)
    until = time.perf_counter() + dice.random() / 500
    while not path.exists() or time.perf_counter() < until:
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while rest := os.read(hears, 1 << 16):
        data += rest
    os.close(hears)
    print(json.dumps([str(path), max(map(int, data.split(b" ")[:-1]), default=0)]), flush=True)
"""


@pytest.mark.parametrize("name", ["tape", "tape.zst"])
def test_a_kill_at_any_moment_loses_at_most_the_exchange_in_flight(tmp_path: Path, name: str) -> None:
    support = str(Path(__file__).parent.parent / "support")
    env = clean_env({"PYTHONPATH": ":".join([*sys.path[1:], support])})
    done = subprocess.run(
        [sys.executable, "-c", RECORDING, str(tmp_path), name], env=env, capture_output=True, text=True, check=True
    )
    killed = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(killed) == 100
    for file, told in killed:
        path = Path(file)
        whole = [line for line in lines_of(path, 1 << 20) if line.endswith(b"\n")]
        assert told <= max(len(whole) - 1, 0) <= told + 1
        if whole:
            path.write_bytes(b"".join(whole))  # the line in flight may be there in part
            assert len(Tape.open(path).exchanges()) == len(whole) - 1
