"""An agent's threads belong to the run that started them."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from flakestorm.boundary.seams.threads import patches
from flakestorm.boundary.session import Crossing, current
from flakestorm.core.pipeline import chain


@pytest.fixture(autouse=True)
def _threads_follow() -> Iterator[None]:
    applied = patches()
    for patch in applied:
        patch.apply()
    yield
    for patch in applied:
        patch.revert()


def crossing(run: str = "r-1") -> Crossing:
    return Crossing(run, chain())


def test_a_thread_started_inside_belongs_to_the_run() -> None:
    seen: list[Crossing | None] = []
    inside = crossing()
    thread = threading.Thread(target=lambda: seen.append(current()))
    with inside.active():
        thread.start()
    thread.join()
    assert seen == [inside]


def test_a_thread_started_outside_belongs_to_nobody() -> None:
    seen: list[Crossing | None] = []
    with crossing().active():
        thread = threading.Thread(target=lambda: seen.append(current()))
    thread.start()
    thread.join()
    assert seen == [None]


def test_a_thread_of_a_thread_too_and_a_subclass_and_a_timer() -> None:
    seen: list[Crossing | None] = []
    inside = crossing()

    class Worker(threading.Thread):
        def run(self) -> None:
            timer = threading.Timer(0, lambda: seen.append(current()))
            timer.start()
            timer.join()

    worker = Worker()
    with inside.active():
        worker.start()
    worker.join()
    assert seen == [inside]


def test_other_context_variables_do_not_follow_as_they_never_did() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="default")
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(variable.get()))
    token = variable.set("changed")
    with crossing().active():
        thread.start()
    variable.reset(token)
    thread.join()
    assert seen == ["default"]


def test_a_thread_that_cannot_start_is_as_it_was() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    with crossing().active(), pytest.raises(RuntimeError, match="once"):
        thread.start()
    assert "run" not in vars(thread)


def test_a_finished_thread_is_not_kept_alive() -> None:
    gc.collect()
    gc.disable()
    try:
        thread = threading.Thread(target=lambda: None)
        with crossing().active():
            thread.start()
        thread.join()
        dead = weakref.ref(thread)
        del thread
        assert dead() is None
    finally:
        gc.enable()


def test_a_pool_s_worker_takes_up_the_run_of_each_job() -> None:
    first, second = crossing("r-1"), crossing("r-2")
    with ThreadPoolExecutor(1) as pool:
        with first.active():
            jobs = [pool.submit(current)]
        with second.active():
            jobs.append(pool.submit(current))
        jobs.append(pool.submit(current))
        assert [job.result() for job in jobs] == [first, second, None]


def test_arguments_and_failures_pass_through_a_pool() -> None:
    with ThreadPoolExecutor(1) as pool, crossing().active():
        assert pool.submit(int, "ff", base=16).result() == 255
        assert list(pool.map(str, [1, 2])) == ["1", "2"]
        with pytest.raises(ValueError, match="zz"):
            pool.submit(int, "zz").result()


async def test_asyncio_s_own_threads_follow() -> None:
    inside = crossing()
    loop = asyncio.get_running_loop()
    with inside.active():
        assert await asyncio.to_thread(current) is inside
        assert await loop.run_in_executor(None, current) is inside


def test_a_job_s_lane_is_that_of_who_submitted_it_as_is_a_thread_s() -> None:
    inside, seen = crossing(), list[str]()
    with inside.active(), ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(inside.lane) for _ in range(5)]
        thread = threading.Thread(target=lambda: seen.append(inside.lane()))
        thread.start()
        thread.join()
        assert [job.result() for job in jobs] == [f"1.job{n}" for n in range(1, 6)]
        assert list(pool.map(lambda _: inside.lane(), "ab")) == ["1.job6", "1.job7"]
    assert seen == ["1.thread1"]
