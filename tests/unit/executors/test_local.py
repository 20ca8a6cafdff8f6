"""The local executor: order, bounds, failures, cancellation."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from math import inf
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.executors.local import LocalExecutor

T = TypeVar("T")


def ignore(_: int, __: object) -> None:
    pass


async def call(job: Callable[[], Awaitable[T]], _: object) -> T:
    return await job()


@settings(deadline=None)
@given(st.integers(0, 20), st.integers(1, 6))
def test_every_job_runs_once_starting_in_order_and_never_more_at_a_time_than_asked(
    count: int, concurrency: int
) -> None:
    started: list[int] = []
    most = running = 0

    def job(n: int):
        async def run() -> int:
            nonlocal running, most
            started.append(n)
            running += 1
            most = max(most, running)
            for _ in range(n % 3):
                await asyncio.sleep(0)
            running -= 1
            return n * n

        return run

    results: dict[int, int] = {}
    asyncio.run(LocalExecutor().execute([job(n) for n in range(count)], call, results.__setitem__, concurrency))
    assert started == list(range(count))
    assert results == {n: n * n for n in range(count)}
    assert most <= concurrency


async def test_jobs_really_overlap() -> None:
    met = asyncio.Barrier(3)
    results: dict[int, bool] = {}

    async def meet() -> bool:
        await met.wait()
        return True

    async with asyncio.timeout(20):
        await LocalExecutor().execute([meet] * 3, call, results.__setitem__, 3)
    assert results == {0: True, 1: True, 2: True}


async def test_the_first_failure_cancels_the_others_and_comes_out_as_it_was() -> None:
    cancelled: list[str] = []
    results: dict[int, str] = {}
    waiting = asyncio.Event()

    async def quick() -> str:
        return "quick"

    async def slow() -> str:
        waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # tidying up is waited for
            cancelled.append("slow")
            raise
        return "never"

    async def broken() -> str:
        await waiting.wait()
        raise LookupError("broken")

    async def later() -> str:
        raise AssertionError("started after a failure")

    with pytest.raises(LookupError, match="broken"):
        await LocalExecutor().execute([quick, slow, broken, later], call, results.__setitem__, 2)
    assert results == {0: "quick"}
    assert cancelled == ["slow"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_results_are_reported_even_when_a_job_fails_at_the_same_moment() -> None:
    results: dict[int, str] = {}

    async def broken() -> str:
        raise LookupError("broken")

    async def fine() -> str:
        return "fine"

    with pytest.raises(LookupError):
        await LocalExecutor().execute([broken, fine], call, results.__setitem__, 2)
    assert results == {1: "fine"}


async def test_cancelling_leaves_no_task_behind() -> None:
    started = asyncio.Event()
    ended: list[int] = []

    async def job() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    task = asyncio.create_task(LocalExecutor().execute([job] * 5, call, ignore, 3))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(ended) == 3
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_done_raises_ends_the_execution_too() -> None:
    async def job() -> int:
        return 1

    def done(_: int, __: int) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await LocalExecutor().execute([job, job], call, done, 1)


async def test_jobs_do_not_see_each_others_context() -> None:
    mark: ContextVar[str] = ContextVar("mark", default="none")
    results: dict[int, str] = {}

    async def job() -> str:
        before = mark.get()
        mark.set("left behind")
        return before

    await LocalExecutor().execute([job, job], call, results.__setitem__, 1)
    assert results == {0: "none", 1: "none"}


async def test_concurrency_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        await LocalExecutor().execute([], call, ignore, 0)


async def test_a_start_waits_for_as_long_as_it_is_told_and_is_asked_for_no_earlier() -> None:
    now, taken, started = [0.0], list[int](), list[float]()

    async def pause(seconds: float) -> None:
        now[0] += seconds

    async def job(_: int, __: object) -> None:
        started.append(now[0])

    def items():
        for n in range(3):
            taken.append(n)
            yield n

    def hold_s(_: int) -> float:
        assert taken == list(range(len(taken)))
        return max(0.0, [0.0, 2.0, 5.0, 0.0][len(taken)] - now[0])

    await LocalExecutor(pause).execute(items(), job, ignore, 2, hold_s)
    assert started == [0, 2, 5]


async def test_a_start_is_asked_for_again_when_one_has_finished() -> None:
    asked, results = list[int](), dict[int, int]()

    async def never(_: float) -> None:
        await asyncio.Event().wait()

    def hold_s(under_way: int) -> float:
        asked.append(under_way)
        return 0.0 if under_way == 0 else [inf, 60.0][len(asked) % 2]

    async def job(n: int, _: object) -> int:
        await asyncio.sleep(0)
        return n

    async with asyncio.timeout(20):
        await LocalExecutor(never).execute(range(3), job, results.__setitem__, 2, hold_s)
    assert results == {0: 0, 1: 1, 2: 2}
    assert asked[:2] == [0, 1]


async def test_work_that_has_made_room_is_overtaken_and_still_reported() -> None:
    began: list[int] = []
    results: dict[int, int] = {}
    most = 0

    async def work(n: int, make_room: Callable[[], Awaitable[None]]) -> int:
        nonlocal most
        began.append(n)
        most = max(most, len(began) - len(results))
        await make_room()
        assert len(began) > n + 1 or n >= 4, "the next one is on its way"
        return n

    await LocalExecutor().execute(range(6), work, results.__setitem__, 2)
    assert began == list(range(6))
    assert results == {n: n for n in range(6)}
    assert most > 2


async def test_one_at_a_time_is_one_at_a_time() -> None:
    under_way: list[int] = []

    async def work(n: int, make_room: Callable[[], Awaitable[None]]) -> int:
        under_way.append(n)
        await make_room()
        assert under_way == [n]
        under_way.clear()
        return n

    results: dict[int, int] = {}
    await LocalExecutor().execute(range(4), work, results.__setitem__, 1)
    assert list(results) == [0, 1, 2, 3]


async def test_an_interruption_keeps_what_had_made_room() -> None:
    results: dict[int, str] = {}
    cancelled: list[int] = []

    async def work(n: int, make_room: Callable[[], Awaitable[None]]) -> str:
        if n:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(n)
                await make_room()  # too late: nothing more is begun
                raise
        await asyncio.sleep(0)
        await make_room()
        task.cancel()
        await asyncio.sleep(0)
        return "judged"

    task = asyncio.create_task(LocalExecutor().execute(range(9), work, results.__setitem__, 2))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert results == {0: "judged"}
    assert cancelled == [1, 2]
    assert asyncio.all_tasks() == {asyncio.current_task()}
