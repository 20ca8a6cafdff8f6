from dataclasses import replace
from pathlib import Path

import pytest

from corpus_support import corpus_world, manifest, project
from flakestorm import api
from flakestorm.api.blame_case import case_of
from flakestorm.api.blaming import blame, pinned_of
from flakestorm.engine.blame import Terms
from flakestorm.errors import Misuse
from flakestorm.reports.document import from_document, to_document

ENTRY = next(entry for entry in manifest() if entry.name == "stale_price")
QUICK = Terms(first=6, steady=6)


def test_a_report_comes_back_and_is_gone_on_from(tmp_path: Path) -> None:
    with corpus_world() as up:
        work = api.load(project(tmp_path, ENTRY, up))
        run = work.inject(0, ["tool/price#2=error"], api.Options(tapes=tmp_path / "a")).runs[0]
        case = case_of(work, Path(run.tape), run=run, breaks=[ENTRY.invariant])
        report = blame(work, case, api.Options(tapes=tmp_path / "b"), QUICK)
        assert report.blame is not None
        assert report.blame.named is not None
        assert report.blame.named.event.site == "tool/price#2"
        again = from_document(to_document(report))
        assert again.blame == report.blame
        asked = up.count()
        resumed = blame(work, case, api.Options(tapes=tmp_path / "c", resume=again), QUICK)
        assert up.count() == asked  # nothing was left to do
        assert resumed.blame is not None
        assert resumed.blame.curve == report.blame.curve
        other = case_of(work, Path(run.tape), run=run, breaks=[ENTRY.invariant], healthy="x")
        with pytest.raises(Misuse, match="not a blame of this run"):
            blame(work, other, api.Options(tapes=tmp_path / "d", resume=replace(report, blame=None)))


def test_from_python(tmp_path: Path) -> None:
    with corpus_world() as up:
        work = api.load(project(tmp_path, ENTRY, up))
        run = work.inject(0, ["tool/price#2=error"], api.Options(tapes=tmp_path / "a")).runs[0]
        found = work.blame(run.tape, budget=60, options=api.Options(tapes=tmp_path / "b")).blame
        assert found is not None
        assert found.named is not None
        assert (found.named.event.site, found.named.event.kind) == ("tool/price#2", "fault")


def test_a_scenario_says_what_is_pinned() -> None:
    assert pinned_of("first 12 recorded") == (12, "")
    assert pinned_of("first 3 recorded healthy reply") == (3, "healthy reply")
