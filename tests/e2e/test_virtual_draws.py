"""What a recorded agent drew is drawn again when its tape is replayed, so its requests are equal to the letter."""

from __future__ import annotations

import datetime
import json
import os
import sys
import uuid
from pathlib import Path

import httpx

import flakestorm as library
from e2e_support import PROGRAMS, Done, flakestorm
from upstream import Upstream

PROGRAM = str(PROGRAMS / "drawing_agent.py")


def run(folder: Path, up: Upstream, *words: str) -> Done:
    return flakestorm(folder, *words, env={"TOOL_URL": f"{up.url}/tool"})


def test_a_recorded_program_makes_the_same_requests_again(tmp_path: Path, up: Upstream) -> None:
    recorded = run(tmp_path, up, "record", "-o", "a.tape", "--", sys.executable, PROGRAM, "set")
    assert recorded.code == 0, recorded.err
    verified = run(tmp_path, up, "verify-tape", "a.tape", "--format", "json")
    assert verified.code == 0, verified.out + verified.err
    found = json.loads(verified.out)
    assert found["requests"] == {"exact": 4}
    assert found["digest"]["tape"] == found["digest"]["replay"]
    assert up.count() == 4


def test_two_recordings_draw_differently(tmp_path: Path, up: Upstream) -> None:
    first, second = (run(tmp_path, up, "record", "--", sys.executable, PROGRAM).out for _ in range(2))
    assert first.split()[0] != second.split()[0]


def test_a_recorded_function_draws_the_same_again(tmp_path: Path, up: Upstream) -> None:
    def agent() -> str:
        said = {"id": str(uuid.uuid4()), "at": datetime.datetime.now().isoformat(), "key": os.urandom(4).hex()}
        with httpx.Client(trust_env=False) as client:
            client.post(f"{up.url}/tool", json=said)
            said["later"] = datetime.datetime.now().isoformat()
            client.post(f"{up.url}/tool", json=said)
        return json.dumps(said)

    with library.record(tmp_path / "b.tape") as tape:
        tape.output = agent()
    assert library.replay(tmp_path / "b.tape", agent) == tape.output
    assert agent() != tape.output
