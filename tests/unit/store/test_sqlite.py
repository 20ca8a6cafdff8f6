import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flakestorm.errors import Misuse
from flakestorm.reports.document import from_document, to_document
from flakestorm.store.sqlite import ID, Store
from report_samples import hostile, sample
from store_support import document, saved, with_tapes

pytestmark = pytest.mark.usefixtures("database")


def test_a_report_comes_back_as_it_was(tmp_path) -> None:
    [id_] = saved(tmp_path / "s", sample())
    assert ID.fullmatch(id_)
    assert id_.startswith("20260504-100000-")
    with Store(tmp_path / "s") as store:
        assert from_document(store.document(id_)) == sample()


def test_keys_of_later_versions_come_back_too(tmp_path) -> None:
    base = document()
    later = {**base, "findings": [1], "cells": [{**c, "rate": 0.5} for c in base["cells"]]}
    later["runs"] = [{**run, "mutation": {"type": "noise"}} for run in base["runs"]]
    with Store(tmp_path / "s", write=True) as store:
        assert store.document(store.save(later)) == later


def test_hostile_text_comes_back_readable(tmp_path) -> None:
    [id_] = saved(tmp_path / "s", hostile())
    with Store(tmp_path / "s") as store:
        report = from_document(store.document(id_))
    assert "window.pwned=1" in report.runs[0].output
    assert len(report.cells) == len(hostile().cells)


def test_tapes_are_kept_once_and_outlive_the_originals(tmp_path) -> None:
    first, second = with_tapes(tmp_path / "a"), with_tapes(tmp_path / "b")
    ids = saved(tmp_path / "s", first, second)
    for run in first.runs:
        Path(run.tape).unlink()
    with Store(tmp_path / "s") as store:
        report = from_document(store.document(ids[0]))
        kept = store.tapes()
        assert [Path(run.tape).read_text() for run in report.runs] == [f"tape of {run.id}" for run in first.runs]
        assert len(kept) == 2 * len(first.runs)
        assert len({tape.path for tape in kept}) == len(first.runs)
        assert [tape.run for tape in store.tapes(ids[1])] == [run.id for run in second.runs]
    assert sum(path.is_file() for path in (tmp_path / "s" / "content").rglob("*")) == len(first.runs)


def test_what_had_finished_is_there_when_the_end_never_came(tmp_path) -> None:
    report = with_tapes(tmp_path / "a")
    outline = replace(report, runs=(), cells=(), interrupted=True, verdict="inconclusive", exit_code=130)
    with Store(tmp_path / "s", write=True) as store:
        id_ = store.begin(to_document(outline))
        for run in report.runs[:3]:
            cells = tuple(cell for cell in report.cells if cell.run == run.id)
            store.add(id_, [to_document(replace(outline, runs=(run,), cells=cells))])
    with Store(tmp_path / "s") as store:
        found = from_document(store.document(id_))
        [entry] = store.entries()
    assert [run.id for run in found.runs] == ["r-0001", "r-0002", "r-0003"]
    assert found.cells == tuple(c for c in report.cells if c.run in ("r-0001", "r-0002", "r-0003"))
    assert (found.interrupted, found.headline) == (True, "its command never came to its end; 3 of its runs were kept")
    assert (entry.done, entry.runs) == (False, 3)


def test_the_end_replaces_cells_and_puts_runs_in_order(tmp_path) -> None:
    report = sample()
    with Store(tmp_path / "s", write=True) as store:
        id_ = store.begin(document(runs=(), cells=()))
        store.add(id_, [document(runs=(run,), cells=report.cells[:1]) for run in reversed(report.runs[2:])])
        store.finish(id_, to_document(report))
        assert from_document(store.document(id_)) == report


def test_runs_that_are_added_together_cost_no_more_than_one_by_one(tmp_path, monkeypatch) -> None:
    report, copied = with_tapes(tmp_path / "a"), []
    outline = replace(report, runs=(), cells=())
    with Store(tmp_path / "s", write=True) as store:
        real = store.content.add
        monkeypatch.setattr(store.content, "add", lambda file, digest: copied.append(file) or real(file, digest))
        id_ = store.begin(to_document(outline))
        store.add(id_, [to_document(replace(outline, runs=(run,))) for run in report.runs])
    assert copied == [Path(run.tape) for run in report.runs]


def test_names_that_mean_a_report(tmp_path) -> None:
    ids = saved(tmp_path / "s", sample(), replace(sample(), started_at="2027-01-01T00:00:00Z"))
    with Store(tmp_path / "s") as store:
        assert store.find("latest") == ids[1]
        assert store.find("20260504") == store.find(ids[0]) == store.find(ids[0][-4:]) == ids[0]
        with pytest.raises(Misuse, match="could be"):
            store.find("202")
        for name in ("", "nothing", "%"):
            with pytest.raises(Misuse, match=re.escape(f"no report {name!r} in the store")):
                store.find(name)


def test_the_list_tells_the_newest_first(tmp_path) -> None:
    other = replace(sample(), command="ci", started_at="2027-01-01T00:00:00Z", verdict="pass", exit_code=0)
    ids = saved(tmp_path / "s", other, sample())
    with Store(tmp_path / "s") as store:
        assert [entry.id for entry in store.entries()] == ids
        [entry] = store.entries(command="contract run")
        assert (entry.id, entry.verdict, entry.runs, entry.value("contract"), entry.value("overall")) == (
            ids[1], "fail", 8, 71.43, None,
        )  # fmt: skip
        assert len(store.entries(limit=1)) == 1


def test_pruning_keeps_what_is_shared(tmp_path) -> None:
    old = with_tapes(tmp_path / "a")
    new = replace(with_tapes(tmp_path / "b"), started_at="2027-01-01T00:00:00Z")
    (tmp_path / "b" / "r-0001.tape").write_text("only here")
    ids = saved(tmp_path / "s", old, new)
    with Store(tmp_path / "s", write=True) as store:
        gone = store.prune(keep=1)
        assert (gone.reports, gone.tapes, gone.bytes) == ((ids[0],), 1, len("tape of r-0001"))
        assert [entry.id for entry in store.entries()] == [ids[1]]
        assert all(tape.path.is_file() for tape in store.tapes())
        assert store.prune(before=datetime(2026, 6, 1, tzinfo=UTC)).reports == ()
        assert store.prune(before=datetime(2028, 1, 1, tzinfo=UTC)).tapes == 8
    assert not [path for path in (tmp_path / "s" / "content").rglob("*") if path.is_file()]


MANY = """
import sys
from pathlib import Path
from report_samples import sample
from store_support import with_tapes
from flakestorm.reports.document import to_document
from flakestorm.store.sqlite import Store
folder = Path(sys.argv[1])
report = to_document(with_tapes(folder / sys.argv[2]))
with Store(folder / "s", write=True) as store:
    for _ in range(10):
        store.save(report)
        store.prune(keep=8)
"""


def test_a_report_that_is_pruned_while_its_command_is_at_work_is_kept_whole(tmp_path) -> None:
    report = to_document(with_tapes(tmp_path / "r"))
    first, *others = report["runs"]
    outline = {**report, "runs": [], "cells": []}
    with Store(tmp_path / "s", write=True) as store, Store(tmp_path / "s", write=True) as other:
        id_ = store.begin(outline)
        other.prune(keep=0)
        store.add(id_, [{**outline, "runs": [first]}])
        other.prune(keep=0)
        store.finish(id_, report)
        assert store.document(id_)["cells"] == report["cells"]
        assert [run["id"] for run in store.document(id_)["runs"]] == [run["id"] for run in report["runs"]]
        assert others
        assert all(tape.path.is_file() for tape in store.tapes())


def test_processes_write_and_prune_side_by_side(tmp_path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", MANY, str(tmp_path), str(n)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    for each in running:
        _, err = each.communicate(timeout=120)
        assert (each.returncode, err) == (0, "")
    with Store(tmp_path / "s") as store:
        assert len(store.entries()) == 8
        assert all(tape.path.is_file() for tape in store.tapes())


def test_a_report_is_forgotten_while_it_holds_no_run(tmp_path) -> None:
    outline = to_document(replace(sample(), runs=(), cells=()))
    with Store(tmp_path, write=True) as store:
        empty, whole = store.begin(outline), store.save(to_document(sample()))
        for id_ in (empty, whole, "nobody"):
            store.forget(id_)
        assert [entry.id for entry in store.entries()] == [whole]
