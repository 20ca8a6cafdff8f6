"""Fork and shrink from the viewer: what is started, for whom, one at a time, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e_support import wait_until
from flakestorm.tape.reader import Tape
from project_support import Asking, Project, project
from upstream import Gate
from viewer_support import viewing


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with project(tmp_path_factory.mktemp("project")) as found:
        yield found


@pytest.fixture(scope="module")
def asking(made: Project) -> Iterator[Asking]:
    with viewing(made.folder) as viewer:
        yield Asking(viewer)


def fork(made: Project, **more: Any) -> dict[str, Any]:
    of = f"{made.report}/r-0001"
    return {"kind": "fork", "of": of, "at": 0, "change": "fault", "value": "error:503", "tools": "live", **more}


def ended(asking: Asking, id_: str) -> dict[str, Any]:
    wait_until(lambda: asking.get("job", id=id_)["state"] != "running")
    return asking.get("job", id=id_)


def test_a_fork_is_made_and_leads_to_its_tape_and_the_difference(made: Project, asking: Asking) -> None:
    before = made.up.count("/flights"), made.up.count("/weather")
    planned = asking.get("plan", **fork(made, change="set", value=""))
    assert made.up.count("/weather") == before[1]  # saying what would be done does nothing
    id_ = asking.post("start", fork(made, change="set", value='["none"]')).json()["id"]
    found = ended(asking, id_)
    assert (found["state"], found["line"]) == ("done", planned["line"])
    assert found["result"]["output"] == "1 flights, sunny."
    assert (made.up.count("/flights"), made.up.count("/weather")) == (before[0], before[1] + 1)
    assert found["result"]["said"]["Called for real"] == "tool/weather#1"
    assert "\\x1b[31m" in found["log"]  # what the agent printed, made visible
    child = f"tape:{found['result']['tape']}"
    assert asking.get("diff", left=f"{made.report}/r-0001", right=child)["differ"] == 1
    again = asking.get("plan", **fork(made, of=child, at=1))  # and can be forked itself
    assert (again["problem"], "--at=tool/weather#1" in again["line"]) == ("", True)
    assert (
        str(Tape.open(made.folder / ".flakestorm" / found["result"]["tape"]).header["parent"]["site"])
        == "tool/flights#1"
    )


def test_a_shrink_leads_to_the_smallest_case(made: Project, asking: Asking) -> None:
    id_ = asking.post("start", {"kind": "shrink", "of": f"{made.report}/r-0002", "budget": 40}).json()["id"]
    found = ended(asking, id_)
    assert found["state"] == "done", found["log"]
    assert found["progress"] == {"done": int(found["result"]["said"]["Runs"]), "planned": 40}
    assert found["result"]["said"]["Faults"] == "2 before, 1 now"
    assert "--inject 'tool/flights#1=error" in found["result"]["reproduce"]
    assert asking.get("tape", of=f"tape:{found['result']['tape']}")["output"] == "It is booked."
    assert asking.get("jobs")["items"][0]["id"] == id_


def test_one_at_a_time_and_it_can_be_cancelled(made: Project, asking: Asking) -> None:
    made.gate = Gate()
    try:
        id_ = asking.post("start", fork(made)).json()["id"]
        wait_until(lambda: asking.get("job", id=id_)["progress"]["done"] == 1)  # the first call is on the child's tape
        assert asking.get("plan", **fork(made))["busy"] == id_
        refused = asking.post("start", fork(made))
        assert (refused.status_code, refused.json()["error"]) == (
            404, f"{id_} is under way; one at a time: wait for its end, or cancel it"
        )  # fmt: skip
        with viewing(made.folder) as other:
            assert "another viewer" in Asking(other).post("start", fork(made)).json()["error"]
        assert asking.post("cancel", {"id": id_}).status_code == 200
        assert asking.get("job", id=id_)["state"] == "cancelled"
    finally:
        made.gate.open()
        made.gate = None
    assert asking.post("start", fork(made)).status_code == 200  # and the next one can start
    assert ended(asking, asking.get("jobs")["items"][0]["id"])["state"] == "done"


def test_it_ends_with_the_viewer(made: Project) -> None:
    made.gate = Gate()
    try:
        with viewing(made.folder) as viewer:
            asking = Asking(viewer)
            id_ = asking.post("start", fork(made)).json()["id"]
            wait_until(lambda: asking.get("job", id=id_)["progress"]["done"] == 1)
            code, err = viewer.stop()
        assert (code, "Traceback" in err) == (130, False)
        with viewing(made.folder) as viewer:  # the project is free again
            made.gate.open()
            assert Asking(viewer).post("start", fork(made)).status_code == 200
            ended(Asking(viewer), Asking(viewer).get("jobs")["items"][0]["id"])
    finally:
        made.gate.open()
        made.gate = None


@pytest.mark.parametrize(
    ("other", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Origin": None}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Host": "evil.test"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 403),
    ],
)
def test_nobody_but_our_own_page_starts_anything(
    made: Project, asking: Asking, other: dict[str, str | None], status: int
) -> None:
    cookie = f"flakestorm-{asking.viewer.root.rpartition(':')[2]}=x"
    before = made.up.count(), asking.get("jobs")["total"]
    for path in ("start", "cancel"):
        assert asking.post(path, fork(made), Cookie=cookie, **other).status_code == status
    assert (made.up.count(), asking.get("jobs")["total"]) == before


def test_what_makes_no_sense_is_refused_and_nothing_is_made(made: Project, asking: Asking) -> None:
    folder = made.folder / ".flakestorm" / "work"
    before = set(folder.iterdir()) if folder.exists() else set()
    for wish, status, words in (
        (fork(made, kind="run"), 404, "a page can start"),
        (fork(made, at=99), 404, "no exchange 99"),
        (fork(made, value="nonsense"), 404, "nonsense"),
        (fork(made, of="tape:../../etc/passwd"), 404, "there is no tape"),
        (fork(made, of="x/../../y"), 404, "no report"),
        (fork(made, value=["a"]), 400, "are texts"),
    ):
        answer = asking.post("start", wish)
        assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text
    assert (set(folder.iterdir()) if folder.exists() else set()) == before


def test_a_report_whose_config_is_gone_starts_nothing(made: Project, asking: Asking, tmp_path: Path) -> None:
    config = made.folder / "flakestorm.yaml"
    text = config.read_text()
    config.unlink()
    try:
        assert "is not in" in asking.post("start", fork(made)).json()["error"]
        assert "is not in" in asking.get("run", id=made.report, run="r-0001")["refused"]
    finally:
        config.write_text(text)
