"""A tape file while it grows: what is in it at every moment, and what a full disk or a late secret does to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flakestorm.errors import TapeError
from flakestorm.tape.lines import START, open_seal
from flakestorm.tape.redact import Redactor
from flakestorm.tape.said import Said
from flakestorm.tape.sealed import SealedFile, cleaned_header, without_late_secrets


def test_each_line_is_in_the_file_at_once_and_sealed_to_the_one_before(tmp_path: Path) -> None:
    file, chain = SealedFile(tmp_path / "t.jsonl"), START
    for n in range(3):
        file.append({"n": n})
        lines = (tmp_path / "t.jsonl").read_bytes().splitlines(keepends=True)
        content, chain = open_seal(lines[-1], chain)
        assert (content, len(lines)) == ({"n": n}, n + 1)
    file.close()
    file.append({"n": 3})  # a call that ends after the run is on no tape
    assert len((tmp_path / "t.jsonl").read_bytes().splitlines()) == 3


def test_a_last_line_may_carry_a_mark_of_what_it_would_be_without(tmp_path: Path) -> None:
    plain, marked = SealedFile(tmp_path / "p.jsonl"), SealedFile(tmp_path / "m.jsonl")
    for file in (plain, marked):
        file.append({"n": 1})
    plain.append({"n": 2})
    marked.append({"n": 2}, mark=lambda chain: chain.decode())
    for file in (plain, marked):
        file.close()
    first, last = map(json.loads, (tmp_path / "m.jsonl").read_text().splitlines())
    without = json.loads((tmp_path / "p.jsonl").read_text().splitlines()[1])
    assert last["origin"] == without["chain"]
    assert open_seal((tmp_path / "m.jsonl").read_bytes().splitlines(keepends=True)[1], first["chain"].encode())


def test_an_earlier_tape_makes_way(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("old\n")
    SealedFile(path).close()
    assert path.read_bytes() == b""


def test_a_folder_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(TapeError, match="cannot be written: No such file"):
        SealedFile(tmp_path / "none" / "t.jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
def test_a_full_disk_waits_for_the_end() -> None:
    file = SealedFile(Path("/dev/full"))
    file.append({"n": 0})
    file.append({"n": 1})
    with pytest.raises(TapeError, match="is incomplete: No space left"):
        file.close()


def test_a_header_is_cleaned_but_for_the_key_and_the_patterns() -> None:
    redactor = Redactor("k" * 32, known=["hunter2hunter2"])
    header = {"key": "hunter2hunter2", "input": "say hunter2hunter2", "argv": ["a", {"b": "hunter2hunter2"}], "n": 1}
    placeholder = redactor.placeholder(b"hunter2hunter2").decode()
    assert cleaned_header(header, redactor) == {
        "key": "hunter2hunter2",
        "input": f"say {placeholder}",
        "argv": ["a", {"b": placeholder}],
        "n": 1,
    }


def test_a_file_without_late_secrets_stays_the_one_it_is(tmp_path: Path) -> None:
    redactor = Redactor("k" * 32, known=[])
    file = SealedFile(tmp_path / "t.jsonl")
    header = {"format": "flakestorm-tape/2", "version": "0", "key": redactor.key, "run": "r", "input": "hello"}
    file.append(cleaned_header(header, redactor))
    said = Said()
    same, total = without_late_secrets(file, header, redactor, said)
    file.close()
    assert (same, total) == (file, said)
    redactor.learn(b"hello-there-secret")
    other = {**header, "input": "hello-there-secret"}
    late = SealedFile(tmp_path / "late.jsonl")
    late.append(other)
    moved, _ = without_late_secrets(late, other, redactor, said)
    moved.close()
    assert moved is not late
    assert b"hello-there-secret" not in (tmp_path / "late.jsonl").read_bytes()
    assert json.loads((tmp_path / "late.jsonl").read_bytes().splitlines()[0])["input"].startswith("[secret:")
