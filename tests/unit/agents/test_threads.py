"""Blocking calls in threads of their own."""

import asyncio
import threading
from contextvars import ContextVar

import pytest

from flakestorm.agents.threads import in_thread
from flakestorm.boundary.inprocess import held as threads_held
from flakestorm.boundary.session import Crossing
from flakestorm.core.pipeline import chain

mark: ContextVar[str] = ContextVar("mark", default="none")


async def test_the_result_and_the_context_come_across() -> None:
    mark.set("mine")
    here = threading.get_ident()
    there, seen = await in_thread(lambda text: (threading.get_ident(), text + mark.get()), "is ")
    assert seen == "is mine"
    assert there != here


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3)])
async def test_what_it_raises_is_raised_here(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await in_thread(fail)
    assert caught.value is error


def test_a_thread_that_outlives_the_loop_disturbs_nobody() -> None:
    go, seen = threading.Event(), list[threading.Thread]()

    def slow() -> None:
        seen.append(threading.current_thread())
        go.wait(20)

    async def leave() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await in_thread(slow)

    asyncio.run(leave())
    go.set()
    seen[0].join(20)
    assert not seen[0].is_alive()


async def test_the_thread_is_on_the_lane_of_who_waits_for_it() -> None:
    crossing = Crossing("r-1", chain())
    with threads_held(), crossing.active():
        assert [await in_thread(crossing.lane), await in_thread(crossing.lane), crossing.lane()] == ["1"] * 3
