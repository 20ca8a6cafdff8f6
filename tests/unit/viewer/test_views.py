import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from flakestorm.engine.events import Score
from flakestorm.errors import Misuse
from flakestorm.reports.document import to_document
from flakestorm.store.sqlite import Store
from flakestorm.viewer.shelf import Saved, Shelf
from flakestorm.viewer.views import cell_view, entry_view, report_view, run_row, run_view, verdict_of
from report_samples import empty, hostile, sample
from viewer_support import BLAMED, FOUND


def kept(folder: Path, document: dict) -> tuple[Shelf, Saved]:
    with Store(folder, write=True) as store:
        id_ = store.save(document)
    shelf = Shelf(folder)
    return shelf, shelf.saved(id_)


def test_a_report_has_its_grid_scores_and_what_did_not_pass(tmp_path: Path) -> None:
    shelf, saved = kept(tmp_path, to_document(sample()))
    found = report_view(saved, partial(shelf.runs, saved.id))
    assert (found["verdict"], found["runs"], found["seed"], found["done"]) == ("fail", 8, "42", True)
    squares = {
        (row["name"], i["id"]): square
        for row in found["grid"]["rows"]
        for i, square in zip(found["grid"]["invariants"], row["squares"], strict=True)
    }
    assert squares["booking-times-out", "no-false-booking"]["mark"] == "fail"
    assert squares["model-cut-short", "fast"]["label"] == "model-cut-short, fast: inconclusive"
    assert found["broken"][0]["shown"] == "booking-times-out × no-false-booking"
    assert found["broken"][0]["next"].startswith("Look at what the agent does after tool/book_flight#1 timeout:300")
    assert found["scores"][0]["value"] == "71.43"
    assert (found["findings"], found["blame"], found["coverage"]) == ([], None, None)


def test_a_report_without_anything_can_be_shown(tmp_path: Path) -> None:
    shelf, saved = kept(tmp_path, to_document(empty()))
    assert report_view(saved, partial(shelf.runs, saved.id))["grid"] == {"invariants": [], "rows": []}


def test_keys_of_other_commands_are_shown_whatever_they_hold(tmp_path: Path) -> None:
    shelf, saved = kept(tmp_path / "c", to_document(replace(sample(), command="blame", blame=BLAMED)))
    assert report_view(saved, partial(shelf.runs, saved.id))["blame"]["curve"][1] == [1.0, 0.2, 0.1, 0.4]
    shelf, saved = kept(tmp_path / "a", to_document(replace(sample(), command="explore", **FOUND)))
    found = report_view(saved, partial(shelf.runs, saved.id))
    assert found["findings"][0]["schedule"] == ["tool/search#1 error"]
    assert found["coverage"] == {"sites": "3 of 3", "singles": "9 of 9", "pairs": "12 of 14", "complete": "no"}
    odd = {"blame": {"curve": [1, ["x", None, 1, 1], [1]]}, "findings": [1, {"schedule": 3}], "coverage": [1]}
    shelf, saved = kept(tmp_path / "b", {**to_document(sample()), **odd})
    found = report_view(saved, partial(shelf.runs, saved.id))
    assert found["blame"]["curve"] == [[0.0, 0.0, 1.0, 1.0]]
    assert (len(found["findings"]), found["coverage"]) == (1, None)


def test_a_cells_failures_come_first(tmp_path: Path) -> None:
    _, saved = kept(tmp_path, to_document(sample()))
    square, cells = cell_view(saved, "no-chaos", "fast")
    assert [cell.verdict for cell in cells] == ["fail", "pass"]
    assert square["about"] == ["low", "latency"]
    with pytest.raises(Misuse, match="has no cell 'no-chaos' x 'other'"):
        cell_view(saved, "no-chaos", "other")


def test_a_run_has_all_that_its_document_says(tmp_path: Path) -> None:
    shelf, saved = kept(tmp_path, to_document(sample()))
    [run] = shelf.runs(saved.id, ["r-0005"])
    row = run_row(run, saved)
    assert (row["verdict"], row["failed"], row["fired"]) == ("fail", ["no-false-booking", "fast"], 1)
    found = run_view({**run, "mutation": {"type": "noise"}}, saved, taped=False)
    assert found["faults"]["fired"] == [{"site": "tool/book_flight#1", "mode": "timeout:300", "detail": "no reply"}]
    assert len(found["cells"]) == 4
    assert found["mutation"] == {"type": "noise"}


def test_the_worst_verdict_of_its_cells_is_a_runs() -> None:
    assert verdict_of([]) == ""
    assert verdict_of([{"verdict": "pass"}, {"verdict": "inconclusive"}]) == "inconclusive"
    assert verdict_of([{"verdict": "inconclusive"}, {"verdict": "fail"}]) == "fail"


def test_hostile_text_is_made_visible(tmp_path: Path) -> None:
    shelf, saved = kept(tmp_path, to_document(replace(hostile(), started_at="2026-05-04T10:00:00Z")))
    report = report_view(saved, partial(shelf.runs, saved.id))
    names = [row.pop("name") for row in report["grid"]["rows"]]  # asked for again, so they travel as they are
    ids = [each["id"] for each in report["grid"]["invariants"]]
    for each in (*report["grid"]["invariants"], *report["broken"]):
        each.pop("id", None), each.pop("scenario", None), each.pop("invariant", None)
    [run] = shelf.runs(saved.id, [saved.runs[0]])
    one = run_view(run, saved, taped=True)
    for cell in one["cells"]:
        del cell["scenario"], cell["invariant"]
    entries = [entry_view(entry) for entry in shelf.entries()]
    said = json.dumps([report, one, entries], ensure_ascii=False)
    assert not {"\x1b", "\u202e", "\x00", "\u2028", "\ud800"} & set(said)
    assert cell_view(saved, names[2], ids[1])[1]


def test_nothing_that_failed_shows_as_full_marks(tmp_path: Path) -> None:
    scores = {"chaos": Score(0.9999, 0.99, 1.0, 99, 100, 0), "contract": Score(99.99, 99.0, 100.0, 99, 100, 0)}
    report = replace(sample(), scores={**scores, "replay": Score(None, None, None, 0, 0, 0)})
    shelf, saved = kept(tmp_path, to_document(report))
    found = report_view(saved, partial(shelf.runs, saved.id))["scores"]
    assert [(each["value"], each["range"], each["data"]) for each in found] == [
        ("0.999", ["0.990", "1.000"], True),
        ("99.99", ["99.00", "100.00"], True),
        ("no data", None, False),
    ]
    assert entry_view(shelf.entries()[0])["scores"] == {"chaos": "0.999", "contract": "99.9", "replay": None}
