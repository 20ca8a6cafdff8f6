"""What is done about workers that come, go and are lost; a Ray of this test's own stands in for the cluster.

The real one is in `tests/e2e/test_cluster.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from flakestorm.config.model import Invariant
from flakestorm.engine.events import Event, Note
from flakestorm.engine.plan import BASELINE, Trial, make_plan
from flakestorm.errors import AgentUnreachable, Misuse
from flakestorm.executors import distributed
from flakestorm.executors.away import Errand, Lost
from flakestorm.executors.distributed import ATTEMPTS, Cluster
from flakestorm.executors.worker import Failure, Order

SAID = Invariant(type="output_not_empty", id="said")
TRIALS = make_plan("t", scenarios=[BASELINE], invariants=[SAID], prompts=["one"], trials=20).trials


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class Method:
    def __init__(self, call: Callable[..., Awaitable[Any]]) -> None:
        self.call = call

    def remote(self, *args: object) -> asyncio.Future[Any]:
        return asyncio.ensure_future(self.call(*args))


class FakeRay:
    """Workers are coroutines of this process. `losses` says how many are lost with each run, by its id."""

    def __init__(self, *, processors: float = 2.0, losses: dict[str, int] | None = None) -> None:
        self.exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError, TaskCancelledError=KeyError)
        self.processors, self.losses = processors, dict(losses or {})
        self.made: list[str] = []
        self.workers = 0
        self.killed = 0
        self.failures: list[Failure | None] = []
        self.most = self.now = 0
        self.asked: dict[str, float] = {}
        self.up = True

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.processors}

    def remote(self, kind: type) -> "FakeRay":
        assert kind.__name__ == "RayWorker"
        return SimpleNamespace(options=self._options)

    def _options(self, **asked: Any) -> Any:
        self.asked = asked
        return SimpleNamespace(remote=self._worker)

    def _worker(self, order: Order) -> Any:
        self.workers += 1

        async def start() -> Failure | None:
            return self.failures.pop(0) if self.failures else None

        async def carry(errand: Errand) -> str:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1
            run = errand.trial.run
            if self.losses.get(run, 0):
                self.losses[run] -= 1
                raise RayError("it died")
            self.made.append(run)
            return run

        async def close() -> None:
            return None

        worker = SimpleNamespace(start=Method(start), carry=Method(carry), close=Method(close))
        return _Hashable(worker)

    def kill(self, worker: object, *, no_restart: bool) -> None:
        self.killed += 1

    def cancel(self, underway: asyncio.Future[Any]) -> None:
        underway.cancel()

    def wait(self, ending: list[Any], **_: object) -> None:
        pass


class _Hashable:
    def __init__(self, worker: SimpleNamespace) -> None:
        self.start, self.carry, self.close = worker.start, worker.carry, worker.close


def cluster(
    monkeypatch: pytest.MonkeyPatch, ray: FakeRay, *, workers: int | None = None, most: int = 10
) -> tuple[Cluster, list[Event]]:
    monkeypatch.setattr(distributed, "load_ray", lambda address: ray)
    told: list[Event] = []
    return Cluster(Order(None, "."), workers=workers, most=most, address="local", told=told.append), told  # type: ignore[arg-type]


async def everything(found: Cluster) -> list[str]:
    done: list[str] = []

    async def work(trial: Trial, _: object) -> str:
        return await found.carry(Errand(trial))  # type: ignore[return-value]

    await found.start()
    try:
        await found.execute(TRIALS, work, lambda _, run: done.append(run), 10)
    finally:
        await found.close()
    return done


async def test_every_run_is_made_once_by_as_many_workers_as_there_are_processors(monkeypatch) -> None:
    ray = FakeRay()
    found, told = cluster(monkeypatch, ray)
    done = await everything(found)
    assert sorted(done) == sorted(trial.run for trial in TRIALS)
    assert (ray.workers, ray.most, ray.killed, told) == (2, 2, 2, [])


@pytest.mark.parametrize(("workers", "most", "count"), [(None, 1, 1), (6, 10, 6), (6, 4, 4), (1, 10, 1)])
async def test_there_are_as_many_as_were_asked_for_and_no_more_than_runs_at_a_time(
    monkeypatch, workers: int | None, most: int, count: int
) -> None:
    ray = FakeRay()
    found, _ = cluster(monkeypatch, ray, workers=workers, most=most)
    await everything(found)
    assert ray.workers == count
    assert ray.asked["num_cpus"] * count <= ray.processors


async def test_the_run_of_a_lost_worker_is_made_again_and_counts_once(monkeypatch) -> None:
    ray = FakeRay(losses={"r-0003": 2, "r-0007": 1})
    found, told = cluster(monkeypatch, ray)
    done = await everything(found)
    assert sorted(done) == sorted(ray.made) == sorted(trial.run for trial in TRIALS)
    assert ray.workers == 2 + 3
    said = [event.text for event in told if isinstance(event, Note)]
    assert len(said) == 3
    assert all("was lost" in text and text.endswith("made again by another") for text in said)
    assert sum("r-0003" in text for text in said) == 2


async def test_a_run_that_ends_every_worker_is_given_up(monkeypatch) -> None:
    ray = FakeRay(losses={"r-0001": ATTEMPTS})
    found, _ = cluster(monkeypatch, ray)
    await found.start()
    with pytest.raises(Lost, match="does the agent end its own process"):
        await found.carry(Errand(TRIALS[0]))
    assert str(await found.carry(Errand(TRIALS[1]))) == "r-0002"
    await found.close()


async def test_one_worker_that_cannot_be_made_ready_leaves_the_others(monkeypatch) -> None:
    ray = FakeRay()
    ray.failures = [Failure("no port", misuse=False), None]
    found, told = cluster(monkeypatch, ray)
    assert len(await everything(found)) == len(TRIALS)
    assert ray.most == 1
    assert told == [Note("a worker could not be made ready: no port")]


@pytest.mark.parametrize(("misuse", "kind"), [(True, Misuse), (False, AgentUnreachable)])
async def test_where_none_can_be_made_ready_it_is_said_why(monkeypatch, misuse: bool, kind: type) -> None:
    ray = FakeRay()
    ray.failures = [Failure("no such module", misuse=misuse)] * 2
    found, _ = cluster(monkeypatch, ray)
    with pytest.raises(kind, match="no such module"):
        await found.start()
    await found.close()


async def test_an_interruption_leaves_nobody_behind(monkeypatch) -> None:
    ray = FakeRay()
    found, _ = cluster(monkeypatch, ray)
    await found.start()
    waiting = [asyncio.ensure_future(found.carry(Errand(trial))) for trial in TRIALS[:4]]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await found.close()
    assert ray.killed == 2


def test_a_cluster_elsewhere_is_told_from_one_here(monkeypatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    alone = {"": True, "local": True, "127.0.0.1:9": True, "[::1]:9": True, "10.0.0.1:9": False, "auto": False}
    assert {address: distributed._alone(distributed._place(address)) for address in alone} == alone
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:9")
    assert distributed._place("") == "10.0.0.1:9"
    assert distributed._place("local") == ""
