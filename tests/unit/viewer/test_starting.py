from dataclasses import replace
from pathlib import Path

import pytest

from flakestorm.errors import Misuse
from flakestorm.viewer.orders import Order
from flakestorm.viewer.outcome import Outcome
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


def job(work: Work, id_: str, result: Outcome | None) -> None:
    kind = id_.partition("-")[0]
    order = Order(kind, "r/1", "a title", ("fork",), ("it is run",), work.folder, None)  # type: ignore[arg-type]
    work.jobs[id_] = Job(id_, order, work.folder / id_, 0.0, code=0, result=result)


def test_what_came_of_it(starting: Starting, work: Work, store: Path, tmp_path: Path) -> None:
    tape = recorded(store / "work" / "fork-1" / "fork.tape")
    job(work, "fork-1", Outcome({"Environment": f"pure: {HOSTILE}"}, tape, output="Hi \x1b[1m"))
    found = starting.job(Asked({"id": "fork-1"}))
    assert (found["state"], found["code"], found["line"]) == ("done", 0, "flakestorm fork")
    result = found["result"]
    assert (result["tape"], result["output"], result["failed"]) == ("work/fork-1/fork.tape", "Hi \\x1b[1m", False)
    assert "\x1b" not in str(found)
    job(work, "shrink-1", Outcome(tape=recorded(tmp_path / "elsewhere.tape"), error="no", reproduce="flakestorm run"))
    result = starting.job(Asked({"id": "shrink-1"}))["result"]
    assert (result["tape"], result["output"], result["failed"], result["reproduce"]) == (
        None, "no", True, "flakestorm run",  # a tape outside the store is not linked to
    )  # fmt: skip
    assert starting.job(Asked({"id": "shrink-1"}))["report"] is None
    early, late = (
        saved_with_tapes(
            store, tmp_path / "t", replace(sample(), command="shrink", started_at=f"2026-05-0{n}T10:00:00Z")
        )
        for n in (1, 3)
    )
    work.jobs["shrink-1"].at = "2026-05-02T00:00:00Z"
    assert starting.job(Asked({"id": "shrink-1"}))["report"] == late != early
    job(work, "shrink-2", None)
    assert starting.job(Asked({"id": "shrink-2"}))["result"] is None
    assert [(each["id"], each["state"]) for each in starting.jobs(Asked({}))["items"]] == [
        ("shrink-2", "failed"), ("shrink-1", "done"), ("fork-1", "done"),
    ]  # fmt: skip
    with pytest.raises(Misuse, match="has not started 'x'"):
        starting.job(Asked({"id": "x"}))
