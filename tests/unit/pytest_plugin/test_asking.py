"""`agent_run` asks, and says what it cannot."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flakestorm.errors import AgentUnreachable
from flakestorm.faults.schedule import Schedule
from flakestorm.pytest_plugin.agents import Agents
from flakestorm.pytest_plugin.asking import AgentRun
from flakestorm.pytest_plugin.marks import Mark
from flakestorm.pytest_plugin.notes import RUNS, UNJUDGED
from plugin_support import project


class Item:
    """As much of a test as is looked at."""

    name = nodeid = "test_a"

    def __init__(self, seed: int | None = None) -> None:
        self.stash, self._seed = pytest.Stash(), seed
        self.config: Any = self

    def getoption(self, _: str) -> int | None:
        return self._seed


@pytest.fixture
def agents(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SEARCH_URL", "http://127.0.0.1:9/search")
    kept = Agents(tmp_path / "tapes", tmp_path)
    project(tmp_path, "")
    yield kept
    kept.close()


def asking(agents: Agents, folder: Path, mark: Mark, item: Any) -> AgentRun:
    config = folder / "flakestorm.yaml"
    scenario = mark.breaks(agents.project(config).config, "test_a")
    return AgentRun(item, agents, config, scenario, mark.seed, None, Schedule.of(scenario))


def test_runs_are_kept_with_the_test(agents, tmp_path) -> None:
    item = Item(seed=7)
    ask = asking(agents, tmp_path, Mark(faults=["tool/search=error:503"], seed=3), item)
    run = ask("a flight to Oslo")
    assert (run.seed, run.planned, run.chance) == (7, ("tool/search=error:503",), False)
    assert run.reproduce == "flakestorm run -c flakestorm.yaml --prompt 0 --inject 'tool/search#1=error:503'"
    assert "--input b" in ask("b").reproduce
    assert item.stash[RUNS][0] is run
    assert len(item.stash[RUNS]) == 2


@pytest.mark.parametrize(
    ("faults", "chance"),
    [
        ({}, False),
        ({"faults": ["tool/*=error:503,probability=0.5"]}, True),
        ({"faults": ["tool/*=error:503,probability=0.5", "llm/*=timeout"]}, False),
        ({"context_attacks": [{"type": "indirect_injection", "trigger_probability": 0.5}]}, True),
    ],
)
def test_what_is_left_to_chance(agents, tmp_path, faults, chance) -> None:
    assert asking(agents, tmp_path, Mark(**faults), Item(seed=1))("a").chance is chance


def test_where_a_loop_runs_the_run_is_awaited(agents, tmp_path) -> None:
    ask = asking(agents, tmp_path, Mark(scenario="search-down"), Item())

    async def test() -> None:
        pending = ask("a")
        with pytest.raises(AttributeError, match=r"await agent_run\(\.\.\.\)\)\.output"):
            _ = pending.output
        assert "unavailable" in (await pending).output

    asyncio.run(test())


def test_an_agent_that_cannot_be_reached_is_inconclusive(agents, tmp_path, monkeypatch) -> None:
    def gone(_: object) -> None:
        raise AgentUnreachable("nobody there")

    item = Item()
    ask = asking(agents, tmp_path, Mark(), item)
    monkeypatch.setattr(agents, "kept", gone)
    with pytest.raises(pytest.fail.Exception, match=r"^inconclusive: the agent could not be asked: nobody there"):
        ask("a")
    assert item.stash[UNJUDGED] == "unreachable"
