"""A worker, in this process: ready or not, one run after the other, and an end."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine_support import FakeAgent, runner
from flakestorm.config.model import Invariant
from flakestorm.engine.plan import BASELINE, make_plan
from flakestorm.engine.runner import Runner
from flakestorm.errors import AgentUnreachable, ConfigError
from flakestorm.executors.away import Errand
from flakestorm.executors.worker import Cancelled, Failure, Order, Worker

SAYS = Invariant(type="contains", id="says", value="found")
TRIAL = make_plan("t", scenarios=[BASELINE], invariants=[SAYS], prompts=["one"]).trials[0]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path.cwd())


def order(tmp_path: Path, agent: FakeAgent, ended: list[str] | None = None, **more: object) -> Order:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Runner]:
        yield runner(tmp_path, agent)
        (ended if ended is not None else []).append("ended")

    return Order(opened, str(tmp_path), **more)


def test_runs_are_made_one_after_the_other_and_then_it_ends(tmp_path: Path) -> None:
    ended: list[str] = []
    agent = FakeAgent()
    worker = Worker(order(tmp_path, agent, ended, environ={"FLAKESTORM_TEST_OF_WORKERS": "1"}))
    try:
        assert worker.start() is None
        assert Path.cwd() == tmp_path
        outcomes = [worker.carry(Errand(TRIAL, baseline="found 3")) for _ in range(2)]
    finally:
        worker.close()
        assert os.environ.pop("FLAKESTORM_TEST_OF_WORKERS") == "1"
    assert [outcome.verdicts[0][1].outcome for outcome in outcomes] == ["pass", "pass"]
    assert all(outcome.tape for outcome in outcomes)
    assert agent.asked == ["one", "one"]
    assert ended == ["ended"]


@pytest.mark.parametrize(
    ("problem", "failure"),
    [
        (AgentUnreachable("it does not answer"), Failure("it does not answer", misuse=False)),
        (ConfigError("no such port", key="agent.endpoint"), Failure("agent.endpoint: no such port", misuse=True)),
    ],
)
def test_an_agent_that_cannot_be_started_is_told_of(tmp_path: Path, problem: Exception, failure: Failure) -> None:
    agent = FakeAgent()
    agent.problem = problem
    worker = Worker(order(tmp_path, agent))
    assert worker.start() == failure
    worker.close()


def test_another_version_or_folder_is_refused(tmp_path: Path) -> None:
    worker = Worker(order(tmp_path, FakeAgent(), version="0.0.1"))
    found = worker.start()
    assert found is not None
    assert found.misuse
    assert "0.0.1" in found.why
    worker.close()
    worker = Worker(order(tmp_path / "nowhere", FakeAgent()))
    found = worker.start()
    assert found is not None
    assert "nowhere" in found.why
    worker.close()


def test_what_is_not_wanted_any_more_is_left(tmp_path: Path) -> None:
    class Endless(FakeAgent):
        async def ask(self, prompt: str, line: object) -> None:  # type: ignore[override]
            await asyncio.Event().wait()

    answers = iter([True, False])
    wanted: Callable[[], bool] = lambda: next(answers)  # noqa: E731
    ended: list[str] = []
    worker = Worker(order(tmp_path, Endless(), ended), wanted)
    assert worker.start() is None
    with pytest.raises(Cancelled):
        worker.carry(Errand(TRIAL))
    worker.close()
    assert ended == ["ended"]
