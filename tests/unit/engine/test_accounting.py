"""Every planned fault is accounted for in every run: fired, masked, impossible or idle."""

from __future__ import annotations

import asyncio

import pytest

from engine_support import FakeAgent, FakeBoundary, FakeWorld, OneByOne, says
from flakestorm.config.model import LlmFault, Scenario, ToolFault
from flakestorm.core.answer import Answer
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import drive
from flakestorm.core.site import Site
from flakestorm.core.stream import read
from flakestorm.engine.accounting import NOT_MADE, account, reach, undecided
from flakestorm.engine.campaign import Campaign
from flakestorm.engine.events import Report
from flakestorm.engine.plan import make_plan
from flakestorm.engine.runner import Runner
from flakestorm.engine.score import Gate
from flakestorm.faults.schedule import Schedule


class Traveller(FakeAgent):
    """Searches, books if it found something, and books again if asked for two; the prompt says how it goes on."""

    async def ask(self, prompt, line) -> Answer:
        self.asked.append(prompt)

        def use(name: str) -> bool:
            reply = drive(line.pipeline(Call("GET", f"http://tools/{name}")), lambda _: Reply(200, body=b"{}"), print)
            read(reply)
            return reply.status == 200

        if not use("search"):
            return Answer("found nothing")
        bookings = [use("book") for _ in range(2 if "two" in prompt else 1)]
        return Answer("booked" if all(bookings) else "could not book")


def judge(tmp_path, *faults: ToolFault | LlmFault, prompts=("one",), trials: int = 1, calm: bool = False):
    scenario = Scenario(
        name="bad day",
        tool_faults=[f for f in faults if isinstance(f, ToolFault)],
        llm_faults=[f for f in faults if isinstance(f, LlmFault)],
    )
    scenarios = [Scenario(name="calm"), scenario] if calm else [scenario]
    plan = make_plan("x", scenarios=scenarios, invariants=[says("o")], prompts=prompts, trials=trials)
    agent, world = Traveller(), FakeWorld(tmp_path)
    runner = Runner(
        agent=agent,
        boundary=FakeBoundary(),
        executor=OneByOne(),
        world=world,
        seed=1,
        tools=[("search", "*/search"), ("book", "*/book")],
        listener=lambda event: None,
        concurrency=1,
        reproduce=lambda trial, schedule, ledger: "",
    )
    campaign = Campaign(plan, runner, Gate("contract"), world, lambda event: None)
    asyncio.run(campaign.execute())
    return campaign.report(), agent


def outcomes(report: Report, run: int = 0) -> dict[str, list[str]]:
    made = [r for r in report.runs if r.scenario == "bad day"][run]
    return {
        name: [f"{f.site}={f.mode}" for f in getattr(made, name)]
        for name in ("fired", "masked", "impossible", "idle")
        if getattr(made, name)
    }


def error(tool: str, **more: object) -> ToolFault:
    return ToolFault(tool=tool, mode="error", **more)  # type: ignore[arg-type]


def test_a_fault_that_an_earlier_one_kept_from_its_call_is_masked(tmp_path) -> None:
    report, agent = judge(tmp_path, error("search"), error("book"))
    assert outcomes(report) == {"fired": ["tool/search#1=error"], "masked": ["tool/book#1=error"]}
    run = report.runs[0]
    assert run.masked[0].detail == f"masked by error at tool/search#1: {NOT_MADE}"
    assert len(agent.asked) == 2, "one run without chaos tells that the call would have been made"
    assert [(t.fired, t.masked, t.impossible, t.idle, t.runs) for t in report.scenarios[0].tallies] == [
        (1, 0, 0, 0, 1),
        (0, 1, 0, 0, 1),
    ]
    assert report.notes == (
        "scenario bad day: tool/book=error was masked in every run, because other faults came before it",
    )
    assert report.verdict == "pass", "what was masked was there to be broken"


def test_a_later_occurrence_that_was_never_reached_is_masked(tmp_path) -> None:
    report, _ = judge(tmp_path, error("search"), error("book", calls=[2]), prompts=("two",))
    assert outcomes(report) == {"fired": ["tool/search#1=error"], "masked": ["tool/book#2=error"]}


def test_a_tool_that_no_run_calls_is_impossible_and_the_scenario_inconclusive(tmp_path) -> None:
    report, agent = judge(tmp_path, error("search"), error("refund"))
    assert outcomes(report) == {"fired": ["tool/search#1=error"], "impossible": ["tool/refund#1=error"]}
    assert report.runs[0].impossible[0].detail == "no run makes this call; tools seen: search"
    assert len(agent.asked) == 2
    assert report.verdict == "inconclusive"
    assert "tool fault 'tool/refund=error' never found its tool; tools seen: search" in report.cells[0].reason


def test_an_occurrence_that_no_run_makes_is_impossible(tmp_path) -> None:
    report, _ = judge(tmp_path, error("search", calls=[1]), error("book", after_calls=7))
    assert outcomes(report)["impossible"] == ["tool/book#8=error"]
    report, _ = judge(tmp_path, ToolFault(tool="search", mode="slow", delay_ms=0), error("book", after_calls=7))
    assert report.notes == ("scenario bad day: tool/book=error,after_calls=7 waits for a call that no run makes",)
    assert report.verdict == "pass", "its tool was found, and another fault was put to the test"


def test_a_pinned_site_that_no_run_has_is_impossible(tmp_path) -> None:
    report, _ = judge(tmp_path, error("*", site="tool/search#4"))
    assert outcomes(report) == {"impossible": ["tool/search#4=error"]}
    assert report.verdict == "inconclusive"


def test_a_model_fault_without_a_model_is_impossible_and_told_of(tmp_path) -> None:
    report, _ = judge(tmp_path, error("search"), LlmFault(mode="timeout"))
    assert outcomes(report)["impossible"] == ["llm/*#1=timeout"]
    assert report.notes == ("scenario bad day: llm/*=timeout found no call to act on in any run",)


def test_a_fault_that_chance_left_out_is_idle(tmp_path) -> None:
    report, agent = judge(tmp_path, error("search", probability=0.0))
    assert outcomes(report) == {"idle": ["tool/search#1=error"]}
    assert report.runs[0].idle[0].detail == "its triggers did not agree, or it found nothing to change"
    assert len(agent.asked) == 1


def test_what_other_prompts_do_does_not_mask(tmp_path) -> None:
    """`book#2` is there for the prompt that wants two seats; for the other one it was never to be."""
    report, _ = judge(tmp_path, error("search"), error("book", calls=[2]), prompts=("one", "two"))
    assert outcomes(report, 0) == {"fired": ["tool/search#1=error"], "idle": ["tool/book#2=error"]}
    assert outcomes(report, 1) == {"fired": ["tool/search#1=error"], "masked": ["tool/book#2=error"]}
    assert report.runs[0].idle[0].detail == "none of its calls made, too few for it"


def test_a_control_that_is_in_the_matrix_is_not_made_again(tmp_path) -> None:
    _, agent = judge(tmp_path, error("search"), error("book"), calm=True)
    assert len(agent.asked) == 2


def test_each_planned_fault_is_in_one_place_in_every_run(tmp_path) -> None:
    faults = [error("search", probability=0.5), error("book"), error("refund"), error("book", calls=[3])]
    report, _ = judge(tmp_path, *faults, prompts=("one", "two"), trials=8)
    for run in (run for run in report.runs if run.scenario == "bad day"):
        told = [{f.fault for f in firings} for firings in (run.fired, run.masked, run.impossible, run.idle)]
        assert set().union(*told) == {0, 1, 2, 3}
    for tally in report.scenarios[0].tallies:
        assert tally.fired + tally.masked + tally.impossible + tally.idle == tally.runs == 16


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (error("search"), 2),
        (error("*", site="tool/search#2"), 1),
        (error("book"), 1),
        (error("book", where="result"), 1),
        (error("search", where="result"), 1),
        (error("*"), 3),
        (error("nothing"), 0),
        (LlmFault(mode="timeout"), 1),
    ],
)
def test_reach_counts_calls_and_the_results_of_tools_that_are_not_seen(fault, found) -> None:
    scenario = Scenario(
        name="x",
        tool_faults=[fault] if isinstance(fault, ToolFault) else [],
        llm_faults=[fault] if isinstance(fault, LlmFault) else [],
    )
    calls = [Call("GET", "http://x/s", kind="tool", name="search", site=Site("tool", "search", n)) for n in (1, 2)]
    calls.append(Call("POST", "http://x/v1", kind="llm", name="m", site=Site("llm", "m", 1)))
    assert reach(Schedule.of(scenario), calls, ["book", "search"])[0] == found


def test_without_faults_or_runs_there_is_nothing_to_tell() -> None:
    schedule = Schedule.of(Scenario(name="x", tool_faults=[error("search")]))
    assert account(schedule, [], []).tallies == ()
    assert account(Schedule(), [], []).runs == []
    assert not undecided(schedule, [])
