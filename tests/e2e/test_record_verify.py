"""`record` and `verify-tape` as a stranger uses them: what an agent does otherwise is told, and nothing goes out."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from e2e_support import FLAKESTORM, PROGRAMS, Done, clean_env, flakestorm, write_config
from flakestorm.tape.reader import Tape
from upstream import Canned, Request, Upstream, document

AGENT = (sys.executable, str(PROGRAMS / "taped_agent.py"))


class World:
    """A folder with a recorded tape, and what was called for it."""

    def __init__(self, folder: Path, up: Upstream) -> None:
        self.folder, self.up = folder, up
        self.env = {"OPENAI_BASE_URL": f"{up.url}/v1", "SEARCH_URL": f"{up.url}/search"}
        self.tape = folder / "a.tape"

    def run(self, *words: str, **env: str) -> Done:
        return flakestorm(self.folder, *words, env={**self.env, **env})

    def verify(self, *words: str, **env: str) -> Done:
        """`verify-tape`, which must not reach the world."""
        before = len(self.up.requests)
        done = self.run("verify-tape", "a.tape", *words, **env)
        assert len(self.up.requests) == before
        return done


@pytest.fixture
def taped(tmp_path: Path) -> Iterator[World]:
    with Upstream() as up:
        up.reply("/search", document({"flights": 3}))
        world = World(tmp_path, up)
        done = world.run("record", "-o", "a.tape", "--", *AGENT, QUESTION="a flight to Oslo")
        assert (done.code, done.out.strip()) == (0, "Hello from upstream.")
        assert "recorded 3 calls on a.tape" in done.err
        assert len(up.requests) == 3
        yield world


def test_an_agent_that_does_the_same_is_equal(taped: World) -> None:
    done = taped.verify(QUESTION="a flight to Oslo")
    assert (done.code, "equal" in done.out) == (0, True), done.out + done.err


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"QUESTION": "a flight to Bergen"}, "Oslo"),
        ({"QUESTION": "a flight to Bergen", "SWALLOW": "1"}, "diverged"),
        ({"PREFIX": "Well:"}, "the output is another one"),
        ({"PATH_OF": "completions-of-chat"}, "URL"),
        ({"BETA": "assistants=v9"}, "header openai-beta"),
        ({"MODEL": "gpt-4o-mini"}, "model"),
        ({"T": "1"}, "temperature"),
        ({"EXTRA": "1"}, "extra"),
        ({"SEARCHES": "1"}, "was not asked for again"),
        ({"SWAPPED": "1"}, "reordered"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_whatever_the_agent_does_otherwise_is_told(taped: World, variables: dict[str, str], told: str) -> None:
    done = taped.verify(**{"QUESTION": "a flight to Oslo", **variables})
    assert done.code == 1, done.out + done.err
    assert told in done.out


def test_another_command_may_be_verified(taped: World) -> None:
    other = (sys.executable, "-c", "print('Hello from upstream.')")
    assert taped.verify("--", *AGENT, QUESTION="a flight to Oslo").code == 0
    assert taped.verify("--", *other).code == 1


def test_the_result_as_json(taped: World) -> None:
    done = taped.verify("--format", "json", QUESTION="a flight to Oslo", SWAPPED="1")
    said = json.loads(done.out)
    assert (said["format"], said["equal"], said["recorded"]) == ("flakestorm-verify/1", False, 3)
    assert said["requests"]["reordered"] == 1


@pytest.mark.parametrize("how", ["edited", "cut", "short", "longer", "missing"])
def test_a_damaged_tape_is_exit_code_2(taped: World, how: str) -> None:
    lines = taped.tape.read_bytes().splitlines(keepends=True)
    changed = {
        "edited": [lines[0], lines[1].replace(b"Hello", b"Hullo"), *lines[2:]],
        "cut": lines[:-1],
        "short": [*lines[:-2], lines[-2][:100]],
        "longer": [*lines, lines[-2]],
        "missing": [*lines[:2], *lines[3:]],
    }[how]
    taped.tape.write_bytes(b"".join(changed))
    done = taped.verify(QUESTION="a flight to Oslo")
    assert (done.code, "a.tape" in done.err) == (2, True), done.out + done.err


def test_an_empty_tape_verifies_nothing(tmp_path: Path) -> None:
    done = flakestorm(tmp_path, "record", "-o", "e.tape", "--", sys.executable, "-c", "print('hi')")
    assert (done.code, done.out) == (0, "hi\n")
    done = flakestorm(tmp_path, "verify-tape", "e.tape")
    assert (done.code, "nothing to verify" in done.out) == (3, True)


def test_streams_and_exit_code_pass_through_and_stdin_is_replayed(taped: World) -> None:
    folder, env = taped.folder, clean_env(taped.env)
    words = [str(FLAKESTORM), "-q", "record", "-o", "s.tape", "--", *AGENT]
    done = subprocess.run(words, cwd=folder, env=env, input="to Rome", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "Hello from upstream.", "")
    tape = Tape.open(folder / "s.tape")
    assert tape.footer is not None
    assert (tape.footer.stdin, tape.input) == (b"to Rome", None)
    assert taped.run("verify-tape", "s.tape").code == 0
    script = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read() + bytes(range(256))); sys.exit(7)"
    words = [str(FLAKESTORM), "record", "-o", "b.tape", "--", sys.executable, "-c", script]
    raw = subprocess.run(words, cwd=folder, env=env, input=b"\0in", capture_output=True, check=False)
    assert (raw.returncode, raw.stdout) == (7, b"\0in" + bytes(range(256)))


def test_the_configured_agent_is_recorded_and_verified(taped: World) -> None:
    write_config(
        taped.folder,
        agent={"type": "command", "start": [*AGENT], "endpoint": "unused"},
        boundary={"tools": {"search": "*/search"}},
        invariants=[{"type": "completes"}],
    )
    done = taped.run("record", "--input", "to Rome", "-o", "c.tape")
    assert (done.code, done.out.strip()) == (0, "Hello from upstream."), done.err
    tape = Tape.open(taped.folder / "c.tape")
    assert tape.input == "to Rome"
    assert [str(e.site) for e in tape.exchanges()] == ["llm/gpt-4o#1", "tool/search#1", "tool/search#2"]
    before = len(taped.up.requests)
    assert taped.run("verify-tape", "c.tape").code == 0
    done = taped.run("verify-tape", "c.tape", PREFIX="Well:")
    assert (done.code, "the output is another one" in done.out) == (1, True)
    assert len(taped.up.requests) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["record"], "say what to record"),
        (["record", "--input", "x", "--", "ls"], "say what to record"),
        (["record", "--", "no-such-program"], "no program 'no-such-program'"),
        (["record", "-o", "no\0file", "--", "ls"], ""),
        (["record", "-c", "none.yaml", "--", "ls"], "none.yaml"),
        (["verify-tape", "none.tape"], "none.tape"),
        (["verify-tape"], "TAPE"),
        (["verify-tape", "x.tape", "--wrong"], "--wrong"),
    ],
    ids=lambda value: "_".join(value).replace("\0", "0") if isinstance(value, list) else "",
)
def test_misuse_is_exit_code_2(tmp_path: Path, words: list[str], told: str) -> None:
    if any("\0" in word for word in words):
        (tmp_path / "file").write_text("")
        words = ["record", "-o", "file/a.tape", "--", "ls"]
    done = flakestorm(tmp_path, *words)
    assert (done.code, told in done.err) == (2, True), done.err


def test_eight_workers_on_one_connection_pool_are_equal_every_time(tmp_path: Path) -> None:
    numbers, lock = itertools.count(), threading.Lock()

    def answer(_: Request) -> Canned:
        with lock:
            return document({"n": next(numbers)})

    with Upstream() as up:
        up.reply("/search", answer)
        env = {"SEARCH_URL": f"{up.url}/search"}
        program = (sys.executable, str(PROGRAMS / "eight_threads.py"))
        assert flakestorm(tmp_path, "record", "-o", "a.tape", "--", *program, env=env).code == 0
        for _ in range(3):
            done = flakestorm(tmp_path, "verify-tape", "a.tape", env=env)
            assert done.code == 0, done.out
        assert up.count() == 32


def test_what_the_guide_shows_is_done(taped: World, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "record-and-replay.md").read_text()
    (taped.folder / "agent.py").write_text((PROGRAMS / "taped_agent.py").read_text())
    (console,) = re.findall(r"```console\n(.*?)```", guide, re.DOTALL)
    for line in console.splitlines():
        words = shlex.split(line.removeprefix("$ flakestorm "))
        done = taped.run(*words)
        assert done.code == 0, done.out + done.err
    monkeypatch.chdir(taped.folder)
    (python,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)

    def book(text: str) -> str:
        return str(httpx.post(f"{taped.up.url}/search", json={"to": text}).json())

    before = taped.up.count()
    exec(python, {"book": book})
    assert taped.up.count() == before + 1


def test_an_interrupted_recording_is_a_readable_tape(tmp_path: Path) -> None:
    ready = "import os, signal, sys, time; print('ready', flush=True); time.sleep(60)"
    words = [str(FLAKESTORM), "record", "-o", "i.tape", "--", sys.executable, "-c", ready]
    process = subprocess.Popen(words, cwd=tmp_path, env=clean_env(), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.stdout.close()
    footer = Tape.open(tmp_path / "i.tape").footer
    assert footer is not None
    assert footer.error is not None
