"""The fixture `agent_run`: asks the configured agent, under what the test's marker breaks."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from flakestorm.api.loops import in_trio, under_way
from flakestorm.config.model import ContextAttack, Scenario
from flakestorm.core.choices import entropy_seed
from flakestorm.engine.plan import Trial
from flakestorm.errors import FlakestormError, WorldFailed
from flakestorm.faults.schedule import Schedule
from flakestorm.pytest_plugin.agents import Agents, agents_of
from flakestorm.pytest_plugin.marks import Mark, config_file
from flakestorm.pytest_plugin.notes import RUNS, TRIAL, UNJUDGED
from flakestorm.pytest_plugin.runs import Run, inconclusive, refuse

if TYPE_CHECKING:
    from pathlib import Path

    from flakestorm.api.keeping import Asked
    from flakestorm.pytest_plugin.taping import HeldTape

__all__ = ["AgentRun", "agent_run"]


def agent_run(request: pytest.FixtureRequest) -> AgentRun:
    """The fixture's value for this test."""
    item = request.node
    try:
        mark = Mark.of(item)
        agents = agents_of(request)
        path = config_file(item, mark.config)
        scenario = mark.breaks(agents.project(path).config, item.nodeid, (item.path.parent, item.config.rootpath))
        schedule = Schedule.of(scenario)
    except FlakestormError as error:
        refuse(error)
    taped = request.getfixturevalue("tape") if "tape" in request.fixturenames else None
    return AgentRun(item, agents, path, scenario, mark.seed, taped, schedule)


class AgentRun:
    """Asks the agent of one test.

    Args:
        item: the test.
        agents, path: where the agent is had, and its config.
        scenario: what breaks.
        seed: the marker's.
        taped: the test's `tape`, whose recordings then answer in the world's place.
        schedule: the same, as faults are planned.
    """

    def __init__(
        self,
        item: pytest.Item,
        agents: Agents,
        path: Path,
        scenario: Scenario,
        seed: int | None,
        taped: HeldTape | None,
        schedule: Schedule,
    ) -> None:
        self._item, self._agents, self._path, self._scenario = item, agents, path, scenario
        self._seed, self._taped, self._schedule = seed, taped, schedule
        self._asked: Counter[str] = Counter()
        item.stash[RUNS] = []

    def __call__(self, input: str) -> Any:  # noqa: A002 - SPEC's word
        """Give the agent this input, and wait for its answer.

        Where an event loop runs, as in an async test, the result is to be awaited: `run = await agent_run("...")`.

        Returns:
            a `Run`.
        """
        if not isinstance(input, str):
            refuse(TypeError(f"agent_run takes the text that the agent is given, not {input!r}"))
        try:
            kept = self._agents.kept(self._path)
            stand = None if self._taped is None else self._taped.stand()
            seed = self._chosen_seed() if stand is None or stand.seed is None else stand.seed
            future = kept.ask(
                self._trial(input),
                seed=seed,
                within=() if stand is None else stand.within,
                path=None if stand is None else stand.path,
            )
        except WorldFailed as error:
            self._unjudged(str(error))
        except FlakestormError as error:
            refuse(error)
        if under_way():
            return _Awaited(self, future, seed)
        try:
            return self._done(future.result, seed)
        finally:
            future.cancel()  # of a Ctrl-C

    def __repr__(self) -> str:
        return f"<the agent of {self._path.name}>"

    def _trial(self, text: str) -> Trial:
        golden = self._agents.project(self._path).config.golden_prompts
        prompt = golden.index(text) if text in golden else len(golden)
        self._asked[text] += 1
        number = self._item.stash.get(TRIAL, 1) + (self._asked[text] - 1) * 1_000_000  # each draws for itself
        return Trial(self._agents.next_run(self._item.name), self._scenario, prompt, text, number, ())

    def _chosen_seed(self) -> int:
        option: int | None = self._item.config.getoption("--flakestorm-seed")
        for seed in (option, self._seed, self._agents.project(self._path).config.advanced.seed):
            if seed is not None:
                return seed
        self._seed = entropy_seed()
        return self._seed

    def _done(self, result: Callable[[], Asked], seed: int) -> Run:
        try:
            asked = result()
        except FlakestormError as error:
            refuse(error)
        run = Run.of(asked, seed, self._schedule.describe(), chance=_by_chance(self._schedule))
        self._item.stash[RUNS].append(run)
        if run.error is not None and run.error.startswith("unreachable"):
            self._unjudged(run.error)
        return run

    def _unjudged(self, reason: str) -> NoReturn:
        self._item.stash[UNJUDGED] = "unreachable"
        inconclusive(f"the agent could not be asked: {reason}")


class _Awaited:
    """A run that is to be awaited."""

    def __init__(self, asking: AgentRun, future: Future[Asked], seed: int) -> None:
        self._asking, self._future, self._seed = asking, future, seed

    def __await__(self) -> Generator[Any, None, Run]:
        waiting = _in_trio(self._future) if in_trio() else asyncio.wrap_future(self._future)
        asked = yield from waiting.__await__()
        return self._asking._done(lambda: asked, self._seed)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"an event loop runs here, so the run is to be awaited first: (await agent_run(...)).{name}"
        )


async def _in_trio(future: Future[Asked]) -> Asked:
    trio = sys.modules["trio"]  # which is whose task waits
    try:
        asked: Asked = await trio.to_thread.run_sync(future.result, abandon_on_cancel=True)
        return asked
    except BaseException:
        future.cancel()
        raise


def _by_chance(schedule: Schedule) -> bool:
    """Whether every planned fault is left to chance; an empty schedule is not."""
    specs = [planned.spec for planned in schedule.planned]
    chances = [
        s.probability if not isinstance(s, ContextAttack) or s.probability is not None else s.trigger_probability
        for s in specs
    ]
    return bool(specs) and all(chance is not None and chance < 1 for chance in chances)
