"""The agents' own event loop: theirs may block, ours may not."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from agents_support import FakeLine, current_line
from flakestorm.agents import loop as module
from flakestorm.agents.loop import AgentLoop, Overdue

LONG_S = 20.0


@asynccontextmanager
async def agent_loop() -> AsyncIterator[AgentLoop]:
    made = AgentLoop()
    try:
        yield made
    finally:
        await made.close()


def blocking(gate: threading.Event, begun: threading.Event | None = None) -> Callable[[], Awaitable[str]]:
    """A coroutine that holds its loop until the gate opens."""

    async def block() -> str:
        if begun is not None:
            begun.set()
        gate.wait(LONG_S)
        return "unblocked"

    return block


async def where() -> tuple[int, int]:
    return threading.get_ident(), id(asyncio.get_running_loop())


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, LONG_S)


async def test_all_share_one_loop_that_is_not_the_callers() -> None:
    async with agent_loop() as agents:
        first, second = await agents.run(where, limit_s=LONG_S), await agents.run(where, limit_s=LONG_S)
    assert first == second
    assert first[0] != threading.get_ident()
    assert first[1] != id(asyncio.get_running_loop())


async def test_the_line_of_the_caller_is_carried_and_does_not_stay() -> None:
    async def line() -> str | None:
        return await asyncio.create_task(inner())

    async def inner() -> str | None:
        return current_line.get()

    async with agent_loop() as agents:
        with FakeLine("r-1").active():
            assert await agents.run(line, limit_s=LONG_S) == "r-1"
        with FakeLine("r-2").active():
            assert await agents.run(line, limit_s=LONG_S) == "r-2"
        assert await agents.run(line, limit_s=LONG_S) is None


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), StopAsyncIteration()])
async def test_what_is_raised_is_raised_here_and_the_loop_lives_on(error: BaseException) -> None:
    async def fail() -> None:
        raise error

    async with agent_loop() as agents:
        before = await agents.run(where, limit_s=LONG_S)
        with pytest.raises(type(error)):
            await agents.run(fail, limit_s=LONG_S)
        assert await agents.run(where, limit_s=LONG_S) == before


async def test_a_task_of_an_agents_own_cannot_end_the_loop_of_the_others() -> None:
    async def leave() -> None:
        raise SystemExit(1)

    async def delegate() -> str:
        return str(await asyncio.gather(asyncio.create_task(leave()), return_exceptions=True))

    async with agent_loop() as agents:
        before = await agents.run(where, limit_s=LONG_S)
        assert await agents.run(delegate, limit_s=LONG_S) == "[SystemExit(1)]"
        assert await agents.run(where, limit_s=LONG_S) == before


async def test_what_takes_too_long_is_cancelled_and_may_clean_up() -> None:
    cleaned: list[int] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(1)

    async with agent_loop() as agents:
        with pytest.raises(Overdue):
            await agents.run(hang, limit_s=0.01)
    assert cleaned == [1]


async def test_blocking_the_agents_loop_leaves_ours_free_and_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.01)
    gate = threading.Event()
    async with agent_loop() as agents:
        with pytest.raises(Overdue):
            await agents.run(blocking(gate), limit_s=0.01)
        assert await agents.run(where, limit_s=LONG_S)  # on a fresh loop
    gate.set()


async def test_what_had_not_begun_on_a_blocked_loop_is_moved_and_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.01)
    gate, begun, asked = threading.Event(), threading.Event(), []

    async def count() -> int:
        asked.append(1)
        return threading.get_ident()

    async with agent_loop() as agents:
        stuck = asyncio.create_task(agents.run(blocking(gate, begun), limit_s=0.2))
        await until(begun)
        moved = [asyncio.create_task(agents.run(count, limit_s=LONG_S)) for _ in range(3)]
        (overdue,) = await asyncio.gather(stuck, return_exceptions=True)
        threads = set(await asyncio.gather(*moved))
        gate.set()
        assert isinstance(overdue, Overdue)
        assert len(threads) == 1
    assert len(asked) == 3


async def test_a_loop_that_a_left_behind_task_blocks_is_left_too() -> None:
    """And waiting for a turn costs nothing of one's own time."""
    gate, begun = threading.Event(), threading.Event()

    async def leave_a_task() -> str:
        asyncio.get_running_loop().call_soon(lambda: (begun.set(), gate.wait(LONG_S)))
        return "left"

    async with agent_loop() as agents:
        assert await agents.run(leave_a_task, limit_s=LONG_S) == "left"
        await until(begun)
        assert await agents.run(where, limit_s=0.05)
        gate.set()


async def test_cancelling_the_caller_cancels_the_coroutine_or_keeps_it_from_beginning() -> None:
    gate, begun, cancelled, asked = threading.Event(), threading.Event(), threading.Event(), []

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def never() -> None:
        asked.append(1)

    async with agent_loop() as agents:
        run = asyncio.create_task(agents.run(hang, limit_s=LONG_S))
        await until(begun)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert cancelled.is_set()

        begun.clear()
        blocked = asyncio.create_task(agents.run(blocking(gate, begun), limit_s=LONG_S))
        await until(begun)
        queued = asyncio.create_task(agents.run(never, limit_s=LONG_S))
        await asyncio.sleep(0)
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
        gate.set()
        await blocked
    assert asked == []


async def test_closing_cancels_what_was_left_and_ends_the_thread() -> None:
    ended = threading.Event()

    async def background() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def start() -> threading.Thread:
        kept.append(asyncio.create_task(background()))
        await asyncio.sleep(0)
        return threading.current_thread()

    kept: list[asyncio.Task[None]] = []
    agents = AgentLoop()
    thread = await agents.run(start, limit_s=LONG_S)
    await agents.close()
    await agents.close()
    assert ended.is_set()
    await asyncio.to_thread(thread.join, LONG_S)
    assert not thread.is_alive()


async def test_closing_does_not_wait_for_what_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.01)
    gate, threads = threading.Event(), []

    async def block() -> None:
        threads.append(threading.current_thread())
        gate.wait(LONG_S)

    agents = AgentLoop()
    with pytest.raises(Overdue):
        await agents.run(block, limit_s=0.01)
    (left,) = threads
    await agents.close()
    assert left.is_alive()
    assert left.daemon
    gate.set()
    await asyncio.to_thread(left.join, LONG_S)
