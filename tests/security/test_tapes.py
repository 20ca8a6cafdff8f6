"""Tapes from strangers that name something to run: a marker file shows whether it ran."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

import flakestorm as library
from e2e_support import FLAKESTORM, clean_env, flakestorm, write_config
from faults_support import JSON, RESULTS, tool_call
from flakestorm.core.call import Call, Reply
from flakestorm.core.site import Site
from flakestorm.errors import Misuse
from flakestorm.tape.lines import START, seal
from flakestorm.tape.origin import made_here
from flakestorm.tape.reader import Tape
from tape_support import Run
from unit_cli import run

RULES = [{"id": "ends", "type": "completes", "severity": "high"}]
CALLING = """
import contextlib, urllib.request
with contextlib.suppress(OSError):
    urllib.request.urlopen("http://127.0.0.1:9/x")
"""
FAILED = "the command exited with code 1"
COMMANDS = {
    "verify-tape": ("verify-tape", "a.tape"),
    "fork": ("fork", "a.tape", "--at", "tool/search#1", "--resample", "-o", "b.tape"),
    "blame": ("blame", "a.tape", "--budget", "10"),
}
"""Each command that runs what a tape names."""


def touching(marker: str) -> list[str]:
    """A command that leaves a mark where it ran."""
    return [sys.executable, "-S", "-c", f"open({marker!r}, 'w')"]


def tape_of(path: Path, command: Mapping[str, Any], user: str = "a stranger", *, url: str = "") -> Path:
    """A tape that a user of that name has made and sealed: one call, of a tool or to this URL, and then it failed."""
    call = tool_call()
    if url:
        call = Call("GET", url, kind="http", name="127.0.0.1", site=Site("http", "127.0.0.1", 1))
    before = os.environ["XDG_STATE_HOME"]
    os.environ["XDG_STATE_HOME"] = str(path.parent / user)
    try:
        made = Run(path, header={"command": dict(command)})
        made.ask(call, lambda _: Reply(200, JSON, RESULTS))
        made.recorder.close(error=FAILED)
    finally:
        os.environ["XDG_STATE_HOME"] = before
    tape = Tape.open(path)
    assert tape.footer is not None
    assert tape.footer.origin is not None
    return path


def edited(path: Path, **header: Any) -> None:
    """The tape with another header, each line chained anew, its seal left as it was."""
    contents = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    contents[0].update(header)
    chain, lines = START, []
    for content in contents:
        del content["chain"]
        line, chain = seal(content, chain)
        lines.append(line)
    path.write_bytes(b"".join(lines))


def mine(folder: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(folder / "me")}


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """The command line in this process, in a folder and for a user of its own: its exit code, and what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "me"))

    def command(*words: str) -> tuple[int, str]:
        code = run(*words)
        said = capfd.readouterr()
        return code, said.out + said.err

    return command


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_stranger_s_tape_names_is_not_run_unasked(tmp_path: Path, command: str) -> None:
    tape_of(tmp_path / "a.tape", {"argv": touching("marker"), "cwd": str(tmp_path)})
    done = flakestorm(tmp_path, *COMMANDS[command], env=mine(tmp_path))
    assert (done.code, (tmp_path / "marker").exists()) == (2, False), done.out + done.err
    assert "it carries a seal, and there is no key here to check it with" in done.err
    assert f"-S -c 'open('\"'\"'marker'\"'\"', '\"'\"'w'\"'\"')' (in {tmp_path})" in done.err
    assert "-- COMMAND" in done.err
    assert "--trust-tape" in done.err
    flakestorm(tmp_path, *COMMANDS[command], "--trust-tape", env=mine(tmp_path))
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_tape_of_one_s_own_is_run_and_one_whose_command_was_changed_is_not(
    tmp_path: Path, here: Command, command: str
) -> None:
    tape_of(tmp_path / "a.tape", {"argv": touching("first"), "cwd": str(tmp_path)}, "me")
    _, said = here(*COMMANDS[command])
    assert (tmp_path / "first").exists(), said
    edited(tmp_path / "a.tape", command={"argv": touching("marker"), "cwd": str(tmp_path)})
    code, said = here(*COMMANDS[command])
    assert (code, (tmp_path / "marker").exists()) == (2, False), said
    assert "its seal is of another key than yours, or of another tape" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_on_the_line_is_run_in_place_of_a_stranger_s(tmp_path: Path, here: Command, command: str) -> None:
    tape_of(tmp_path / "a.tape", {"argv": touching("marker"), "cwd": str(tmp_path)})
    _, said = here(*COMMANDS[command], "--", *touching("own"))
    assert ((tmp_path / "own").exists(), (tmp_path / "marker").exists()) == (True, False), said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_config_that_a_stranger_s_tape_names_is_not_run(tmp_path: Path, here: Command, command: str) -> None:
    """Not its agent, nor what it puts back at a fork."""
    (tmp_path / "theirs").mkdir()
    agent = {"type": "command", "start": touching(str(tmp_path / "marker")), "restore": "touch restored"}
    config = write_config(tmp_path / "theirs", agent=agent, invariants=RULES)
    tape_of(tmp_path / "a.tape", {"config": str(config)})
    code, said = here(*COMMANDS[command])
    assert (code, (tmp_path / "marker").exists()) == (2, False), said
    assert f"the agent of {config}" in said
    here(*COMMANDS[command], "--trust-tape")
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("vouched", [False, True])
def test_a_command_of_one_s_own_vouches_for_no_config_that_a_tape_names(
    tmp_path: Path, here: Command, vouched: bool
) -> None:
    """A fork of it puts nothing back, which would run what the config says."""
    agent = {"type": "command", "start": "true", "restore": f"touch {tmp_path / 'marker'}"}
    (tmp_path / "theirs").mkdir()
    named = {"config": str(write_config(tmp_path / "theirs", agent=agent))}
    tape_of(tmp_path / "a.tape", named, "me" if vouched else "a stranger", url="http://127.0.0.1:9/x")
    (tmp_path / "mine.py").write_text(CALLING)
    words = ("fork", "a.tape", "--at", "http/127.0.0.1#1", "--resample", "-o", "b.tape", "--", sys.executable)
    code, said = here(*words, "mine.py")
    assert (code, (tmp_path / "marker").exists()) == (0, vouched), said
    assert ("environment: snapshot" in said) == vouched


OTHERS = {
    "show": ("tapes", "show", "a.tape"),
    "list": ("tapes", "."),
    "diff": ("diff", "a.tape", "a.tape"),
    "replay": ("replay", "run", "a.tape"),
    "shrink": ("shrink", "a.tape", "--budget", "2"),
    "run": ("run", "--tape", "a.tape", "--prompt", "0"),
    "import": ("replay", "import", "a.tape"),
    "blame, by a config": ("blame", "a.tape", "--budget", "10"),
}


@pytest.mark.parametrize("command", OTHERS)
def test_no_other_command_runs_what_a_tape_names(tmp_path: Path, here: Command, command: str) -> None:
    """They ask the agent of one's own config, or none."""
    agent = {"type": "command", "start": touching(str(tmp_path / "own"))}
    contract = {"name": "c", "invariants": RULES}
    write_config(tmp_path, agent=agent, invariants=RULES, contract=contract, golden_prompts=["to Oslo"])
    named: dict[str, Any] = {"argv": touching("marker"), "cwd": str(tmp_path)}
    if command.startswith("blame"):
        named = {"config": str(tmp_path / "none.yaml")}
    tape_of(tmp_path / "a.tape", named)
    _, said = here(*OTHERS[command])
    assert not (tmp_path / "marker").exists()
    assert "names what is to be run, and is not known" not in said
    assert (tmp_path / "own").exists() == (command in ("replay", "shrink", "run", "blame, by a config")), said


def test_a_config_that_a_stranger_s_report_names_is_not_run(tmp_path: Path, here: Command) -> None:
    (tmp_path / "theirs").mkdir()
    rules = [{"id": "says", "type": "output_not_empty", "severity": "high"}]
    agent = {"type": "command", "start": touching(str(tmp_path / "marker"))}
    config = write_config(tmp_path / "theirs", agent=agent, invariants=rules, golden_prompts=["hi"])
    here("run", "-c", str(config), "--prompt", "0", "--format", "json", "-o", "theirs/report.json")
    (tmp_path / "marker").unlink()
    words = ("blame", "theirs/report.json#r-0001", "--healthy-input", "hello", "--budget", "10")
    code, said = here(*words)
    assert (code, (tmp_path / "marker").exists()) == (2, False), said
    assert "a report in a file carries no seal" in said
    _, said = here(*words, "-c", str(config))
    assert (tmp_path / "marker").exists(), said


def test_what_lies_beside_a_stranger_s_session_is_not_imported(tmp_path: Path, here: Command) -> None:
    """A session may name a contract in a file, whose rules may name functions."""
    (tmp_path / "own").mkdir()
    (tmp_path / "theirs").mkdir()
    config = write_config(tmp_path / "own", agent={"type": "command", "start": "true"}, invariants=RULES)
    session = {"id": "s", "input": "hi", "contract": "c.yaml"}
    (tmp_path / "theirs" / "s.json").write_text(orjson.dumps(session).decode())
    rule = "{id: x, type: check, function: 'evil:f'}"
    for folder in ("own", "theirs"):
        (tmp_path / folder / "c.yaml").write_text(f"name: c\ninvariants: [{rule}]\n")
        (tmp_path / folder / "evil.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'marker')!r})\nf = bool\n")
    code, said = here("replay", "run", "theirs/s.json", "-c", str(config))
    assert (code, (tmp_path / "marker").exists()) == (2, False), said
    (tmp_path / "theirs" / "s.json").rename(tmp_path / "own" / "s.json")
    _, said = here("replay", "run", "own/s.json", "-c", str(config))
    assert (tmp_path / "marker").exists(), said


def test_the_library_runs_nothing_by_a_stranger_s_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tape = tape_of(tmp_path / "a.tape", {"argv": touching("marker"), "cwd": str(tmp_path)})
    write_config(tmp_path, agent={"type": "command", "start": "true"}, invariants=RULES)
    with pytest.raises(Misuse, match="trust_tape=True"):
        library.fork(tape, at="tool/search#1", to="b.tape")
    with pytest.raises(Misuse, match="trust_tape=True"):
        library.load("flakestorm.yaml").blame(tape)
    assert not (tmp_path / "marker").exists()
    with pytest.raises(library.TapeMismatch):  # it runs, and comes to no such site
        library.fork(tape, at="tool/search#1", to="b.tape", trust_tape=True)
    assert (tmp_path / "marker").exists()


def test_the_key_of_a_team_vouches_and_an_agent_never_sees_it(tmp_path: Path) -> None:
    tell = "import os; print(sorted(n for n in os.environ if 'TRUST' in n)); open(os.environ['MARK'], 'w')"
    env = {"FLAKESTORM_TRUST_KEY": "k" * 64, "MARK": str(tmp_path / "marker")}
    words = ("record", "-o", "a.tape", "--", sys.executable, "-c", tell)
    done = flakestorm(tmp_path, *words, env={**env, **mine(tmp_path)})
    assert (done.code, done.out) == (0, "[]\n"), done.err
    assert not (tmp_path / "me").exists()
    shown = flakestorm(tmp_path, "tapes", "show", "a.tape", env={**env, **mine(tmp_path)})
    assert "sealed as yours" in shown.out
    assert not made_here(Tape.open(tmp_path / "a.tape"))


def test_where_no_key_can_be_kept_recording_goes_on_and_it_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / ".flakestorm").write_text("")
    env = {"XDG_STATE_HOME": str(tmp_path / "file")}
    done = flakestorm(tmp_path, "record", "-o", "a.tape", "--", *touching("first"), env=env)
    assert (done.code, done.err.count("not sealed")) == (0, 1), done.err
    assert Tape.open(tmp_path / "a.tape").complete


@pytest.mark.parametrize(("answer", "ran"), [("y\n", True), ("\n", False), ("n\n", False)])
def test_on_a_terminal_somebody_is_asked_who_sees_all_of_it(tmp_path: Path, answer: str, ran: bool) -> None:
    command = [*touching("marker"), "\x1b[2K\u202e", "Zürich"]
    tape_of(tmp_path / "a.tape", {"argv": command, "cwd": str(tmp_path)})
    code, said = _at_a_terminal(tmp_path, answer, *COMMANDS["verify-tape"])
    assert ((tmp_path / "marker").exists(), code) == (ran, 1 if ran else 2), said
    assert f"folder       {tmp_path}" in said
    assert r"'\x1b[2K\u202e' 'Zürich'" in said
    assert "\x1b[2K" not in said
    assert "Run it? [y/N]" in said


def test_what_is_too_long_to_be_seen_is_not_asked_about(tmp_path: Path) -> None:
    tape_of(tmp_path / "a.tape", {"argv": [*touching("marker"), "x" * 10_000], "cwd": str(tmp_path)})
    code, said = _at_a_terminal(tmp_path, "y\n", *COMMANDS["verify-tape"])
    assert (code, (tmp_path / "marker").exists(), "Run it?" in said) == (2, False, False), said


def _at_a_terminal(folder: Path, answer: str, *words: str) -> tuple[int, str]:
    """The exit code, and what was seen."""
    here, there = pty.openpty()
    env = clean_env({**mine(folder), "COLUMNS": "200"})
    process = subprocess.Popen([str(FLAKESTORM), *words], cwd=folder, env=env, stdin=there, stdout=there, stderr=there)
    os.close(there)
    said = b""
    with os.fdopen(here, "r+b", buffering=0) as terminal:
        asked = False
        while select.select([terminal], [], [], 60)[0]:
            try:
                read = terminal.read(65536)
            except OSError:  # the other end was closed
                break
            if not read:
                break
            said += read
            if b"[y/N]" in said and not asked:
                asked = True
                terminal.write(answer.encode())
    return process.wait(60), said.decode()
