"""Whose tape it is: keys, seals, and what breaks a seal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from faults_support import JSON, RESULTS, tool_call
from flakestorm.core.call import Reply
from flakestorm.tape.lines import START, seal
from flakestorm.tape.origin import SHORTEST, VARIABLE, Key, Named, key_file, known_keys, made_here, named_by, own_key
from flakestorm.tape.reader import Tape
from tape_support import Run

ARGV = ["python", "agent.py", "to Oslo"]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has no key yet, in a folder of a project."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "state"


def record(path: Path, *, argv: list[str] = ARGV, stdin: bytes = b"in", command: bool = True) -> Path:
    named = {"command": {"argv": argv, "cwd": "/work"}} if command else {}
    run = Run(path, header=named)
    run.ask(tool_call(), lambda _: Reply(200, JSON, RESULTS))
    run.recorder.close(output="booked", stdin=stdin)
    return path


def rechained(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    """The tape with other contents, each line chained to the one before, as anybody can do who can write the file."""
    contents = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for content in contents:
        del content["chain"]
    change(contents)
    chain, lines = START, []
    for content in contents:
        line, chain = seal(content, chain)
        lines.append(line)
    path.write_bytes(b"".join(lines))
    Tape.open(path).exchanges()  # it reads as a whole tape
    return path


def test_a_tape_that_names_a_command_is_sealed_by_who_records_it_and_by_nobody_else(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = Tape.open(record(state.parent / "a.tape"))
    assert named_by(tape) == Named(tuple(ARGV), "/work")
    assert made_here(tape)
    tape.verify()
    monkeypatch.setenv("XDG_STATE_HOME", str(state / "of another user"))
    assert not made_here(tape)
    assert own_key().key is not None
    assert not made_here(tape)


def test_a_tape_that_names_nothing_carries_no_seal_and_no_key_is_made(state: Path) -> None:
    tape = Tape.open(record(state.parent / "a.tape", command=False))
    assert tape.footer is not None
    assert (tape.footer.origin, named_by(tape), made_here(tape), state.exists()) == (None, None, False, False)


@pytest.mark.parametrize("name", ["b.tape", "folder/a.tape"])
def test_a_moved_or_copied_tape_keeps_its_seal(state: Path, name: str) -> None:
    there = state.parent / name
    there.parent.mkdir(exist_ok=True)
    record(state.parent / "a.tape").rename(there)
    assert made_here(Tape.open(there))


def test_a_compressed_tape_is_sealed_too(state: Path) -> None:
    assert made_here(Tape.open(record(state.parent / "a.tape.zst")))


def _other_reply(lines: list[dict[str, Any]]) -> None:
    lines[1]["reply"]["headers"] = [["x", "y"]]


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[0]["command"].update(argv=["sh", "-c", "x"]),
        lambda lines: lines[0]["command"].update(cwd="/tmp"),
        lambda lines: lines[0].update(command={"config": "/x.yaml"}),
        lambda lines: lines[0].update(version="0"),
        _other_reply,
        lambda lines: lines[-1].update(stdin="import os"),
        lambda lines: lines[-1].update(output="other"),
        lambda lines: lines[-1].pop("origin"),
        lambda lines: lines[-1].update(origin="0" * 64),
        lambda lines: lines[-1].update(origin="é"),
        lambda lines: lines[-1].update(origin=["x"]),
        lambda lines: lines[-1].update(more=_nested(400)),
    ],
    ids=["argv", "cwd", "config", "header", "reply", "stdin", "output", "no seal", "zeros", "word", "list", "deep"],
)
def test_who_changes_a_word_breaks_the_seal(state: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    tape = record(state.parent / "a.tape")
    try:
        rechained(tape, change)
    except (TypeError, RecursionError):  # orjson reads deeper than it writes
        deep = b'{"output":"","error":null,"digest":"","origin":"","more":' + b"[" * 400 + b"]" * 400 + b"}"
        _last_line_is(tape, deep)
    assert not made_here(Tape.open(tape))


def _nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def _last_line_is(path: Path, plain: bytes) -> None:
    import hashlib

    lines = path.read_bytes().splitlines(keepends=True)[:-1]
    chain = hashlib.sha256(orjson.loads(lines[-1])["chain"].encode() + plain).hexdigest().encode()
    path.write_bytes(b"".join(lines) + plain[:-1] + b',"chain":"' + chain + b'"}\n')


def test_rechaining_alone_breaks_nothing(state: Path) -> None:
    """Else the test above would prove nothing."""
    assert made_here(Tape.open(rechained(record(state.parent / "a.tape"), lambda _: None)))


def test_a_seal_cannot_be_moved_to_another_tape(state: Path) -> None:
    mine = Tape.open(record(state.parent / "a.tape")).footer
    assert mine is not None
    assert mine.origin is not None
    said = mine.origin[0]
    other = rechained(record(state.parent / "b.tape", argv=["x"]), lambda lines: lines[-1].update(origin=said))
    assert not made_here(Tape.open(other))


def test_an_interrupted_recording_is_not_sealed(state: Path) -> None:
    path = record(state.parent / "a.tape")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert not made_here(Tape.open(path))


def test_the_key_is_its_owner_s_alone_and_made_once(state: Path) -> None:
    first = own_key()
    file = state / "flakestorm" / "key"
    assert file == key_file()
    assert (first.why, file.stat().st_mode & 0o777, len(file.read_bytes())) == ("", 0o600, 32)
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert own_key() == first
    assert list(known_keys()) == [first.key]


def test_processes_that_make_it_at_once_agree(state: Path) -> None:
    code = "from flakestorm.tape.origin import own_key; print(own_key().key.secret.hex())"
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(6)]
    said = {process.communicate()[0] for process in started}
    assert said == {f"{(state / 'flakestorm' / 'key').read_bytes().hex()}\n"}


def test_the_key_is_not_drawn_from_what_a_tape_says(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process whose draws are virtual, `os.urandom` follows from a seed that stands on the tape."""
    monkeypatch.setattr(os, "urandom", lambda size: b"\1" * size)
    assert own_key().key is not None
    assert (state / "flakestorm" / "key").read_bytes() != b"\1" * 32


def test_a_key_that_others_can_read_is_told_and_not_used(state: Path) -> None:
    own_key()
    (state / "flakestorm" / "key").chmod(0o644)
    own = own_key()
    assert own.key is None
    assert "chmod 600" in own.why
    assert list(known_keys()) == []


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda file: file.write_bytes(b"short"), "does not hold a key of 32 bytes"),
        (lambda file: file.write_bytes(b"x" * 33), "does not hold a key of 32 bytes"),
        (lambda file: file.mkdir(), "is no regular file"),
        (lambda file: file.symlink_to("/etc/hostname"), "no key can be"),
    ],
    ids=["short", "long", "folder", "link"],
)
def test_what_is_no_key_is_told_and_not_used(state: Path, make: Callable[[Path], object], why: str) -> None:
    file = state / "flakestorm" / "key"
    file.parent.mkdir(parents=True)
    make(file)
    if file.is_file() and not file.is_symlink():
        file.chmod(0o600)
    own = own_key()
    assert (own.key, list(known_keys())) == (None, [])
    assert why in own.why


def test_the_state_folder_is_found_by_the_rules(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    usual = tmp_path / ".local" / "state" / "flakestorm" / "key"
    assert key_file(home) == usual
    assert key_file({**home, "XDG_STATE_HOME": "relative"}) == usual
    assert key_file({**home, "XDG_STATE_HOME": "/s"}) == Path("/s/flakestorm/key")
    assert key_file({"HOME": "relative"}) is None


def test_the_environment_s_key_seals_and_the_user_s_own_is_believed_too(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Tape.open(record(state.parent / "a.tape"))
    monkeypatch.setenv(VARIABLE, "k" * SHORTEST)
    after = Tape.open(record(state.parent / "b.tape"))
    assert (made_here(before), made_here(after)) == (True, True)
    monkeypatch.setenv("XDG_STATE_HOME", str(state / "of a colleague"))
    assert (made_here(before), made_here(after)) == (False, True)
    assert not (state / "of a colleague").exists()
    monkeypatch.setenv(VARIABLE, "j" * SHORTEST)
    assert not made_here(after)


def test_too_short_a_key_is_told_and_not_used(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "hunter2")
    own = own_key()
    assert own.key is None
    assert "fewer than 32 characters" in own.why
    assert "hunter2" not in own.why
    assert not made_here(Tape.open(record(state.parent / "a.tape")))
    monkeypatch.setenv(VARIABLE, "  ")  # what a build has for a secret that it may not see
    assert own_key().key is not None


def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that cannot be written to, for root neither."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))


def test_without_a_home_the_key_is_the_project_s_and_nobody_commits_it(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homeless(state.parent, monkeypatch)
    own = own_key()
    assert own.key is not None
    assert own_key() == own
    assert list(known_keys()) == [own.key]
    folder = Path(".flakestorm", "trust")
    assert (folder / ".gitignore").read_text() == "*\n"
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    assert made_here(Tape.open(record(state.parent / "a.tape")))


def test_a_key_that_came_with_somebody_s_folder_is_another_key(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger packs project, key and tape together; unpacked, the key is no longer the one that sealed it."""
    homeless(state.parent, monkeypatch)
    record(Path("a.tape"))
    (state.parent / "unpacked").mkdir()
    for each in ("a.tape", ".flakestorm"):
        subprocess.run(["cp", "-a", each, state.parent / "unpacked"], check=True)
    assert made_here(Tape.open("a.tape"))
    monkeypatch.chdir(state.parent / "unpacked")
    assert Path(".flakestorm/trust/key").stat().st_mode & 0o777 == 0o600
    assert not made_here(Tape.open("a.tape"))


def test_where_nothing_can_be_written_it_is_told_why_twice(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homeless(state.parent, monkeypatch)
    Path(".flakestorm").write_text("")
    own = own_key()
    assert own.key is None
    assert own.why.count("no key can be made there") == 2
    shutil.copy(record(state.parent / "a.tape"), "b.tape")  # recording goes on
    assert not made_here(Tape.open("b.tape"))


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (None, None),
        ("sh -c x", None),
        ({"argv": "sh"}, None),
        ({"argv": [], "config": ""}, None),
        ({"argv": ["a", 1], "cwd": 7}, Named(("a", "1"), ".")),
        ({"config": "/x.yaml"}, Named(config="/x.yaml")),
        ({"argv": ["true"], "cwd": "/", "config": "/x.yaml"}, Named(("true",), "/")),
        ({"argv": {"a": 1}, "config": ["x"]}, None),
    ],
)
def test_only_what_can_be_run_is_named(said: object, named: Named | None) -> None:
    tape = Tape(Path("a.tape"), {"format": "flakestorm-tape/3", "command": said})
    assert named_by(tape) == named


def test_all_of_what_is_named_is_said() -> None:
    assert str(Named(("sh", "-c", "rm x"), "/w")) == "sh -c 'rm x' (in /w)"
    assert str(Named(config="/w/a.yaml")) == "the agent of /w/a.yaml"
    assert Key(b"x").mark(b"1") != Key(b"x").mark(b"2") != Key(b"y").mark(b"2")
