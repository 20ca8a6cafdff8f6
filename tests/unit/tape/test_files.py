from __future__ import annotations

from pathlib import Path

import pytest

from faults_support import JSON, RESULTS, tool_call
from flakestorm.core.call import Reply
from flakestorm.errors import TapeDamaged
from flakestorm.tape import files
from flakestorm.tape.files import Growing, lines_of
from flakestorm.tape.reader import Tape
from tape_support import Run

LINES = [b"one\n", b"two" * 1000 + b"\n", b"\n", b"three\n"]


def written(path: Path, *, finish: bool = True) -> Path:
    file = Growing(path)
    for line in LINES:
        file.append(line)
    file.close(finish=finish)
    return path


@pytest.mark.parametrize("name", ["a.tape", "a.tape.zst"])
@pytest.mark.parametrize("finish", [True, False])
def test_lines_read_back(tmp_path: Path, name: str, finish: bool) -> None:
    path = written(tmp_path / name, finish=finish)
    assert list(lines_of(path, 10_000)) == LINES
    assert (path.stat().st_size < 500) == (path.suffix == ".zst")


@pytest.mark.parametrize("name", ["a.tape", "a.tape.zst"])
def test_a_long_line_is_not_read_to_its_end(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name)
    assert [len(line) for line in lines_of(path, 100)][:2] == [4, 101]


def test_every_line_is_there_before_the_next_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    file = Growing(path)
    for count, line in enumerate(LINES, 1):
        file.append(line)
        assert list(lines_of(path, 10_000)) == LINES[:count]
    file.close()


def test_every_cut_of_a_compressed_tape_gives_what_was_there(tmp_path: Path) -> None:
    whole = written(tmp_path / "a.zst").read_bytes()
    for size in range(4, len(whole)):
        (tmp_path / "cut").write_bytes(whole[:size])
        assert b"".join(LINES).startswith(b"".join(lines_of(tmp_path / "cut", 10_000)))


def test_what_is_added_or_garbled_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.zst")
    whole = path.read_bytes()
    path.write_bytes(whole + b"more")
    with pytest.raises(TapeDamaged, match="there is more after the compressed tape"):
        list(lines_of(path, 10_000))
    path.write_bytes(whole[:4] + b"\xff" * 20 + whole[24:])
    with pytest.raises(TapeDamaged, match=r"a\.zst cannot be unpacked"):
        list(lines_of(path, 10_000))


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zst"
    file = Growing(path)
    for _ in range(64):
        file.append(b"0" * (1 << 20) + b"\n")
    file.close()
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(files, "MAX_UNPACKED_BYTES", 8 << 20)
    with pytest.raises(TapeDamaged, match="unpacks to more than"):
        for _ in lines_of(path, 2 << 20):
            pass


def test_a_compressed_tape_is_a_tape(tmp_path: Path) -> None:
    path = tmp_path / "r.tape.zst"
    run = Run(path)
    for n in range(1, 4):
        run.ask(tool_call(n=n), lambda _: Reply(200, JSON, RESULTS))
    assert len(Tape.open(path).exchanges()) == 3
    run.recorder.close(output="done")
    tape = Tape.open(path)
    tape.verify()
    assert [exchange.reply.body for exchange in tape] == [RESULTS] * 3
