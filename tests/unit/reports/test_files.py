from __future__ import annotations

import os
from pathlib import Path

import pytest

from flakestorm.errors import Misuse
from flakestorm.reports.files import below, write_whole


def test_makes_the_folder_and_leaves_nothing_but_the_file(tmp_path: Path) -> None:
    target = write_whole(tmp_path / "a" / "b" / "report.json", b"{}")
    assert target.read_bytes() == b"{}"
    assert [p.name for p in target.parent.iterdir()] == ["report.json"]


def test_replaces_what_was_there_and_is_readable_as_any_other_file(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_bytes(b"old and longer")
    write_whole(target, b"new")
    other = tmp_path / "other"
    other.write_bytes(b"")
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode == other.stat().st_mode


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Misuse, match=r"file/report\.json: the report cannot be written: .*choose another -o"):
        write_whole(tmp_path / "file" / "report.json", b"")


def test_a_folder_in_the_way_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="cannot be written"):
        write_whole(tmp_path, b"")
    assert tmp_path.is_dir()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.json"
    target.write_bytes(b"old")

    def fail(self: Path, other: Path) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(Misuse, match="No space left"):
        write_whole(target, b"new")
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_whole("/dev/null", b"gone")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize(
    ("path", "base", "seen"),
    [
        ("/r/x/tapes/r-1.tape", "/r/x", "tapes/r-1.tape"),
        ("/elsewhere/r-1.tape", "/r/x", "/elsewhere/r-1.tape"),
        ("/r/xy/r-1.tape", "/r/x", "/r/xy/r-1.tape"),
        ("", "/r/x", ""),
        ("tapes/r-1.tape", None, "tapes/r-1.tape"),
        ("out/tapes/r-1.tape", "out", "tapes/r-1.tape"),
        ("/a/b/./t/r.tape", "/a/b", "t/r.tape"),
        ("/a/b//t//r.tape", "/a/b", "t/r.tape"),
        ("/a/b/../t", "/a/b", "../t"),
        ("/a/b/.t/ü r.tape", "/a/b/", ".t/ü r.tape"),
        ("/a", "", "/a"),
        ("/a/b/t\n", "/a/b", "t\n"),
    ],
)
def test_below(path: str, base: str | None, seen: str) -> None:
    assert below(path, base) == seen
