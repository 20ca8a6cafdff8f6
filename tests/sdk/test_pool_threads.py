"""Which thread of a pool takes a job is chance; what is played again is not, however busy the machine is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest

import flakestorm
from busy_support import busy, numbers
from flakestorm.tape.reader import Tape
from flakestorm.tape.writer import Recorder
from upstream import Upstream

JOBS = 4

Work = Callable[[int], Any]


def submitted(work: Work) -> Any:
    with ThreadPoolExecutor(2) as pool:
        before = [job.result() for job in [pool.submit(work, n) for n in range(JOBS)]]
        return before + [job.result() for job in [pool.submit(work, n) for n in range(JOBS, JOBS + 2)]]


def beside_its_jobs(work: Work) -> Any:
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(work, n) for n in range(3)]
        return [work(0), *(job.result() for job in jobs)]


def mapped_with_contexts(work: Work) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda n: n(), [partial(copy_context().run, work, n) for n in range(JOBS)]))


def nested(work: Work) -> Any:
    with ThreadPoolExecutor(2) as outer:

        def inner(n: int) -> list[Any]:
            with ThreadPoolExecutor(2) as pool:
                return [*pool.map(work, range(2 * n, 2 * n + 2)), work(n)]

        return list(outer.map(inner, range(3)))


def gathered(work: Work) -> Any:
    async def agent() -> Any:
        return list(await asyncio.gather(*(asyncio.to_thread(work, n) for n in range(JOBS))))

    return asyncio.run(agent())


def one_after_the_other(work: Work) -> Any:
    async def agent() -> Any:
        return [await asyncio.to_thread(work, n) for n in range(JOBS)]

    return asyncio.run(agent())


def given_to_the_loop(work: Work) -> Any:
    async def agent() -> Any:
        loop = asyncio.get_running_loop()
        return list(await asyncio.gather(*(loop.run_in_executor(None, work, n) for n in range(JOBS))))

    return asyncio.run(agent())


def by_anyio(work: Work) -> Any:
    async def agent() -> Any:
        found: list[Any] = [None] * JOBS

        async def one(n: int) -> None:
            found[n] = await anyio.to_thread.run_sync(work, n)

        async with anyio.create_task_group() as group:
            for n in range(JOBS):
                group.start_soon(one, n)
        return found

    return asyncio.run(agent())


def with_loops_of_their_own(work: Work) -> Any:
    def one(n: int) -> Any:
        async def agent() -> Any:
            return work(n)

        return asyncio.run(agent())

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, range(JOBS)))


def in_threads(work: Work) -> Any:
    found: list[Any] = [None] * JOBS

    def one(n: int) -> None:
        found[n] = work(n)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(JOBS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize(
    ("agent", "replays"),
    [
        (submitted, 100), (mapped_with_contexts, 100), (nested, 100), (gathered, 100), (one_after_the_other, 20),
        (beside_its_jobs, 20), (given_to_the_loop, 20), (by_anyio, 20), (with_loops_of_their_own, 20), (in_threads, 20),
    ],
)  # fmt: skip
def test_every_replay_gives_everyone_their_own_and_one_digest(
    up: Upstream,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    agent: Callable[[Work], Any],
    replays: int,
) -> None:
    digests: list[str | None] = []

    class Kept(Recorder):
        def close(self, **how: Any) -> None:
            super().close(**how)
            digests.append(self.digest)

    up.reply("/seats", numbers())

    with busy(), httpx.Client(verify=False) as client:

        def ask(**what: int) -> int:
            return int(client.post(f"{up.url}/seats", json=what).json()["number"])

        def work(row: int) -> tuple[int, int]:
            ticket = ask()  # the same for all, word for word, and answered to each in another way
            return ticket, ask(row=row, ticket=ticket)

        with flakestorm.record(tmp_path / "a.tape"):
            before = agent(work)
        called = up.count()
        monkeypatch.setattr("flakestorm.api.replaying.Recorder", Kept)
        for _ in range(replays):
            assert flakestorm.replay(tmp_path / "a.tape", lambda: agent(work)) == before
    assert up.count() == called, "somebody was asked again"
    footer = Tape.open(tmp_path / "a.tape").footer
    assert footer is not None
    assert (len(digests), set(digests)) == (replays, {footer.digest})
