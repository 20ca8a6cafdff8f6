from pathlib import Path

import pytest

from flakestorm.errors import TapeDamaged
from flakestorm.tape.reader import Tape
from flakestorm.viewer.recording import Recording
from viewer_support import recorded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return recorded(tmp_path / "r.tape", exchanges=5)


def test_the_outline_has_a_line_for_each_exchange(path: Path) -> None:
    found = Recording.read(path)
    assert [line.site for line in found.lines] == [str(each.site) for each in Tape.open(path).exchanges()]
    assert (found.input, found.run, found.output, found.complete, found.damage) == (
        "to Oslo", "r-1", "Oslo is nice.", True, ""
    )  # fmt: skip
    first, second = found.lines[0].row, found.lines[1].row
    assert (first["kind"], first["status"], first["chunks"], first["faults"]) == ("llm", 200, 5, [])
    assert (second["kind"], second["status"]) == ("tool", 503)
    assert second["faults"][0].startswith("error")
    assert found.end_ms == 25.0


def test_each_exchange_is_read_when_it_is_asked_for(path: Path) -> None:
    found = Recording.read(path)
    assert [found.exchange(at) for at in range(5)] == Tape.open(path).exchanges()
    assert [each.n for each in found.exchanges(1, 3)] == [1, 2]
    with pytest.raises(TapeDamaged, match="there is no exchange 5; the tape has 5"):
        found.exchange(5)


def test_what_is_before_the_damage_is_shown(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[3].replace(b"Oslo", b"Rome"), *lines[4:]]))
    found = Recording.read(path)
    assert len(found.lines) == 2
    assert ":4: the tape was edited or damaged at this line" in found.damage
    assert not found.complete


def test_a_recording_that_was_cut_short(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    found = Recording.read(path)
    assert (len(found.lines), found.complete, found.damage) == (5, False, "")


def test_what_is_no_tape_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tape").write_text("hello\n")
    with pytest.raises(TapeDamaged, match="is not a tape"):
        Recording.read(tmp_path / "x.tape")
