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


def kept(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted((folder / ".flakestorm" / "tapes").glob("*-a.tape"))]


def test_a_recording_that_is_recorded_over_is_kept(tmp_path, up: Upstream) -> None:
    write_config(tmp_path, agent={"type": "command", "start": "cat"})
    before = []
    for words in (("--", sys.executable, "-c", CALLS, f"{up.url}/x"), ("--input", "hi")):
        assert record(tmp_path, up) == 0
        before.append((tmp_path / "a.tape").read_bytes())
        done = flakestorm(tmp_path, "record", "-o", "a.tape", *words)
        assert done.code == 0
        assert "what a.tape held is kept as .flakestorm/tapes/" in done.err
        assert (tmp_path / "a.tape").read_bytes() != before[-1]
    assert set(before) <= set(kept(tmp_path))
    assert flakestorm(tmp_path, "verify-tape", next((tmp_path / ".flakestorm" / "tapes").glob("*-a.tape"))).code == 0


def test_where_no_copy_can_be_kept_nothing_is_run(tmp_path, up: Upstream) -> None:
    assert record(tmp_path, up) == 0
    before = (tmp_path / "a.tape").read_bytes()
    (tmp_path / ".flakestorm").write_text("no folder")
    done = flakestorm(tmp_path, "record", "-o", "a.tape", "--", sys.executable, "-c", CALLS, f"{up.url}/x")
    assert (done.code, "no copy of it could be kept" in done.err) == (2, True)
    assert (tmp_path / "a.tape").read_bytes() == before
    assert up.count("/x") == 1


def test_what_holds_nothing_is_no_recording(tmp_path, up: Upstream) -> None:
    (tmp_path / "made.tape").touch()  # as mktemp does
    assert record(tmp_path, up, to="made.tape") == 0
    assert (tmp_path / "made.tape").stat().st_size
    assert not (tmp_path / ".flakestorm").exists()


def test_the_gateway_keeps_one_too(tmp_path, up: Upstream) -> None:
    assert record(tmp_path, up) == 0
    before = (tmp_path / "a.tape").read_bytes()
    words = [str(FLAKESTORM), "gateway", "-o", "a.tape"]
    with subprocess.Popen(words, cwd=tmp_path, env=clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as gate:
        assert gate.stdout is not None
        assert b"OPENAI_BASE_URL=" in gate.stdout.read()
        os.kill(gate.pid, signal.SIGTERM)
        assert gate.wait(60) == 0
    assert (tmp_path / "a.tape").read_bytes() != before
    assert kept(tmp_path) == [before]


def test_a_fork_keeps_recordings_and_replaces_forks(tmp_path, up: Upstream) -> None:
    assert record(tmp_path, up) == record(tmp_path, up, to="b-a.tape") == 0
    shown = json.loads(flakestorm(tmp_path, "tapes", "show", "a.tape", "--format", "json").out)
    words = ("fork", "a.tape", "--at", shown["exchanges"][0]["site"], "--resample", "-o")
    assert "a.tape is the tape that is forked" in flakestorm(tmp_path, *words, "a.tape").err
    before = (tmp_path / "b-a.tape").read_bytes()
    assert [flakestorm(tmp_path, *words, "b-a.tape").code for _ in range(2)] == [0, 0]
    assert kept(tmp_path) == [before]


@pytest.mark.parametrize("words", [(), ("-o", "a.tape")], ids=["in the store", "over another"])
def test_git_does_not_offer_what_is_kept_in_the_store(tmp_path, up: Upstream, words) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=clean_env())
    for _ in range(2):
        assert flakestorm(tmp_path, "record", *words, "--", sys.executable, "-c", CALLS, f"{up.url}/x").code == 0
    assert list((tmp_path / ".flakestorm" / "tapes").glob("*.tape"))
    listed = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--short", "--untracked-files=all"],
        check=True, env=clean_env(), capture_output=True, text=True,
    )  # fmt: skip
    assert ".flakestorm" not in listed.stdout
