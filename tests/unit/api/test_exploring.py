from pathlib import Path

import pytest

from corpus_support import corpus_world, manifest, project
from flakestorm import api
from flakestorm.errors import Misuse
from flakestorm.reports.document import from_document, to_document

ENTRY = next(entry for entry in manifest() if entry.name == "no_average")


def test_a_search_that_is_resumed_makes_no_run_twice_and_ends_the_same(tmp_path: Path) -> None:
    with corpus_world() as up:
        work = api.load(project(tmp_path, ENTRY, up))
        part = work.explore(api.Options(tapes=tmp_path / "a"), budget=4, modes=["error"])
        before = up.count()
        whole = work.explore(api.Options(tapes=tmp_path / "b", resume=part), modes=["error"])
        resumed = up.count() - before
        fresh = work.explore(api.Options(tapes=tmp_path / "c"), modes=["error"])
        made = up.count() - before - resumed
    assert resumed < made
    assert [f.schedule for f in whole.findings] == [f.schedule for f in fresh.findings]
    assert whole.coverage == fresh.coverage
    assert any("--budget 4" in note for note in part.notes)


def test_the_report_reads_back(tmp_path: Path) -> None:
    with corpus_world() as up:
        report = api.load(project(tmp_path, ENTRY, up)).explore(api.Options(tapes=tmp_path / "a"), modes=["error"])
    document = to_document(report)
    assert document["coverage"]["of"]["sites"] == 2
    assert {at["mode"] for at in document["findings"][0]["schedule"]} == {"error"}
    assert from_document(document) == report


def test_an_agent_that_fails_anyway_and_a_report_of_another_command_are_refused(tmp_path: Path) -> None:
    with corpus_world() as up:
        up.reply("/north", up_down())
        up.reply("/south", up_down())
        work = api.load(project(tmp_path, ENTRY, up))
        report = work.explore(api.Options(tapes=tmp_path / "a"), modes=["error"])
        assert (report.exit_code, report.verdict) == (3, "inconclusive")
        assert "fails without any fault: answers" in report.headline
        other = work.inject(0, options=api.Options(tapes=tmp_path / "b"))
        with pytest.raises(Misuse, match="not of `explore`"):
            work.explore(api.Options(tapes=tmp_path / "c", resume=other))


def up_down():
    from upstream import text

    return text("down", status=503)
