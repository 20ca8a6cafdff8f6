import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine_support import FakeAgent, FakeBoundary, FakeWorld, OneByOne, Stopped, says, scenario
from flakestorm.config.model import Invariant
from flakestorm.core.answer import AgentError, Answer
from flakestorm.engine.campaign import Campaign
from flakestorm.engine.events import Event, Planned, RunFinished
from flakestorm.engine.plan import make_plan
from flakestorm.engine.runner import Runner
from flakestorm.engine.score import Gate
from flakestorm.errors import AgentUnreachable, Misuse
from flakestorm.tape.reader import Tape

CALM, DOWN = scenario("calm"), scenario("down", "search")


def campaign(folder: Path, *scenarios, invariants=None, executor=None, agent=None, events=None) -> Campaign:
    plan = make_plan("contract run", scenarios=scenarios, invariants=invariants or [says("found")], prompts=["a", "b"])
    world = FakeWorld(folder)
    listener = (events if events is not None else []).append
    runner = Runner(
        agent=agent or FakeAgent(),
        boundary=FakeBoundary(),
        executor=executor or OneByOne(),
        world=world,
        seed=42,
        tools=[("search", "*/search*")],
        listener=listener,
        concurrency=1,
        reproduce=lambda trial, schedule, ledger: f"again {trial.run} {len(ledger.fired)}",
    )
    return Campaign(plan, runner, Gate("contract"), world, listener)


def test_a_whole_campaign(tmp_path) -> None:
    agent, events = FakeAgent(), []
    running = campaign(tmp_path, CALM, DOWN, agent=agent, events=events)
    asyncio.run(running.execute())
    report = running.report()
    assert (report.verdict, report.exit_code) == ("fail", 1)
    assert [(r.id, r.scenario, r.output) for r in report.runs] == [
        ("r-0001", "calm", "found 3"),
        ("r-0002", "calm", "found 3"),
        ("r-0003", "down", "search is unavailable"),
        ("r-0004", "down", "search is unavailable"),
    ]
    assert agent.reached == 2
    assert [f"{f.site}={f.mode}" for f in report.runs[2].fired] == ["tool/search#1=error"]
    assert report.runs[2].reproduce == "again r-0003 1"
    assert report.runs[0].calls == {"llm": 0, "tool": 1, "mcp": 0, "http": 0}
    assert isinstance(events[0], Planned)
    assert sum(isinstance(e, RunFinished) for e in events) == 4
    assert report.scenarios[1].faults == ("tool/search=error",)


def test_each_run_has_its_tape(tmp_path) -> None:
    running = campaign(tmp_path, DOWN)
    asyncio.run(running.execute())
    tape = Tape.open(Path(running.report().runs[0].tape))
    (exchange,) = tape.exchanges()
    assert (str(exchange.site), exchange.sent, exchange.reply.status) == ("tool/search#1", 0, 503)


def test_a_failure_without_a_control_gets_one(tmp_path) -> None:
    agent = FakeAgent()
    running = campaign(tmp_path, DOWN, agent=agent, invariants=[says("nothing says this")])
    asyncio.run(running.execute())
    report = running.report()
    assert [r.scenario for r in report.runs] == ["down", "down", "no chaos", "no chaos"]
    assert all(c.also_fails_without_chaos for c in report.cells)
    assert len(report.cells) == 2


def test_no_control_is_made_where_nothing_failed(tmp_path) -> None:
    agent = FakeAgent()
    running = campaign(tmp_path, DOWN, agent=agent, invariants=[says("unavailable")])
    asyncio.run(running.execute())
    assert len(agent.asked) == 2
    assert agent.reached == 0


def test_an_interruption_keeps_what_finished_and_resuming_runs_only_the_rest(tmp_path) -> None:
    first = campaign(tmp_path, CALM, DOWN, executor=OneByOne(stop_after=3))
    with pytest.raises(Stopped):
        asyncio.run(first.execute())
    report = first.report(interrupted=True)
    assert (len(report.runs), report.exit_code) == (3, 130)

    agent = FakeAgent()
    second = campaign(tmp_path, CALM, DOWN, agent=agent)
    second.earlier = tuple(first.finished)
    asyncio.run(second.execute())
    assert agent.asked == ["b"]
    assert len(second.report().runs) == 4


def test_an_agent_that_cannot_be_reached_ends_it_at_once(tmp_path) -> None:
    agent, events = FakeAgent(), list[Event]()
    agent.problem = AgentUnreachable("nobody listens on 127.0.0.1:1")
    running = campaign(tmp_path, CALM, agent=agent, events=events)
    asyncio.run(running.execute())
    report = running.report()
    assert (report.verdict, report.exit_code, report.runs) == ("inconclusive", 3, ())
    assert "nobody listens" in report.headline
    assert agent.asked == []


def test_what_is_not_available_is_refused_before_anything_starts(tmp_path) -> None:
    agent = FakeAgent()
    with pytest.raises(Misuse, match="not available in this version"):
        asyncio.run(campaign(tmp_path, _wrong_mode(), agent=agent).execute())
    assert agent.asked == []


def _wrong_mode():
    return replace(scenario("wrong"), tool_faults=[replace(scenario("x", "search").tool_faults[0], mode="melt")])


def test_runs_without_chaos_come_first_where_others_are_compared_with_them(tmp_path) -> None:
    """One run without chaos for each prompt, whatever the number of trials and scenarios."""
    unchanged = Invariant(type="behavior_unchanged", id="unchanged", severity="critical")
    agent = FakeAgent()
    running = campaign(tmp_path, DOWN, scenario("also down", "search"), invariants=[unchanged], agent=agent)
    asyncio.run(running.execute())
    report = running.report()
    assert [(run.id, run.scenario) for run in report.runs] == [
        ("r-0001", "no chaos"),
        ("r-0002", "no chaos"),
        ("r-0003", "down"),
        ("r-0004", "down"),
        ("r-0005", "also down"),
        ("r-0006", "also down"),
    ]
    assert len(agent.asked) == 6
    assert {cell.verdict for cell in report.cells} == {"fail"}
    assert "alike to the baseline" in report.cells[0].reason
    assert "found 3" in report.cells[0].reason


def test_the_matrix_s_own_runs_without_chaos_are_the_baseline(tmp_path) -> None:
    unchanged = Invariant(type="behavior_unchanged", id="unchanged")
    agent = FakeAgent()
    running = campaign(tmp_path, DOWN, CALM, invariants=[unchanged, says("found")], agent=agent)
    asyncio.run(running.execute())
    assert len(agent.asked) == 4
    compared = [cell for cell in running.report().cells if cell.invariant == "unchanged"]
    assert [(cell.scenario, cell.verdict) for cell in compared] == [("down", "fail"), ("down", "fail")]


def test_an_agent_that_fails_without_chaos_gives_no_baseline(tmp_path) -> None:
    class Mute(FakeAgent):
        async def ask(self, prompt, line):
            return Answer(error=AgentError("crash", "exit code 1"))

    unchanged = Invariant(type="behavior_unchanged", id="unchanged")
    running = campaign(tmp_path, DOWN, invariants=[unchanged], agent=Mute())
    asyncio.run(running.execute())
    assert {cell.verdict for cell in running.report().cells} == {"fail"}  # no output: the agent's own error
