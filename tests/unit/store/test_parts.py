import pytest

from flakestorm.errors import Misuse
from flakestorm.store import parts
from flakestorm.store.sqlite import Store
from report_samples import large, sample
from store_support import document, saved, with_tapes

pytestmark = pytest.mark.usefixtures("database")


def test_a_report_in_parts_is_the_whole_report(tmp_path) -> None:
    [id_] = saved(tmp_path / "s", sample())
    with Store(tmp_path / "s") as store:
        head, done = parts.head(store, id_)
        ids = parts.run_ids(store, id_)
        runs = parts.runs(store, id_, ids)
        assert {**head, "cells": parts.cells(store, id_), "runs": [runs[run] for run in ids]} == store.document(id_)
        assert done


def test_some_runs_of_many(tmp_path) -> None:
    [id_] = saved(tmp_path / "s", large(1200, 1))
    with Store(tmp_path / "s") as store:
        assert len(parts.runs(store, id_, parts.run_ids(store, id_))) == 1200
        assert parts.runs(store, id_, ["r-0007", "x"]).keys() == {"r-0007"}
        assert parts.runs(store, id_, []) == {}


def test_what_is_not_there(tmp_path) -> None:
    with Store(tmp_path / "s", write=True) as store:
        with pytest.raises(Misuse, match="no report 'x'"):
            parts.head(store, "x")
        assert parts.kept_tape(store, "x", "y") is None
        id_ = store.begin(document(runs=(), cells=()))
        assert parts.head(store, id_)[1] is False


def test_a_runs_tape_is_found_by_its_content(tmp_path) -> None:
    [id_] = saved(tmp_path / "s", with_tapes(tmp_path / "t"))
    with Store(tmp_path / "s") as store:
        path = parts.kept_tape(store, id_, "r-0002")
        assert path is not None
        assert path.read_text() == "tape of r-0002"
