import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine

import pytest
import trio

from flakestorm.api.loops import in_a_loop, in_trio, loop_factory, under_way


def test_a_loop_is_found_whether_or_not_there_is_one() -> None:
    async def where() -> str:
        return threading.current_thread().name

    async def inside() -> str:
        return in_a_loop(where)

    assert in_a_loop(where) == "MainThread"
    assert asyncio.run(inside()) != "MainThread"


def test_what_the_work_gives_is_given_and_what_it_raises_is_raised() -> None:
    async def divide(by: int) -> float:
        await asyncio.sleep(0)
        return 1 / by

    assert in_a_loop(lambda: divide(2)) == 0.5
    with pytest.raises(ZeroDivisionError):
        in_a_loop(lambda: divide(0))


def test_a_loop_of_the_factory_runs() -> None:
    loop = loop_factory()()
    try:
        assert loop.run_until_complete(asyncio.sleep(0, "done")) == "done"
    finally:
        loop.close()


def test_async_code_of_asyncio_and_of_trio_is_known() -> None:
    async def here() -> tuple[bool, bool]:
        return under_way(), in_trio()

    assert (under_way(), in_trio()) == (False, False)
    assert asyncio.run(here()) == (True, False)
    assert trio.run(here) == (True, True)


def test_a_client_that_outlives_its_loop_closes_in_silence_and_nothing_else_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Client:
        def __init__(self) -> None:
            self.loop = asyncio.get_running_loop()

        async def aclose(self) -> None:
            self.loop.call_soon(print)

        async def ask(self) -> None:
            self.loop.call_soon(print)

    async def made() -> Client:
        return Client()

    async def let_go(work: Callable[[], Coroutine[object, object, None]]) -> None:
        asyncio.get_running_loop().create_task(work())
        await asyncio.sleep(0)
        gc.collect()

    client = in_a_loop(made)
    in_a_loop(lambda: let_go(client.aclose))
    assert not caplog.records
    in_a_loop(lambda: let_go(client.ask))
    assert "never retrieved" in caplog.text
