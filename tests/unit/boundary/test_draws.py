"""Virtual draws in this process, and of launched programs by the file they read."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import pickle
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from random import random as taken_over
from time import time as taken_time
from typing import Any

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from e2e_support import PROGRAMS, clean_env
from flakestorm.boundary import draws as virtual
from flakestorm.boundary.draws import Dial, Drawing
from flakestorm.boundary.hub import Hub
from flakestorm.boundary.inprocess import held
from flakestorm.boundary.session import Crossing
from flakestorm.core.draws import Draws
from flakestorm.core.pipeline import chain
from gateway_support import Watch
from upstream import Upstream, document

DRAWS = Draws(42, 1_700_000_000_000)


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    with held():  # it leads threads into the run that started them
        virtual.install()
        yield
        virtual.uninstall()


def within(call: Callable[[], Any], draws: Draws = DRAWS, drawing: Drawing | None = None) -> Any:
    """What this gives as part of a run with these draws."""
    with Crossing("r-1", chain(), draws=drawing or Drawing(draws)).active():
        return call()


def drawn() -> list[object]:
    """One of everything."""
    return [
        time.time(), time.time_ns(), taken_time(), time.ctime(), time.strftime("%H:%M:%S"), time.asctime(),
        tuple(time.localtime()), tuple(time.gmtime()), time.clock_gettime(time.CLOCK_REALTIME),
        datetime.datetime.now(), datetime.datetime.now(datetime.UTC), datetime.datetime.today(), datetime.date.today(),
        uuid.uuid1(), uuid.uuid4(), random.random(), taken_over(), random.choice(range(10**9)),
        random.Random().random(), random.SystemRandom().random(), random.getrandbits(64),
        random.sample(range(10**6), 3), random.randbytes(4), os.urandom(8),
        secrets.token_hex(), secrets.token_urlsafe(), secrets.randbelow(10**9),
    ]  # fmt: skip


def test_the_same_draws_give_the_same_values_and_others_others() -> None:
    first, second, other = within(drawn), within(drawn), within(drawn, Draws(43, 1_600_000_000_000))
    assert first == second
    assert not [pair for pair in zip(first, other, strict=True) if pair[0] == pair[1]]
    assert first[0] == 1_700_000_000
    assert first[10] == datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC)


@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")
def test_utcnow_has_no_zone() -> None:
    assert within(datetime.datetime.utcnow) == datetime.datetime(2023, 11, 14, 22, 13, 20)


def test_whoever_is_in_no_run_draws_for_real() -> None:
    assert abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) < 60
    assert datetime.datetime.now().year > 2023
    before = os.urandom(8), uuid.uuid4(), random.random()
    assert (os.urandom(8), uuid.uuid4(), random.random()) != before
    measured = within(time.monotonic), within(time.perf_counter)
    assert measured[0] < time.monotonic() < measured[0] + 60


def test_everything_is_put_back() -> None:
    virtual.uninstall()
    try:
        assert "built-in" in repr(time.time)
        assert "built-in" in repr(taken_time)
        assert "built-in" in repr(datetime.datetime.now)
        assert "built-in" in repr(os.urandom)
        assert not hasattr(uuid.uuid4, "__wrapped__")
    finally:
        virtual.install()
    assert "built-in" not in repr(taken_time)


def test_given_moments_stay_what_they_are() -> None:
    def given_() -> list[object]:
        return [
            time.gmtime(0)[:3],
            time.ctime(0)[-4:],
            time.strftime("%Y", time.gmtime(0)),
            time.asctime(time.gmtime(0)),
        ]

    assert within(given_) == given_()


class Later(datetime.datetime):
    """A subclass such as pandas has."""


class Note(BaseModel):
    at: datetime.datetime


def test_the_classes_of_datetime_stay_what_they_are() -> None:
    def check() -> str:
        now = datetime.datetime.now()
        assert isinstance(now, datetime.datetime)
        assert type(Later.now()) is Later
        assert type(Later.today()) is Later
        assert type(datetime.date.today()) is datetime.date
        assert pickle.loads(pickle.dumps(now)) == now
        assert Note(at=now).at is now
        return Note.model_validate_json(Note(at=now).model_dump_json()).at.isoformat()

    assert within(check).startswith("2023-11-14T")


def test_uuids_are_well_formed() -> None:
    def made() -> tuple[uuid.UUID, uuid.UUID, uuid.UUID]:
        return uuid.uuid1(), uuid.uuid4(), uuid.uuid1(node=1, clock_seq=2)

    one, four, given_ = within(made)
    assert (one.version, four.version, one.variant, four.variant) == (1, 4, uuid.RFC_4122, uuid.RFC_4122)
    assert (given_.node, given_.clock_seq) == (1, 2)
    assert one.time == 0x01B21DD213814000 + 1_700_000_000 * 10**7
    assert given_.time == one.time + 1


def test_an_agent_that_seeds_gets_what_it_asked_for() -> None:
    def seeded() -> tuple[float, int, float]:
        random.seed(7)
        return random.random(), random.randint(1, 100), taken_over()

    own = random.Random(7)
    assert within(seeded) == (own.random(), own.randint(1, 100), own.random())

    def restored() -> bool:
        state = random.getstate()
        first = random.random()
        random.setstate(state)
        return first == random.random()

    assert within(restored)


def test_names_of_temporary_files_are_left_alone() -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = [within(lambda: next(tempfile._RandomNameSequence())) for _ in range(2)]
        assert names[0] != names[1]
        assert folder


def test_the_clock_stands_still_between_replies_and_sleeping_moves_it() -> None:
    drawing = Drawing(DRAWS)

    def moments() -> list[float]:
        found = [time.time(), time.time()]
        drawing.reach(1500)
        found += [time.time(), time.time()]
        time.sleep(0.002)
        found.append(time.time())
        drawing.reach(100)  # late news of another call
        return [*found, time.time()]

    base = 1_700_000_000
    expected = [base, base, base + 1.5, base + 1.5, base + 1.502, base + 1.502]
    assert within(moments, drawing=drawing) == pytest.approx(expected, abs=1e-6)


def test_asyncio_sleep_moves_it_for_who_slept_and_for_who_waited() -> None:
    async def agent() -> list[float]:
        async def nap(seconds: float) -> float:
            await asyncio.sleep(seconds)
            return time.time() - 1_700_000_000

        naps = await asyncio.gather(nap(0.003), nap(0.001))
        return [*naps, time.time() - 1_700_000_000]

    assert within(lambda: asyncio.run(agent())) == pytest.approx([0.003, 0.001, 0.003], abs=1e-6)


def test_whoever_polls_the_clock_does_not_hang() -> None:
    def poll() -> float:
        end = time.time() + 3
        while time.time() < end:
            pass
        return time.time()

    assert within(poll) == within(poll) == pytest.approx(1_700_000_003.001)


def test_a_replay_goes_by_the_recording_until_it_goes_live() -> None:
    drawing = Drawing(DRAWS, live=False)
    drawing.reach(9000)
    assert drawing.elapsed_ms == 0
    drawing.recall(700)
    assert drawing.elapsed_ms == 700
    drawing.go_live(200)
    drawing.reach(300)
    assert drawing.elapsed_ms == 800


def lanes(order: list[int], loop: Callable[[Any], Any]) -> Any:
    """What threads, jobs and tasks draw whose turns come in this order."""

    def agent() -> object:
        turns = [threading.Event() for _ in order]
        found: dict[int, object] = {}

        def draw(n: int) -> None:
            place = order.index(n)
            if place:
                assert turns[place - 1].wait(60)
            found[n] = uuid.uuid4(), random.random(), os.urandom(4)
            turns[place].set()

        threads = [threading.Thread(target=draw, args=(n,)) for n in range(len(order))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        by_threads = dict(sorted(found.items()))
        turns = [threading.Event() for _ in order]
        with ThreadPoolExecutor(len(order)) as pool:
            list(pool.map(draw, range(len(order))))
        by_jobs = dict(sorted(found.items()))

        async def together() -> list[object]:
            over = [asyncio.Event() for _ in order]

            async def one(n: int) -> object:
                place = order.index(n)
                if place:
                    await over[place - 1].wait()
                over[place].set()
                return uuid.uuid4(), random.random(), await asyncio.to_thread(uuid.uuid4)

            return await asyncio.gather(*(one(n) for n in range(len(order))))

        return by_threads, by_jobs, loop(together())

    return within(agent)


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(4)))
def test_each_lane_draws_its_own_whatever_the_order(order: list[int]) -> None:
    expected = lanes([0, 1, 2, 3], asyncio.run)
    assert lanes(order, asyncio.run) == expected
    assert lanes(order, uvloop.run) == expected
    by_threads, by_jobs, by_tasks = expected
    values = [value for row in (*by_threads.values(), *by_jobs.values(), *by_tasks) for value in row]
    assert len(set(values)) == len(values)


async def test_runs_side_by_side_have_each_their_own() -> None:
    async def agent() -> list[object]:
        found: list[object] = []
        for _ in range(3):
            found += [time.time(), uuid.uuid4(), random.random()]
            await asyncio.sleep(0)
        return found

    async def run(draws: Draws) -> list[object]:
        with Crossing("r", chain(), draws=Drawing(draws)).active():
            return await asyncio.create_task(agent())

    one, same, other = await asyncio.gather(run(DRAWS), run(DRAWS), run(Draws(1, 1)))
    assert one == same
    assert not set(one) & set(other)


def test_a_dial_says_where_the_clock_is() -> None:
    dial = Dial(DRAWS)
    seed, epoch_ms, path = dial.variables["FLAKESTORM_DRAWS"].split(":", 2)
    assert dial.variables == {"FLAKESTORM_DRAWS": f"{seed}:{epoch_ms}:{path}", "FLAKESTORM_LANES": path}
    assert (int(seed), int(epoch_ms)) == (DRAWS.seed, DRAWS.epoch_ms)
    assert Path(path).stat().st_mode & 0o777 == 0o600
    drawing = Drawing(DRAWS)
    drawing.show_on(dial)
    drawing.reach(2)
    assert memoryview(Path(path).read_bytes()).cast("q").tolist() == [1, 42, 1_700_000_000_000, 2000, 2]
    dial.close()
    assert not Path(path).exists()


def test_a_dial_without_draws_says_which_run_it_is() -> None:
    dial = Dial(None)
    ((name, path),) = dial.variables.items()
    dial.begin(None)
    dial.begin(None)
    assert (name, memoryview(Path(path).read_bytes()).cast("q").tolist()) == ("FLAKESTORM_LANES", [2, 0, 0, 0, 0])
    dial.close()


def test_a_job_in_a_copy_of_one_context_draws_its_own() -> None:
    """As LangChain's tools are called. In the first form, which old tapes have, all such jobs drew on one lane."""

    def jobs() -> list[str]:
        contexts = [copy_context() for _ in range(4)]
        with ThreadPoolExecutor(1) as pool:
            return list(pool.map(lambda context: context.run(lambda: str(uuid.uuid4())), contexts))

    def row() -> list[str]:
        return [str(uuid.uuid4()) for _ in range(4)]

    old = Draws(42, 0, form=1)
    assert within(jobs, DRAWS) == within(jobs, DRAWS)
    assert not set(within(jobs, DRAWS)) & set(within(row, DRAWS))
    assert within(jobs, old) == within(row, old)


def interpreter(version: str) -> str:
    """A Python of this version, or the test is skipped."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    found = shutil.which(f"python{version}")
    env = {**os.environ, "PYENV_VERSION": version}
    if found is None or subprocess.run([found, "-c", ""], env=env, capture_output=True, check=False).returncode:
        pytest.skip(f"there is no Python {version} on this machine")
    return found


async def launched(draws: Draws | None, up: Upstream, *words: str) -> list[bytes]:
    """The bodies of what the drawing agent asked, and its output; its clock is moved by nothing but itself."""
    hub, watch = Hub(environ={}, draws=draws, replaying=True), Watch()
    try:
        env = clean_env({"TOOL_URL": f"{up.url}/tool"})
        channel = await hub.channel(env)
        program = [sys.executable, str(PROGRAMS / "drawing_agent.py"), *words]
        with channel.bind(hub.line("r-1", chain(watch))):
            done = await asyncio.to_thread(
                subprocess.run, program, env={**env, **channel.env}, capture_output=True, timeout=60, check=False
            )
        channel.close()
    finally:
        await hub.close()
    assert (done.returncode, done.stderr) == (0, b"")
    return [*(seen.call.body for seen in watch.seen), done.stdout]


async def test_a_launched_program_draws_the_same_with_the_same_draws() -> None:
    with Upstream() as up:
        up.reply("/tool", document({"ok": True}))
        first, second = await launched(DRAWS, up, "set"), await launched(DRAWS, up, "set")
        other, real = await launched(Draws(7, 1_600_000_000_000), up, "set"), await launched(None, up, "set")
    assert first == second
    assert not [pair for pair in zip(first, other, strict=True) if pair[0] == pair[1]]
    assert json.loads(first[0])["time"] == 1_700_000_000
    assert json.loads(real[0])["time"] > 1_780_000_000


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
async def test_what_is_drawn_here_and_in_a_launched_program_is_the_same(version: str) -> None:
    python = interpreter(version)
    code = "import uuid, random, secrets, time; print(uuid.uuid4(), random.random(), secrets.token_hex(4), time.time())"
    dial = Dial(DRAWS)
    env = clean_env({**dial.variables, "FLAKESTORM_GATEWAY": "http://127.0.0.1:9/r/T"})
    env |= {"PYTHONPATH": str(Path(virtual.__file__).parent / "shim"), "PYENV_VERSION": version}
    done = await asyncio.to_thread(
        subprocess.run, [python, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    dial.close()
    here = within(lambda: f"{uuid.uuid4()} {random.random()} {secrets.token_hex(4)} {time.time()}")
    assert (done.stdout.strip(), done.stderr) == (here, "")


def test_fresh_draws_begin_now() -> None:
    assert abs(virtual.fresh().epoch_ms / 1000 - time.time()) < 60
    assert virtual.fresh() != virtual.fresh()
