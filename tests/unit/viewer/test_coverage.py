from pathlib import Path
from typing import Any

from flakestorm.viewer import coverage
from flakestorm.viewer.coverage import tried
from flakestorm.viewer.shelf import Saved


def saved(runs: list[dict[str, Any]], broken: tuple[str, ...] = ()) -> Saved:
    cells = {id_: [{"verdict": "fail"}] for id_ in broken}
    return Saved("x", True, {}, None, None, tuple(str(run["id"]) for run in runs), cells)


def run(id_: str, *fired: str) -> dict[str, Any]:
    return {"id": id_, "faults": {"fired": [dict(zip(("site", "mode"), each.split(), strict=True)) for each in fired]}}


RUNS = [
    run("r-1"),
    run("r-2", "tool/a#1 error", "tool/b#1 slow"),
    run("r-3", "tool/a#1 error"),
    run("r-4", "tool/a#1 error", "tool/a#1 error"),
    run("r-5", "tool/b#1 error"),
]


def test_a_square_counts_runs_and_leads_to_the_plainest_that_broke() -> None:
    found = tried(saved(RUNS, ("r-2", "r-4")), lambda _: RUNS)
    assert (found["modes"], found["beyond"]) == (["error", "slow"], 0)
    assert [row["site"] for row in found["rows"]] == ["tool/a#1", "tool/b#1"]
    (error, slow), (other, _) = (row["squares"] for row in found["rows"])
    assert error == {"runs": 3, "broke": 2, "run": "r-4"}
    assert (slow, other) == (None, {"runs": 1, "broke": 0, "run": "r-5"})


def test_it_is_bounded_and_takes_any_document(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(coverage, "RUNS", 2)
    asked: list[Any] = []
    odd = [{"id": "r-1"}, {"id": "r-2", "faults": {"fired": 3}}, {"id": "r-3", "faults": {"fired": [7]}}]
    found = tried(saved(RUNS), lambda wanted: asked.append(wanted) or odd)
    assert asked == [("r-1", "r-2")]
    assert found == {"modes": [], "rows": [], "beyond": 3}
