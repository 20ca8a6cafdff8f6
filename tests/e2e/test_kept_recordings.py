"""What was recorded happened once: no command overwrites a recording that nobody asked it to."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e_support import FLAKESTORM, clean_env, flakestorm, write_config
from upstream import Upstream, document

CALLS = "import urllib.request as u, sys; print(u.urlopen(sys.argv[1]).read().decode())"


@pytest.fixture
def up():
    with Upstream() as up:
        up.reply("/x", document({"n": 1}))
        yield up


def record(folder: Path, up: Upstream, *more: str, to: str = "a.tape") -> int:
    return flakestorm(folder, "record", "-o", to, *more, "--", sys.executable, "-c", CALLS, f"{up.url}/x").code


def test_a_recording_is_kept_and_nothing_is_run(tmp_path, up: Upstream) -> None:
    write_config(tmp_path, agent={"type": "command", "start": "cat"})
    assert record(tmp_path, up) == 0
    before = (tmp_path / "a.tape").read_bytes()
    words = ("record", "-o", "a.tape", "--", sys.executable, "-c", CALLS, f"{up.url}/x")
    for args in (words, ("record", "-o", "a.tape", "--input", "hi")):
        done = flakestorm(tmp_path, *args)
        assert done.code == 2
        assert done.err == (
            "error: a.tape exists already, and it would be lost; name another file with -o, or overwrite it with "
            "--force\n"
        )
    assert (tmp_path / "a.tape").read_bytes() == before
    assert up.count("/x") == 1


def test_force_records_anew(tmp_path, up: Upstream) -> None:
    assert record(tmp_path, up) == 0
    before = (tmp_path / "a.tape").read_bytes()
    assert record(tmp_path, up, "--force") == 0
    assert (tmp_path / "a.tape").read_bytes() != before
    assert flakestorm(tmp_path, "verify-tape", "a.tape").code == 0


def test_what_holds_nothing_is_no_recording(tmp_path, up: Upstream) -> None:
    (tmp_path / "made.tape").touch()  # as mktemp does
    assert record(tmp_path, up, to="made.tape") == 0
    assert (tmp_path / "made.tape").stat().st_size


def test_the_gateway_keeps_one_too(tmp_path, up: Upstream) -> None:
    assert record(tmp_path, up) == 0
    before = (tmp_path / "a.tape").read_bytes()
    done = flakestorm(tmp_path, "gateway", "-o", "a.tape")
    assert (done.code, "a.tape exists already" in done.err) == (2, True)
    assert (tmp_path / "a.tape").read_bytes() == before
    words = [str(FLAKESTORM), "gateway", "-o", "a.tape", "--force"]
    with subprocess.Popen(words, cwd=tmp_path, env=clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as gate:
        assert gate.stdout is not None
        assert b"OPENAI_BASE_URL=" in gate.stdout.read()
        os.kill(gate.pid, signal.SIGTERM)
        assert gate.wait(60) == 0
    assert (tmp_path / "a.tape").read_bytes() != before


def test_a_fork_replaces_a_fork_and_no_recording(tmp_path, up: Upstream) -> None:
    assert record(tmp_path, up) == record(tmp_path, up, to="b.tape") == 0
    shown = json.loads(flakestorm(tmp_path, "tapes", "show", "a.tape", "--format", "json").out)
    words = ("fork", "a.tape", "--at", shown["exchanges"][0]["site"], "--resample", "-o")
    kept = (tmp_path / "b.tape").read_bytes()
    assert "b.tape exists already" in flakestorm(tmp_path, *words, "b.tape").err
    assert "a.tape is the tape that is forked" in flakestorm(tmp_path, *words, "a.tape", "--force").err
    assert "a.tape is the tape that is forked" in flakestorm(tmp_path, *words, "a.tape").err
    (tmp_path / "notes.txt").write_text("mine")
    assert "notes.txt exists already" in flakestorm(tmp_path, *words, "notes.txt").err
    assert [flakestorm(tmp_path, *words, "c.tape").code for _ in range(2)] == [0, 0]
    assert (tmp_path / "b.tape").read_bytes() == kept
    assert flakestorm(tmp_path, *words, "b.tape", "--force").code == 0
    assert (tmp_path / "b.tape").read_bytes() != kept
