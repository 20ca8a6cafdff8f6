from __future__ import annotations

from pathlib import Path

import pytest

from faults_support import JSON, RESULTS, tool_call
from flakestorm.core.call import Reply
from flakestorm.errors import Misuse, TapeDamaged
from flakestorm.tape.shelf import STORE, Summary, find, keep_from_git, make_room, summary
from tape_support import Run


def record(path: Path, *, calls: int, finish: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    run = Run(path)
    for n in range(calls):
        run.ask(tool_call(n=n + 1), lambda _: Reply(200, JSON, RESULTS))
    unfinished = path.read_bytes()
    run.recorder.close(output="booked")
    if not finish:
        path.write_bytes(unfinished)
    return path


@pytest.mark.parametrize("calls", [0, 1, 3])
@pytest.mark.parametrize("finish", [True, False])
def test_a_summary_tells_run_input_exchanges_and_whether_it_ended(tmp_path: Path, calls: int, finish: bool) -> None:
    path = record(tmp_path / "r.tape", calls=calls, finish=finish)
    assert summary(path) == Summary(path, run="r-1", input="to Oslo", exchanges=calls, complete=finish)


def test_what_is_no_tape_or_was_edited_has_no_summary(tmp_path: Path) -> None:
    path = record(tmp_path / "r.tape", calls=2)
    path.write_bytes(path.read_bytes().replace(b"BA 12", b"BA 13"))
    with pytest.raises(TapeDamaged, match=r"r\.tape:2"):
        summary(path)
    path.write_text("hello")
    with pytest.raises(TapeDamaged, match="is not a tape"):
        summary(path)


def test_tapes_are_found_below_every_folder_once_and_in_order(tmp_path: Path) -> None:
    reports, store = tmp_path / "reports", tmp_path / ".flakestorm"
    second = record(reports / "2" / "tapes" / "r-0001.tape", calls=0)
    first = record(reports / "1" / "tapes" / "r-0001.tape", calls=0)
    third = record(store / "x.tape", calls=0)
    (reports / "1" / "report.json").write_text("{}")
    (reports / "folder.tape").mkdir()
    assert find([reports, store, reports / "1", tmp_path / "none"]) == [first, second, third]
    assert find([]) == []


def test_what_a_new_tape_takes_the_place_of_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    for nothing in ("missing.tape", "empty.tape"):
        (tmp_path / "empty.tape").touch()
        make_room(Path(nothing), said.append)
    assert (said, STORE.exists()) == ([], False)
    path = Path(record(tmp_path / "a.tape", calls=1).name)
    make_room(path, said.append, forks=True)  # it was not forked from another
    (kept,) = (STORE / "tapes").iterdir()
    assert kept.read_bytes() == path.read_bytes()
    assert said == [f"what a.tape held is kept as {kept}"]


def test_where_no_copy_can_be_kept_nothing_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    STORE.touch()
    path = record(tmp_path / "a.tape", calls=1)
    with pytest.raises(Misuse, match="no copy of it could be kept"):
        make_room(path, lambda _: None)


def test_git_leaves_the_store_alone_and_an_own_rule_stays(tmp_path: Path) -> None:
    store = tmp_path / "deep" / ".flakestorm"
    assert keep_from_git(store) == store
    assert (store / ".gitignore").read_text() == "*\n"
    (store / ".gitignore").write_text("*.key\n")
    keep_from_git(store)
    assert (store / ".gitignore").read_text() == "*.key\n"
