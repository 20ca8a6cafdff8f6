from pathlib import Path

import pytest

from compare_support import comparison_of, pair_of
from flakestorm.errors import FlakestormError
from flakestorm.reports.comparison import to_document
from flakestorm.store.sqlite import Store
from flakestorm.viewer.answers import MOST, Answers
from flakestorm.viewer.shelf import Shelf
from report_samples import sample
from viewer_support import Asked, saved_with_tapes


@pytest.fixture
def id_(tmp_path: Path) -> str:
    return saved_with_tapes(tmp_path / "s", tmp_path / "t", sample())


@pytest.fixture
def answers(tmp_path: Path, id_: str) -> Answers:
    return Answers(Shelf(tmp_path / "s"))


def ask(answer, **query: object) -> dict:
    return answer(Asked({name: str(value) for name, value in query.items()}))


def test_lists_come_in_slices(answers: Answers, id_: str) -> None:
    found = ask(answers.runs, id=id_, offset=2, limit=3)
    assert (found["total"], [run["id"] for run in found["items"]]) == (8, ["r-0003", "r-0004", "r-0005"])
    assert ask(answers.runs, id=id_, offset=-5, limit=MOST * 10)["items"][0]["id"] == "r-0001"
    assert ask(answers.runs, id=id_, verdict="inconclusive")["total"] == 2
    assert ask(answers.reports)["items"][0]["id"] == id_


def test_a_cell_leads_to_its_runs(answers: Answers, id_: str) -> None:
    found = ask(answers.cell, id=id_, scenario="no-chaos", invariant="fast", limit=1)
    assert (found["total"], found["items"][0]["run"]["id"], found["items"][0]["also"]) == (2, "r-0002", True)


def test_a_run_knows_its_neighbours_and_its_tape(answers: Answers, id_: str) -> None:
    found = ask(answers.run, id=id_, run="r-0001")
    assert (found["before"], found["after"], found["taped"]) == (None, "r-0002", True)
    assert found["other"] is None
    assert not ask(answers.run, id=id_, run="r-0008")["taped"]
    with pytest.raises(FlakestormError, match="has no run 'x'"):
        ask(answers.run, id=id_, run="x")


def test_a_tape_is_told_line_by_line(answers: Answers, id_: str) -> None:
    of = f"{id_}/r-0002"
    assert ask(answers.tape, of=of)["exchanges"] == 4
    assert [row["kind"] for row in ask(answers.exchanges, of=of, offset=1)["items"]] == ["tool", "llm", "tool"]
    assert ask(answers.exchange, of=of, at=2)["site"] == "llm/gpt-4o#2"


def test_two_runs_side_by_side(answers: Answers, id_: str) -> None:
    sides = {"left": f"{id_}/r-0001", "right": f"{id_}/r-0002"}
    found = ask(answers.diff, **sides)
    assert (found["total"], found["differ"], found["first"]) == (4, 1, 3)
    assert [row["at"] for row in ask(answers.diff, **sides, only=1)["items"]] == [3]
    pair = ask(answers.pair, **sides, at=3)
    assert (pair["left"], pair["right"]["site"], pair["both"]) == (None, "tool/search#2", False)
    assert ask(answers.pair, **sides, at=0)["differences"] == {"asked": [], "said": []}
    with pytest.raises(FlakestormError, match="there is no pair 9"):
        ask(answers.pair, **sides, at=9)


def test_a_report_is_given_whole_too(answers: Answers, id_: str) -> None:
    assert '"flakestorm-report/1"' in answers.document(Asked({"id": id_}))
    page = answers.page(Asked({"id": id_}))
    assert 'data-testid="cell"' in page
    assert "llm/gpt-4o#1" in page  # with its timelines


def test_a_comparison_is_shown_by_its_verdict_and_its_runs(tmp_path: Path) -> None:
    pairs = [pair_of([True, True], [True, False], trial=trial) for trial in range(1, 8)]
    with Store(tmp_path, write=True) as store:
        id_ = store.save(to_document(comparison_of(pairs)))
    answers = Answers(Shelf(tmp_path))
    found = ask(answers.report, id=id_)
    assert (found["comparison"], found["grid"], found["broken"]) == (True, None, [])
    assert found["headline"]
    run = ask(answers.runs, id=id_)["items"][0]
    one = ask(answers.run, id=id_, run=run["id"])
    assert one["cells"]
    assert (run["id"].partition("/")[0], one["other"].partition("/")[0]) == ("base", "head")
    assert "</html>" in answers.page(Asked({"id": id_}))
    assert '"flakestorm-compare/1"' in answers.document(Asked({"id": id_}))


def test_every_answer_has_an_address(answers: Answers) -> None:
    public = {name for name in vars(Answers) if not name.startswith("_")} - {"all", "page", "document"}
    assert set(answers.all()) == public
