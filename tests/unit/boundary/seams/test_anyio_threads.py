"""A job of anyio's threads is a lane."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import anyio
import anyio._backends._asyncio as backend
import pytest
from anyio.to_thread import run_sync

from flakestorm.boundary.seams.anyio_threads import patches
from flakestorm.boundary.session import Crossing
from flakestorm.core.pipeline import chain


@pytest.fixture
def _held() -> Iterator[None]:
    (patch,) = patches(cast("ModuleType", backend))
    patch.apply()
    yield
    patch.revert()


@pytest.mark.usefixtures("_held")
async def test_jobs_are_named_by_who_awaits_them_and_take_arguments_and_fail_as_ever() -> None:
    crossing = Crossing("r-1", chain())
    found: dict[int, str] = {}

    def job(n: int) -> None:
        found[n] = crossing.lane()

    with crossing.active():
        for n in range(3):
            await run_sync(job, n)
        async with anyio.create_task_group() as group:
            group.start_soon(run_sync, job, 3)
        with pytest.raises(ZeroDivisionError):
            await run_sync(lambda: 1 // 0, abandon_on_cancel=True)
    assert found == {0: "1.job1", 1: "1.job2", 2: "1.job3", 3: "2.job1"}


@pytest.mark.usefixtures("_held")
async def test_outside_a_run_nothing_is_led() -> None:
    assert await run_sync(int, "7") == 7


def test_another_version_is_left_alone() -> None:
    assert patches(cast("ModuleType", SimpleNamespace())) == []
    assert patches(cast("ModuleType", SimpleNamespace(AsyncIOBackend=SimpleNamespace))) == []


def test_it_is_put_back() -> None:
    owner: Any = backend.AsyncIOBackend
    before = vars(owner)["run_sync_in_worker_thread"]
    (patch,) = patches(cast("ModuleType", backend))
    patch.apply()
    assert vars(owner)["run_sync_in_worker_thread"] is not before
    patch.revert()
    assert vars(owner)["run_sync_in_worker_thread"] is before
