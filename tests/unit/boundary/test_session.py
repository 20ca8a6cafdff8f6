"""Which run the current context belongs to."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context

import pytest

from flakestorm.boundary.session import Crossing, carry, crossing_in, current, outside
from flakestorm.core.clock import Clock
from flakestorm.core.pipeline import chain


def test_no_crossing_is_active_until_one_is_entered() -> None:
    crossing = Crossing("r-1", chain())
    assert current() is None
    with crossing.active():
        assert current() is crossing
    assert current() is None


def test_crossings_nest_and_are_left_by_an_exception_too() -> None:
    outer, inner = Crossing("r-1", chain()), Crossing("r-2", chain())
    with outer.active():
        with pytest.raises(KeyError), inner.active():
            raise KeyError(current())
        assert current() is outer
        with inner.active():
            assert current() is inner


def test_outside_belongs_to_nobody() -> None:
    with Crossing("r-1", chain()).active():
        with outside():
            assert current() is None
        assert current() is not None


def test_carry_calls_as_part_of_the_run() -> None:
    crossing = Crossing("r-1", chain())
    assert carry(crossing, lambda a, *, b: (current(), a, b), 1, b=2) == (crossing, 1, 2)
    assert current() is None


async def test_tasks_started_inside_belong_to_the_run() -> None:
    crossing = Crossing("r-1", chain())

    async def inside() -> Crossing | None:
        return current()

    with crossing.active():
        task = asyncio.create_task(inside())
    assert await task is crossing


def test_lanes_are_numbered_by_first_appearance() -> None:
    crossing = Crossing("r-1", chain())
    seen = [crossing.lane()]

    def elsewhere() -> None:
        seen.extend((crossing.lane(), crossing.lane()))

    for _ in range(2):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert [*seen, crossing.lane()] == ["1", "2", "2", "3", "3", "1"]
    assert Crossing("r-2", chain()).lane() == "1"


async def test_each_task_has_a_lane() -> None:
    crossing = Crossing("r-1", chain())

    async def ask() -> tuple[str, str]:
        first = crossing.lane()
        await asyncio.sleep(0)
        return first, crossing.lane()

    assert await asyncio.gather(ask(), ask()) == [("1", "1"), ("2", "2")]


def test_a_job_is_a_lane_named_by_who_submitted_it_and_not_by_who_takes_it() -> None:
    crossing = Crossing("r-1", chain())
    jobs = [crossing.led(crossing.lane, "job") for _ in range(3)]
    other = crossing.led(crossing.lane, "thread")
    assert [jobs[2](), jobs[0](), other(), jobs[1]()] == ["1.job3", "1.job1", "1.thread1", "1.job2"]
    assert crossing.lane() == "1", "whoever took them is on their own lane again"


def test_what_a_job_starts_descends_from_it() -> None:
    crossing = Crossing("r-1", chain())

    async def task() -> str:
        return crossing.lane()

    def job() -> list[str]:
        inner = crossing.led(crossing.lane, "job")
        return [inner(), crossing.lane(), asyncio.run(task()), asyncio.run(task())]

    crossing.led(str, "job")
    assert crossing.led(job, "job")() == ["1.job2.job1", "1.job2", "1.job2.task1", "1.job2.task2"]


def test_a_job_is_on_its_lane_in_whatever_context_it_is_made() -> None:
    crossing = Crossing("r-1", chain())
    with crossing.active():
        context = copy_context()
    assert crossing.led(context.run, "job")(crossing.lane) == "1.job1"


def test_a_job_that_fails_leaves_its_lane_too() -> None:
    crossing = Crossing("r-1", chain())
    with pytest.raises(ZeroDivisionError):
        crossing.led(lambda: 1 // 0, "job")()
    assert crossing.lane() == "1"


async def test_a_thread_can_go_on_for_its_caller_whose_loop_is_not_the_agent_s() -> None:
    crossing = Crossing("r-1", chain())
    call = crossing.here(crossing.lane)
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    assert (found, crossing.loop) == (["1"], None)


def test_a_crossing_says_whose_it_is() -> None:
    assert repr(Crossing("r-0007", chain())) == "<crossing of r-0007>"


async def test_a_run_knows_the_loop_it_was_last_seen_on_and_its_own_time() -> None:
    crossing = Crossing("r-1", chain())
    assert crossing.loop is None
    await asyncio.to_thread(crossing.seen)
    assert crossing.loop is None
    crossing.seen()
    assert crossing.loop is asyncio.get_running_loop()
    assert crossing.clock.skips
    clock = Clock(lambda: 0.0)
    assert Crossing("r-2", chain(), clock).clock is clock


def test_the_crossing_of_another_context_can_be_asked_for() -> None:
    crossing = Crossing("r-1", chain())
    with crossing.active():
        context = copy_context()
    assert crossing_in(context) is crossing
    assert crossing_in(copy_context()) is None
