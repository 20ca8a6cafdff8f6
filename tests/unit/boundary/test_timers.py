"""Timers of a run keep the run's time; those of others, and of calls that are really under way, keep their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio
import pytest

from flakestorm.boundary.patience import Patience
from flakestorm.boundary.session import Crossing, current, outside
from flakestorm.boundary.timers import timers_here, timers_on
from flakestorm.core.pipeline import chain


def line(run: str = "r-1") -> Crossing:
    return Crossing(run, chain())


async def delayed(crossing: Crossing, seconds: float) -> str:
    """A tool that takes so long, as a seam would hold it."""
    await Patience(crossing.clock, known=False).asleep(seconds)
    return "done"


async def by_timeout(work: Callable[[], object], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        await work()  # type: ignore[misc]


async def by_wait_for(work: Callable[[], object], seconds: float) -> None:
    await asyncio.wait_for(work(), seconds)  # type: ignore[arg-type]


async def by_anyio(work: Callable[[], object], seconds: float) -> None:
    with anyio.fail_after(seconds):
        await work()  # type: ignore[misc]


async def by_wait(work: Callable[[], object], seconds: float) -> None:
    task = asyncio.ensure_future(work())  # type: ignore[arg-type]
    done, _ = await asyncio.wait({task}, timeout=seconds)
    task.cancel()
    if not done:
        raise TimeoutError


@pytest.mark.parametrize("limit", [by_timeout, by_wait_for, by_anyio, by_wait])
async def test_an_agents_own_time_limit_ends_a_delay(limit) -> None:
    crossing = line()
    with crossing.active():
        for _ in range(2):  # also once the run is ahead of the loop
            began = crossing.clock.now()
            with pytest.raises(TimeoutError):
                await limit(lambda: delayed(crossing, 60.0), 9.0)
            assert 9 <= crossing.clock.now() - began < 50
        began = crossing.clock.now()
        await limit(lambda: delayed(crossing, 6.0), 9.0)
        assert 6 <= crossing.clock.now() - began < 50


async def test_the_loop_tells_each_run_its_own_time() -> None:
    first, second, loop = line("r-1"), line("r-2"), asyncio.get_running_loop()
    with first.active():
        began = loop.time()
        await delayed(first, 300.0)
        assert loop.time() - began >= 300
        with outside():
            assert loop.time() - began < 100
    with second.active():
        assert loop.time() - began < 100
    assert loop.time() - began < 100


async def test_timers_of_other_runs_and_of_real_calls_are_left_alone() -> None:
    first, second = line("r-1"), line("r-2")
    fired: list[str] = []
    loop = asyncio.get_running_loop()
    with second.active():
        timers = [loop.call_later(250, fired.append, "another run's")]
    timers.append(loop.call_later(250, fired.append, "nobody's"))
    with first.active():
        with outside():
            timers.append(loop.call_later(250, fired.append, "a real call's"))
        timers.append(loop.call_later(250, fired.append, "the run's"))
        await delayed(first, 300.0)
    assert fired == ["the run's"]
    for timer in timers:
        timer.cancel()


async def test_an_agent_that_works_on_meanwhile_sees_its_pauses_pass_in_order() -> None:
    crossing = line()
    seen: list[str] = []

    async def ticking() -> None:
        for n in range(1, 4):
            await asyncio.sleep(4)
            seen.append(f"tick {n}")

    with crossing.active():
        work = asyncio.gather(ticking(), delayed(crossing, 10.0))
        work_done = asyncio.ensure_future(work)
        work_done.add_done_callback(lambda _: seen.append("all"))
        tool = asyncio.ensure_future(delayed(crossing, 6.0))
        tool.add_done_callback(lambda _: seen.append("tool"))
        await tool
        await delayed(crossing, 60.0)
        await work_done
    assert seen == ["tick 1", "tool", "tick 2", "tick 3", "all"]


async def test_a_blocking_tool_in_a_thread_is_given_up_by_the_loop_that_awaits_it() -> None:
    crossing = line()

    def tool() -> str:
        found = current()
        assert found is not None
        Patience(found.clock, known=False, timers=timers_on(found.loop, found, blocking=True)).sleep(60.0)
        return "done"

    with crossing.active():
        crossing.seen()
        began = crossing.clock.now()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(tool), 20)
        assert crossing.clock.now() - began >= 20
        assert await asyncio.wait_for(asyncio.to_thread(tool), 100) == "done"


async def test_a_blocking_tool_on_the_loop_itself_holds_the_timers_up_until_it_is_over() -> None:
    crossing = line()
    loop, fired = asyncio.get_running_loop(), asyncio.Event()
    with crossing.active():
        loop.call_later(5, fired.set)
        timers = timers_on(loop, crossing, blocking=True)
        assert timers is not None
        assert timers.due_s() is None
        Patience(crossing.clock, timers=timers).sleep(20.0)
        assert not fired.is_set()
        await asyncio.sleep(0)
        await asyncio.wait_for(fired.wait(), 10)


async def test_where_there_is_no_run_or_no_such_loop_there_are_none() -> None:
    assert timers_here() is None
    crossing = line()
    assert timers_on(None, crossing) is None
    assert timers_on(object(), crossing) is None  # type: ignore[arg-type]
    closed = asyncio.new_event_loop()
    closed.close()
    assert timers_on(closed, crossing) is None


def test_a_loop_that_hides_its_timers_has_none_to_bring_forward() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def look() -> object:
        with line().active():
            return timers_here()

    loop = uvloop.new_event_loop()
    try:
        assert loop.run_until_complete(look()) is None
    finally:
        loop.close()
