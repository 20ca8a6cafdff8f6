from dataclasses import replace
from pathlib import Path

import pytest

from flakestorm.errors import Misuse
from flakestorm.reports.document import to_document
from flakestorm.store.sqlite import Store
from flakestorm.viewer.shelf import REPORTS, Shelf
from report_samples import sample
from store_support import document, saved
from viewer_support import recorded, saved_with_tapes


def test_where_nothing_was_saved_there_is_nothing(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "none")
    assert (shelf.entries(), shelf.loose_tapes()) == ([], [])
    with pytest.raises(Misuse, match="nothing was saved yet"):
        shelf.saved("x")


def test_a_report_is_read_once_and_again_when_it_has_got_on(tmp_path: Path) -> None:
    with Store(tmp_path, write=True) as store:
        id_ = store.begin(document(runs=(), cells=()))
        shelf = Shelf(tmp_path)
        first = shelf.saved(id_)
        assert (first.done, first.runs) == (False, ())
        assert shelf.saved(id_) is first
        store.finish(id_, document())
    second = shelf.saved(id_)
    assert (second.done, len(second.runs)) == (True, 8)
    assert [cell["invariant"] for cell in second.cells_of["r-0005"]][:2] == ["always-answers", "no-false-booking"]


def test_the_list_follows_what_is_written(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    with Store(tmp_path, write=True) as store:
        for n in range(3):
            started = f"2026-05-04T10:00:0{n}Z"
            id_ = store.begin(document(runs=(), cells=(), started_at=started))
            assert (len(shelf.entries()), shelf.entries()[0].done) == (n + 1, False)
            store.finish(id_, document(started_at=started))
            assert shelf.entries()[0].done


def test_only_the_last_used_are_held(tmp_path: Path) -> None:
    ids = saved(tmp_path, *(replace(sample(), seed=n) for n in range(REPORTS + 2)))
    shelf = Shelf(tmp_path)
    held = [shelf.saved(id_) for id_ in ids]
    assert shelf.saved(ids[-1]) is held[-1]
    assert shelf.saved(ids[0]) is not held[0]


def test_runs_come_in_the_order_asked_for(tmp_path: Path) -> None:
    [id_] = saved(tmp_path, sample())
    assert [run["id"] for run in Shelf(tmp_path).runs(id_, ["r-0003", "nothing", "r-0001"])] == ["r-0003", "r-0001"]


def test_a_runs_tape_and_loose_tapes_are_found(tmp_path: Path) -> None:
    id_ = saved_with_tapes(tmp_path / "s", tmp_path / "t", sample(), most=1)
    recorded(tmp_path / "s" / "tapes" / "loose.tape")
    shelf = Shelf(tmp_path / "s")
    assert len(shelf.recording(f"{id_}/r-0001").lines) == 3
    assert shelf.recording(f"{id_}/r-0001") is shelf.recording(f"{id_}/r-0001")
    assert (shelf.taped(id_, "r-0001"), shelf.taped(id_, "r-0002")) == (True, False)
    with pytest.raises(Misuse, match="no tape was kept of the run 'r-0002'"):
        shelf.recording(f"{id_}/r-0002")
    assert [path for path, _ in shelf.loose_tapes()] == ["tapes/loose.tape"]
    assert len(shelf.recording("tape:tapes/loose.tape").lines) == 3


@pytest.mark.parametrize("name", ["../t/0.tape", "/etc/passwd", "content", ""])
def test_nothing_but_tapes_in_the_folder_is_read(tmp_path: Path, name: str) -> None:
    saved_with_tapes(tmp_path / "s", tmp_path / "t", sample(), most=1)
    with pytest.raises(Misuse, match="there is no tape"):
        Shelf(tmp_path / "s").recording(f"tape:{name}")


def test_a_comparison_is_shown_by_its_head(tmp_path: Path) -> None:
    with Store(tmp_path, write=True) as store:
        id_ = store.save({**to_document(sample()), "format": "flakestorm-compare/1"})
    found = Shelf(tmp_path).saved(id_)
    assert (found.report, found.grid, len(found.runs)) == (None, None, 8)
