import json
from dataclasses import replace

import pytest

from flakestorm.cli.options import FORMATS
from flakestorm.engine.events import Score
from flakestorm.reports.document import write_json
from report_samples import empty, sample
from store_support import saved
from unit_cli import run


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("form", FORMATS)
def test_a_saved_report_comes_in_any_form(folder, capsys, form) -> None:
    [id_] = saved(folder / ".flakestorm", sample())
    write_json(sample(), "x.json")
    assert run("report", id_, "--format", form) == 0
    by_id = capsys.readouterr().out
    assert run("report", "x.json", "--format", form) == 0
    assert capsys.readouterr().out == by_id
    assert "no-false-booking" in by_id
    assert run("report", "latest", "--format", form, "-o", "out/file") == 0
    assert "no-false-booking" in (folder / "out" / "file").read_text()


def test_the_files_name_says_the_form(folder) -> None:
    saved(folder / ".flakestorm", sample())
    assert run("report", "latest", "-o", "results.xml") == 0
    assert (folder / "results.xml").read_text().startswith("<?xml")


def test_alone_it_lists_what_is_saved(folder, capsys) -> None:
    assert run("report") == 2
    assert "nothing was saved yet" in capsys.readouterr().err
    [id_] = saved(folder / ".flakestorm", sample())
    assert run("report") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [id_, "contract", "run", "fail", "71.43", "8"]
    assert run("report", "--format", "json") == 0
    [entry] = json.loads(capsys.readouterr().out)["reports"]
    assert (entry["id"], entry["verdict"], entry["runs"]) == (id_, "fail", 8)


def test_the_score_is_a_number_and_nothing_else(folder, capsys) -> None:
    write_json(sample(), "x.json")
    assert run("score", "x.json") == 0
    assert capsys.readouterr().out == "71.43\n"
    overall = Score(0.5, 0.4, 0.6, 1, 2, 0)
    saved(folder / ".flakestorm", replace(sample(), scores={**sample().scores, "overall": overall}))
    assert run("score") == 0
    assert capsys.readouterr().out == "0.5\n"
    write_json(empty(), "e.json")
    assert run("score", "e.json") == 3
    assert capsys.readouterr().out == "no data\n"
    assert run("score", "none") == 2


def test_the_newest_score_is_no_comparisons(folder, capsys) -> None:
    from compare_support import comparison_of, pair_of
    from flakestorm.reports.comparison import to_document
    from flakestorm.store.sqlite import Store

    with Store(folder / ".flakestorm", write=True) as store:
        store.save({**to_document(comparison_of([pair_of([True], [True])])), "started_at": "2099-01-01T00:00:00.000Z"})
    assert run("score") == 2
    assert "only comparisons are saved here" in capsys.readouterr().err
    saved(folder / ".flakestorm", sample())
    assert run("score") == 0
    assert capsys.readouterr().out == "71.43\n"


def test_a_file_whose_suffix_no_form_has_is_not_written(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    write_json(sample(), "x.json")
    assert run("report", "x.json", "-o", "r.docx") == 2
    said = capsys.readouterr().err
    assert ".html" in said
    assert "--format" in said
    assert not (tmp_path / "r.docx").exists()
    assert run("report", "x.json", "-o", "r.docx", "--format", "markdown") == 0
    assert (tmp_path / "r.docx").read_text().startswith("## ")
