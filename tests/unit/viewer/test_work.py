import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from flakestorm.errors import Misuse
from flakestorm.reports.document import dumps
from flakestorm.viewer.orders import CHILD, REPLY, Order
from flakestorm.viewer.work import Job, Work, _outcome
from report_samples import shrunk

UNTIL_ENDED_S = 60


def order(folder: Path, *words: str, kind: str = "fork", body: bytes | None = None) -> Order:
    return Order(kind, "r/1", "a title", words, ("it is run",), folder, body)  # type: ignore[arg-type]


async def ended(work: Work) -> Job:
    job = next(reversed(work.jobs.values()))
    await asyncio.wait_for(asyncio.gather(*work._ends), UNTIL_ENDED_S)
    return job


async def test_a_command_is_carried_out_in_a_folder_of_its_own(tmp_path: Path) -> None:
    work = Work(tmp_path / "store")
    assert work.next_id("fork") == "fork-1"
    job = await work.start("fork-1", order(tmp_path, "schema", body=b"{}"))
    assert (job.state, work.running, work.next_id("fork")) == ("running", job, "fork-2")
    assert (await ended(work)) is job
    assert (job.state, job.code, work.running) == ("failed", 0, None)  # it made no tape
    assert b"properties" in (job.folder / "stdout.txt").read_bytes()
    assert (job.folder / REPLY).read_bytes() == b"{}"
    assert job.seconds > 0


async def test_what_went_wrong_is_in_its_words(tmp_path: Path) -> None:
    work = Work(tmp_path)
    job = await work.start(
        "fork-1", order(tmp_path, "fork", "--at=tool/x#1", "--resample", "-o", "b", "--", "none.tape")
    )
    await ended(work)
    assert (job.state, job.code) == ("failed", 2)
    assert "none.tape" in job.said()


async def test_one_at_a_time_also_with_another_viewer_of_the_project(tmp_path: Path) -> None:
    work, other = Work(tmp_path), Work(tmp_path)
    job = await work.start("fork-1", order(tmp_path, "gateway"))
    with pytest.raises(Misuse, match="fork-1 is under way"):
        await work.start("fork-2", order(tmp_path, "schema"))
    with pytest.raises(Misuse, match="another viewer"):
        await other.start("fork-3", order(tmp_path, "schema"))
    assert other.jobs == {}
    await work.cancel(job.id)
    assert job.state == "cancelled"
    assert job.process is not None
    assert job.process.returncode is not None
    await work.cancel(job.id)  # again, and of what there is not, does nothing
    await work.cancel("fork-9")
    await other.start("fork-4", order(tmp_path, "schema"))
    assert (await ended(other)).code == 0


async def test_what_is_under_way_ends_with_the_viewer(tmp_path: Path) -> None:
    work = Work(tmp_path)
    job = await work.start("shrink-1", order(tmp_path, "gateway", kind="shrink"))
    await work.close()
    assert job.process is not None
    assert (job.state, job.process.returncode is None) == ("cancelled", False)


def test_how_far_it_is(tmp_path: Path) -> None:
    fork = Job("fork-1", order(tmp_path), tmp_path, 0.0)
    assert fork.progress() == {"done": 0, "planned": 0}
    tape = tmp_path / CHILD
    for lines, done in ((1, 0), (3, 2), (4, 3)):
        tape.write_text("{}\n" * lines)
        assert fork.progress()["done"] == done
    shrink = Job("shrink-1", replace(order(tmp_path, kind="shrink"), runs=9), tmp_path, 0.0)
    assert shrink.progress() == {"done": 0, "planned": 9}
    tapes = smallest(tmp_path)
    assert shrink.progress() == {"done": 2, "planned": 9}
    shrink.code, shrink.made = 1, 5
    assert shrink.progress() == {"done": 5, "planned": 9}
    assert len(list(tapes.iterdir())) == 2


def smallest(folder: Path) -> Path:
    """A shrink's folder, in which the second run is the smallest."""
    (folder / "stdout.txt").write_text(dumps(shrunk()))
    tapes = folder / "smallest.tapes"
    tapes.mkdir()
    for n in (1, 2):
        (tapes / f"r-000{n}.tape").write_text("")
    return tapes


def test_of_a_shrinks_tapes_the_smallest_is_kept(tmp_path: Path) -> None:
    tapes = smallest(tmp_path)
    found = _outcome(Job("shrink-1", order(tmp_path, kind="shrink"), tmp_path, 0.0))
    assert found is not None
    assert found.tape is not None
    assert [tape.name for tape in tapes.iterdir()] == [found.tape.name] == ["r-0002.tape"]
