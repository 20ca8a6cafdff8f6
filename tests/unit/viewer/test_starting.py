from dataclasses import replace
from pathlib import Path

import pytest

from flakestorm.errors import Misuse
from flakestorm.viewer.orders import Order
from flakestorm.viewer.shelf import Shelf
from flakestorm.viewer.starting import Starting
from flakestorm.viewer.work import Job, Work
from report_samples import HOSTILE, sample
from viewer_support import Asked, recorded, saved_with_tapes


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "flakestorm.yaml").write_text("")
    return tmp_path / ".flakestorm"


@pytest.fixture
def work(store: Path) -> Work:
    return Work(store)


@pytest.fixture
def starting(store: Path, work: Work) -> Starting:
    return Starting(Shelf(store), work)


def test_what_would_be_started_is_said_first(starting: Starting, store: Path, tmp_path: Path) -> None:
    id_ = saved_with_tapes(store, tmp_path / "t", sample())
    asked = {"kind": "fork", "of": f"{id_}/r-0001", "at": "1", "change": "fault", "value": "error:503"}
    found = starting.plan(Asked(asked))
    assert found["line"].startswith("flakestorm fork -c ")
    assert (found["problem"], found["busy"]) == ("", None)
    assert "work/fork-1/fork.tape" in found["says"][-1]
    assert "error" in found["modes"]
    found = starting.plan(Asked({**asked, "value": "nonsense"}))
    assert "nonsense" in found["problem"]
    assert found["line"] == ""
    assert starting.plan(Asked({"kind": "shrink", "of": f"{id_}/r-0005"}))["line"].endswith(f"-- '{id_}#r-0005'")
    assert starting.startable(Asked({"of": f"{id_}/r-0001"})) == {"refused": ""}
    other = saved_with_tapes(store, tmp_path / "t", replace(sample(), config="gone.yaml"))
    assert "gone.yaml" in starting.startable(Asked({"of": f"{other}/r-0001"}))["refused"]
    assert not (store / "work").exists()  # asking makes nothing


def job(work: Work, id_: str, **result: object) -> Job:
    kind = id_.partition("-")[0]
    order = Order(kind, "r/1", "a title", ("fork",), ("it is run",), work.folder, None)  # type: ignore[arg-type]
    made = work.jobs[id_] = Job(id_, order, work.folder / id_, 0.0, code=0, result=result)
    return made


def test_what_came_of_a_fork(starting: Starting, work: Work, store: Path) -> None:
    tape = recorded(store / "work" / "fork-1" / "fork.tape")
    job(work, "fork-1", tape=str(tape), environment="pure", why=HOSTILE, served=2, live=["a", "b"], output="Hi \x1b[1m")
    found = starting.job(Asked({"id": "fork-1"}))
    assert (found["state"], found["code"], found["line"]) == ("done", 0, "flakestorm fork")
    result = found["result"]
    assert (result["tape"], result["output"]) == ("work/fork-1/fork.tape", "Hi \\x1b[1m")
    assert result["said"]["Called for real"] == "a, b"
    assert "\x1b" not in str(found)
    assert starting.jobs(Asked({}))["items"] == [{"id": "fork-1", "title": "a title", "state": "done"}]
    with pytest.raises(Misuse, match="has not started 'x'"):
        starting.job(Asked({"id": "x"}))


def test_what_came_of_a_shrink(starting: Starting, work: Work, tmp_path: Path) -> None:
    elsewhere = recorded(tmp_path / "elsewhere.tape")
    job(work, "shrink-1", tape=str(elsewhere), invariant="i", reason="r", before=2, after=1, runs=6, smallest=True,
        reproduce="flakestorm run")  # fmt: skip
    result = starting.job(Asked({"id": "shrink-1"}))["result"]
    assert result["said"] == {"Breaks": "i: r", "Faults": "2 before, 1 now", "Runs": "6", "Remark": ""}
    assert (result["tape"], result["reproduce"]) == (None, "flakestorm run")  # a tape outside is not linked to
    job(work, "shrink-2", tape=None, runs=3, why="the case does not fail any more")
    assert starting.job(Asked({"id": "shrink-2"}))["result"]["said"]["Remark"] == "the case does not fail any more"
    job(work, "shrink-3")
    assert starting.job(Asked({"id": "shrink-3"}))["result"] is None
