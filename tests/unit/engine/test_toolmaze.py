"""Scenarios generated from what the agent does without chaos."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine_support import FakeAgent, FakeBoundary, FakeWorld, OneByOne, Stopped, run_of, says
from flakestorm.config.model import Scenario
from flakestorm.core.answer import Answer
from flakestorm.core.call import Call
from flakestorm.core.site import Site
from flakestorm.engine.campaign import Campaign
from flakestorm.engine.plan import BASELINE, make_plan
from flakestorm.engine.resume import take_over
from flakestorm.engine.runner import Runner
from flakestorm.engine.score import Gate
from flakestorm.engine.toolmaze import scenarios_for, tools_in
from flakestorm.errors import CallFailed
from flakestorm.faults import base
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.reader import Tape


def call(kind: str, name: str) -> Call:
    return Call("POST", "http://x/", kind=kind, name=name, site=Site(kind, name, 1))  # type: ignore[arg-type]


@pytest.fixture
def playable(monkeypatch: pytest.MonkeyPatch):
    """Lets a test say which tool modes there are."""

    def only(*modes: str) -> None:
        monkeypatch.setattr(type(base.tool_faults), "names", lambda self: modes)

    return only


def test_every_tool_gets_its_four_corners_and_the_lost_reply(playable) -> None:
    playable("error", "wrong_value", "empty", "malformed", "timeout_after_commit")
    made = scenarios_for(["search", "pay"])
    assert [scenario.name for scenario in made[:5]] == [
        "toolmaze: search explicit transient",
        "toolmaze: search explicit permanent",
        "toolmaze: search implicit transient",
        "toolmaze: search implicit permanent",
        "toolmaze: search timeout after commit",
    ]
    faults = [Schedule.written(scenario).line for scenario in made[5:]]
    assert faults == [
        "tool/pay=error,calls=1",
        "tool/pay=error",
        "tool/pay=wrong_value,calls=1",
        "tool/pay=wrong_value",
        "tool/pay=timeout_after_commit,calls=1",
    ]


def test_a_quiet_failure_is_the_best_lie_that_can_be_told(playable) -> None:
    playable("error", "malformed")
    assert [Schedule.written(s).line for s in scenarios_for(["a"])][2:] == [
        "tool/a=malformed,calls=1",
        "tool/a=malformed",
    ]


def test_what_is_there_already_is_not_made_again_and_a_name_is_no_glob() -> None:
    made = scenarios_for(["a*"], taken=["toolmaze: a* explicit transient"])
    assert made[0].name == "toolmaze: a* explicit permanent"
    assert made[0].tool_faults[0].tool == "a[*]"


def test_tools_are_those_that_were_called_and_those_whose_results_were_told() -> None:
    first = ([call("llm", "gpt-4o"), call("tool", "search"), call("mcp", "tools/list")], ["search", "pay"])
    second = ([call("mcp", "read_file"), call("http", "x.test"), call("tool", "search")], [])
    assert tools_in([first, second]) == ("search", "pay", "read_file")


class Searcher(FakeAgent):
    """A fake agent that lives through a search which is not answered."""

    async def ask(self, prompt, line) -> Answer:
        try:
            return await super().ask(prompt, line)
        except CallFailed as failed:
            return Answer(f"the search was not answered: {failed}")


def campaign(folder: Path, agent: FakeAgent, *scenarios: Scenario, stop_after: int | None = None, trials: int = 1):
    plan = make_plan(
        "contract run",
        scenarios=scenarios,
        invariants=[says("found", when="no_chaos"), says("search", name="tells")],
        prompts=["a", "b"],
        trials=trials,
        generate="toolmaze",
    )
    world = FakeWorld(folder)
    runner = Runner(
        agent=agent,
        boundary=FakeBoundary(),
        executor=OneByOne(stop_after),
        world=world,
        seed=42,
        tools=[("search", "*/search*")],
        listener=lambda event: None,
        concurrency=1,
        reproduce=lambda trial, schedule, ledger: "",
    )
    return Campaign(plan, runner, Gate("contract"), world, lambda event: None)


def test_the_runs_without_chaos_come_first_and_are_the_controls(tmp_path) -> None:
    agent = Searcher()
    running = campaign(tmp_path, agent)
    asyncio.run(running.execute())
    report = running.report()
    names = list(dict.fromkeys(run.scenario for run in report.runs))
    assert names[:3] == [BASELINE.name, "toolmaze: search explicit transient", "toolmaze: search explicit permanent"]
    assert [run.id for run in report.runs] == [f"r-{n:04d}" for n in range(1, len(report.runs) + 1)]
    assert len(agent.asked) == 2 * len(names), "one baseline for each prompt, and no other control"
    assert [info.name for info in report.scenarios] == names[1:]
    assert {cell.scenario for cell in report.cells} == set(names[1:]), "controls are not scored"


def test_a_scenario_without_chaos_serves_as_the_baseline(tmp_path) -> None:
    agent = Searcher()
    running = campaign(tmp_path, agent, Scenario(name="calm"), trials=2)
    asyncio.run(running.execute())
    report = running.report()
    assert [run.scenario for run in report.runs[:4]] == ["calm"] * 4
    assert BASELINE.name not in {run.scenario for run in report.runs}
    assert len(agent.asked) == 2 * 2 * len(report.scenarios)
    assert len({run.id for run in report.runs}) == len(report.runs)


def test_an_agent_without_tools_is_told_of(tmp_path) -> None:
    class Idle(FakeAgent):
        async def ask(self, prompt, line):
            return Answer("found nothing to search")

    running = campaign(tmp_path, Idle(), Scenario(name="calm"))
    asyncio.run(running.execute())
    assert "no tool was used in the runs without chaos" in running.report().notes[0]


@pytest.mark.parametrize("stop_after", [1, 3])
def test_an_interrupted_campaign_goes_on_where_it_was(tmp_path, stop_after) -> None:
    first = campaign(tmp_path, Searcher(), stop_after=stop_after)
    with pytest.raises(Stopped):
        asyncio.run(first.execute())
    report = first.report(interrupted=True)
    agent = Searcher()
    second = campaign(tmp_path, agent)
    second.earlier = take_over(second.plan, report, lambda run: Tape.open(run.tape).exchanges(), FakeWorld(tmp_path))
    assert len(second.earlier) == len(report.runs)
    asyncio.run(second.execute())
    whole = second.report()
    assert len(agent.asked) == len(whole.runs) - len(report.runs)
    assert len({run.id for run in whole.runs}) == len(whole.runs)
    assert run_of(second.plan.trials[0]).trial.scenario.name == whole.scenarios[0].name
