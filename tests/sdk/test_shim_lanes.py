"""Calls that a launched Python agent makes at once: each is known by the thread, job or task that makes it, though they
come on connections that a pool lends as they fall free. Played again it is the same, however busy the machine is."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import flakestorm
from e2e_support import write_config
from flakestorm.api import Options
from flakestorm.core.draws import Draws
from flakestorm.tape.reader import Tape
from launched_support import launched
from upstream import Canned, Request, Upstream, document

PROGRAM = """
import asyncio, http.client, os, random, threading, uuid
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from urllib.parse import urlsplit
import aiohttp, anyio, anyio.to_thread, httpx, requests

URL = os.environ["TOOL_URL"] + "/seats"
client, session = httpx.Client(verify=False, trust_env=False, timeout=60), requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=2, pool_block=True))
free, lock = [], threading.Lock()  # connections of http.client, lent as they come

def by_httpx(what):
    return client.post(URL, json=what).json()["number"]

def by_requests(what):
    return session.post(URL, json=what, timeout=60).json()["number"]

def by_http_client(what):
    with lock:
        conn = free.pop() if free else http.client.HTTPConnection(urlsplit(URL).netloc, timeout=60)
    conn.request("POST", "/seats", __import__("json").dumps(what), {"content-type": "application/json"})
    found = __import__("json").loads(conn.getresponse().read())["number"]
    with lock:
        free.append(conn)
    return found

def work(row, by=by_httpx):
    ticket = by({})  # the same for all, word for word, and answered to each in another way
    drawn = by({"row": row, "ticket": ticket, "id": str(uuid.uuid4()), "chance": random.random()})
    return [ticket, drawn, by({})]

async def work_async(post, row):
    ticket = await post({})
    drawn = await post({"row": row, "ticket": ticket, "id": str(uuid.uuid4()), "chance": random.random()})
    return [ticket, drawn, await post({})]

def pool(by=by_httpx):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(partial(work, by=by), range(4)))

def contexts():  # as LangChain does
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda n: n(), [partial(copy_context().run, work, n) for n in range(4)]))

def nested():
    with ThreadPoolExecutor(2) as outer:
        def inner(n):
            with ThreadPoolExecutor(2) as pool:
                return [*pool.map(work, range(2 * n, 2 * n + 2)), work(n)]
        return list(outer.map(inner, range(3)))

def threads():
    found = [None] * 4
    def one(n):
        found[n] = work(n)
    started = [threading.Thread(target=one, args=(n,)) for n in range(4)]
    [thread.start() for thread in started]
    [thread.join() for thread in started]
    return found

def to_thread():
    async def agent():
        return list(await asyncio.gather(*(asyncio.to_thread(work, n) for n in range(4))))
    return asyncio.run(agent())

def executor():
    async def agent():
        loop = asyncio.get_running_loop()
        return list(await asyncio.gather(*(loop.run_in_executor(None, work, n) for n in range(4))))
    return asyncio.run(agent())

def by_anyio():
    async def agent():
        found = [None] * 4
        async def one(n):
            found[n] = await anyio.to_thread.run_sync(work, n)
        async with anyio.create_task_group() as group:
            for n in range(4):
                group.start_soon(one, n)
        return found
    return asyncio.run(agent())

def gathered():
    async def agent():
        async with httpx.AsyncClient(verify=False, trust_env=False, timeout=60) as client:
            async def post(what):
                return (await client.post(URL, json=what)).json()["number"]
            return list(await asyncio.gather(*(work_async(post, n) for n in range(4))))
    return asyncio.run(agent())

def gathered_later():  # tasks that begin when a reply has come, in whatever order they do
    async def agent():
        async with httpx.AsyncClient(verify=False, trust_env=False, timeout=60) as client:
            async def post(what):
                return (await client.post(URL, json=what)).json()["number"]
            async def two(n):
                await post({"first": n})
                return await asyncio.gather(*(work_async(post, n) for _ in range(2)))
            return list(await asyncio.gather(*(two(n) for n in range(3))))
    return asyncio.run(agent())

def aio():
    async def agent():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=2)) as client:
            async def post(what):
                async with client.post(URL, json=what) as reply:
                    return (await reply.json())["number"]
            return list(await asyncio.gather(*(work_async(post, n) for n in range(4))))
    return asyncio.run(agent())

def loops():
    def one(n):
        async def agent():
            return await asyncio.to_thread(work, n)
        return asyncio.run(agent())
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, range(4)))

def given_to_a_loop():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    async def one(n):
        return await asyncio.to_thread(work, n)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda n: asyncio.run_coroutine_threadsafe(one(n), loop).result(), range(4)))
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    return found

def one_after_the_other():
    return [work(n) for n in range(2)]

def pool_of_requests():
    return pool(by_requests)

def pool_of_http_client():
    return pool(by_http_client)

def play(mode):
    return globals()[mode]()
"""
OFTEN = ("pool", "contexts", "gathered")
SOMETIMES = (
    "threads", "to_thread", "gathered_later", "nested", "executor", "by_anyio", "aio", "loops", "given_to_a_loop",
    "one_after_the_other", "pool_of_http_client", "pool_of_requests",
)  # fmt: skip


@pytest.fixture
def up() -> Iterator[Upstream]:
    number, lock = itertools.count(), threading.Lock()

    def numbered(_: Request) -> Canned:
        with lock:
            return document({"number": next(number)})

    with Upstream() as up:
        up.reply("/seats", numbered)
        yield up


@pytest.mark.parametrize(("mode", "replays"), [*((mode, 100) for mode in OFTEN), *((mode, 8) for mode in SOMETIMES)])
async def test_every_replay_gives_everyone_their_own_and_one_digest(
    up: Upstream, tmp_path: Path, mode: str, replays: int
) -> None:
    tape = tmp_path / "a.tape"
    async with launched(PROGRAM, tmp_path, {"TOOL_URL": up.url}) as agent:
        recorded = await agent.record(tape, mode)
        asked = up.count()
        played = [await agent.replay(tape, mode) for _ in range(replays)]
    assert [problems for _, problems, _ in played if problems] == []
    assert [answer for answer, _, _ in played if answer != recorded] == []
    footer = Tape.open(tape).footer
    assert footer is not None
    assert {digest for _, _, digest in played} == {footer.digest}
    assert up.count() == asked, "somebody was asked again"
    sent = [name for request in up.requests for name in request.headers]
    noted = [name for exchange in Tape.open(tape).exchanges() for name, _ in exchange.headers]
    assert [name for name in (*sent, *noted) if "flakestorm" in name.lower()] == []


async def test_a_lane_is_named_by_who_started_it(up: Upstream, tmp_path: Path) -> None:
    lanes = {}
    async with launched(PROGRAM, tmp_path, {"TOOL_URL": up.url}) as agent:
        for mode in ("pool", "threads", "to_thread", "gathered_later", "one_after_the_other"):
            await agent.record(tmp_path / f"{mode}.tape", mode)
            lanes[mode] = sorted({exchange.lane for exchange in Tape.open(tmp_path / f"{mode}.tape").exchanges()})
    assert lanes == {
        "pool": [f"1.job{n}" for n in range(1, 5)],
        "threads": [f"1.thread{n}" for n in range(1, 5)],
        "to_thread": [f"1.task{n}.job1" for n in range(1, 5)],
        "gathered_later": sorted(f"1.task{n}{then}" for n in range(1, 4) for then in ("", ".task1", ".task2")),
        "one_after_the_other": ["1"],
    }


async def test_a_tape_of_connections_is_played_as_it_was_recorded(up: Upstream, tmp_path: Path) -> None:
    """Before, draws had another form, and calls of launched agents nothing but their connections."""
    tape, old = tmp_path / "old.tape", Draws(7, 1_700_000_000_000, form=1)
    async with launched(PROGRAM, tmp_path, {"TOOL_URL": up.url}, old) as agent:
        recorded = await agent.record(tape, "one_after_the_other")
        played = [await agent.replay(tape, "one_after_the_other") for _ in range(3)]
        await agent.record(tmp_path / "pool.tape", "pool")
    footer = Tape.open(tape).footer
    assert footer is not None
    assert "form" not in Tape.open(tape).header["draws"]
    assert played == [(recorded, [], footer.digest)] * 3
    assert {exchange.lane for exchange in Tape.open(tmp_path / "pool.tape").exchanges()} <= {"1", "2", "3"}


def test_a_seed_gives_the_same_faults_at_any_concurrency(
    up: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_URL", up.url)
    (tmp_path / "agent.py").write_text(f"{PROGRAM}\nprint(pool())\n".replace('["number"]', '.get("number")'))
    path = write_config(
        tmp_path,
        agent={"type": "command", "start": f"{sys.executable} agent.py {{prompt}}", "timeout": 300_000},
        boundary={"tools": {"seats": "*/seats"}},
        contract={
            "name": "seated",
            "invariants": [{"type": "completes"}],
            "chaos_matrix": [
                {"name": "down", "tool_faults": [{"tool": "seats", "mode": "error", "probability": 0.5}]},
                {"name": "third", "tool_faults": [{"tool": "seats", "mode": "error", "calls": [3]}]},
            ],
        },
    )
    fired = []
    for concurrency in (1, 10):
        report = flakestorm.load(path).contract(Options(seed=7, trials=4, concurrency=concurrency))
        fired.append([(run.scenario, sorted(str(each.site) for each in run.fired)) for run in report.runs])
    assert fired[0] == fired[1]
    assert len({tuple(sites) for _, sites in fired[0]}) > 2
