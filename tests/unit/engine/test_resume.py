import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine_support import FakeWorld, run_of, says, scenario
from flakestorm.config.model import Invariant, Scenario, ToolFault
from flakestorm.core.site import Site
from flakestorm.core.verdict import failed
from flakestorm.engine.events import CellResult, Report, RunResult, ScenarioInfo
from flakestorm.engine.load import load_plan, loaded
from flakestorm.engine.loaded import Pace
from flakestorm.engine.pacing import Refusal
from flakestorm.engine.plan import make_plan
from flakestorm.engine.resume import take_over, unseen, view_of
from flakestorm.errors import Misuse
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.model import Exchange, Recorded

WORLD = FakeWorld(Path())
DOWN = scenario("down", "search", "pay")
PLAN = make_plan("contract run", scenarios=[scenario("calm"), DOWN], invariants=[says("fine")], prompts=["a", "b"])


def report_of(*runs) -> Report:
    return Report(
        command="contract run",
        verdict="inconclusive",
        exit_code=130,
        headline="",
        seed=1,
        started_at="",
        duration_ms=0,
        scores={},
        cells=(),
        runs=tuple(runs),
        scenarios=tuple(ScenarioInfo(s.name, Schedule.of(s).describe()) for s in PLAN.scenarios),
        prompts=PLAN.prompts,
        interrupted=True,
    )


def tape_of(*names: str):
    return lambda run: [Exchange(Site("tool", name, 1), url=f"http://x/{name}") for name in names]


def test_finished_runs_are_judged_again_and_the_rest_is_left() -> None:
    made = [run_of(PLAN.trials[0]).run, run_of(PLAN.trials[2], "oops").run]
    taken = take_over(PLAN, report_of(*made), tape_of("search"), WORLD)
    assert [j.trial.run for j in taken] == ["r-0001", "r-0003"]
    assert [v.outcome for j in taken for _, v in j.verdicts] == ["pass", "fail"]


def test_which_faults_found_their_tool_is_read_off_the_tape() -> None:
    run = run_of(PLAN.trials[2]).run
    (taken,) = take_over(PLAN, report_of(run), tape_of("search"), WORLD)
    assert taken.view.ledger.matched == {0: 1}
    (taken,) = take_over(PLAN, report_of(run), tape_of("search", "pay"), WORLD)
    assert taken.view.ledger.matched == {0: 1, 1: 1}


def test_which_faults_found_a_result_is_read_off_the_tape_too() -> None:
    told = {"role": "tool", "tool_call_id": "c1", "content": "3"}
    call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    messages = [{"role": "assistant", "tool_calls": [call]}, told]
    model = Exchange(Site("llm", "m", 1), wire="openai_chat", body=json.dumps({"messages": messages}).encode())
    run = run_of(PLAN.trials[2]).run
    (taken,) = take_over(PLAN, report_of(run), lambda run: [model], WORLD)
    assert taken.view.ledger.matched == {1: 1}
    seen = Scenario(name="down", tool_faults=[ToolFault(tool="pay", mode="error", match_url="*/other")])
    plan = make_plan("contract run", scenarios=[scenario("calm"), seen], invariants=[says("fine")], prompts=["a", "b"])
    infos = tuple(ScenarioInfo(s.name, Schedule.of(s).describe()) for s in plan.scenarios)
    (taken,) = take_over(plan, replace(report_of(run), scenarios=infos), lambda run: [model], WORLD)
    assert taken.view.ledger.matched == {}, "a fault for a URL is not for results"


def test_agent_errors_come_back_as_they_were() -> None:
    run = replace(run_of(PLAN.trials[0]).run, output="", error="http: 500 Internal Server Error")
    (taken,) = take_over(PLAN, report_of(run), tape_of(), WORLD)
    assert taken.view.error is not None
    assert (taken.view.error.kind, taken.view.error.message) == ("http", "500 Internal Server Error")


def test_a_run_that_never_reached_the_agent_is_made_again() -> None:
    run = replace(run_of(PLAN.trials[0]).run, output="", error="unreachable: refused")
    assert take_over(PLAN, report_of(run), tape_of(), WORLD) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [({"prompts": ("other",)}, "prompts are not those"), ({"scenarios": ()}, "scenarios are not those")],
)
def test_a_report_of_another_plan_is_refused(change, words) -> None:
    with pytest.raises(Misuse, match=words):
        take_over(PLAN, replace(report_of(), **change), tape_of(), WORLD)


def test_a_report_of_another_agent_is_refused() -> None:
    report = replace(report_of(run_of(PLAN.trials[0]).run), agent="http http://x/v1")
    assert len(take_over(PLAN, report, tape_of(), WORLD, agent="http http://x/v1")) == 1
    with pytest.raises(Misuse, match=r"made with another agent .*x/v1.*x/v2"):
        take_over(PLAN, report, tape_of(), WORLD, agent="http http://x/v2")


def test_a_report_made_with_other_trials_is_refused() -> None:
    other = make_plan(
        "contract run", scenarios=PLAN.scenarios, invariants=PLAN.invariants, prompts=PLAN.prompts, trials=2
    )
    with pytest.raises(Misuse, match="other --trials"):
        take_over(PLAN, report_of(*(run_of(t).run for t in other.trials)), tape_of(), WORLD)


def test_a_run_is_compared_again_with_what_was_said_without_chaos() -> None:
    unchanged = Invariant(type="behavior_unchanged", id="unchanged")
    plan = make_plan("contract run", scenarios=[scenario("calm"), DOWN], invariants=[unchanged], prompts=["a"])
    made = [run_of(plan.trials[0], "found three flights").run, run_of(plan.trials[1], "no idea at all").run]
    report = replace(report_of(*made), prompts=plan.prompts)
    taken = take_over(plan, report, tape_of("search"), WORLD)
    assert [(j.view.baseline, [v.outcome for _, v in j.verdicts]) for j in taken] == [
        ("found three flights", []),
        ("found three flights", ["fail"]),
    ]


def test_an_agent_of_somebody_else_is_held_where_its_tape_holds_anything() -> None:
    report = report_of(run_of(PLAN.trials[0]).run)
    for elsewhere, called, held in ((True, ["search"], True), (True, [], False), (False, [], True)):
        (found,) = take_over(PLAN, report, tape_of(*called), WORLD, elsewhere=elsewhere)
        assert found.view.held is held


def test_a_model_s_opinion_is_kept() -> None:
    polite = Invariant(type="judge", id="polite", rubric="polite")
    plan = make_plan("contract run", scenarios=[scenario("calm"), DOWN], invariants=[polite], prompts=["a"])
    run = run_of(plan.trials[0]).run
    cell = CellResult("calm", "polite", "medium", 0, 1, "fail", "the judge: rude", run.id)
    (taken,) = take_over(plan, replace(report_of(run), prompts=plan.prompts, cells=(cell,)), tape_of(), WORLD)
    assert [verdict for _, verdict in taken.verdicts] == [failed("the judge: rude")]


def test_a_run_that_the_world_refused_for_its_rate_is_made_again_unless_it_got_through() -> None:
    refused = replace(run_of(PLAN.trials[0]).run, refusals=(Refusal("tool/search#1", 429),))
    assert take_over(PLAN, report_of(refused), tape_of("search"), WORLD) == ()

    def later(_: RunResult) -> list[Exchange]:
        first, second = (Exchange(Site("tool", "search", n), url="http://x/search") for n in (1, 2))
        first.reply, second.reply = Recorded(429), Recorded(200)
        return [first, second]

    (taken,) = take_over(PLAN, report_of(refused), later, WORLD)
    assert (taken.view.starved, "tool/search#1" in taken.view.limited) == (False, True)


def test_of_a_load_test_only_whole_levels_are_taken_over() -> None:
    plan = load_plan(users=[1, 2, 3], runs=2, invariants=[says("fine")], prompts=["a"])
    made = [replace(run_of(t, output="fine").run, id=t.run) for t in plan.trials]
    lost = replace(made[1], error="unreachable: too many open files")
    report = replace(
        report_of(*made), scenarios=tuple(ScenarioInfo(s.name) for s in plan.scenarios), prompts=plan.prompts
    )
    paces = {s.name: Pace(5.0, None) for s in plan.scenarios[:2]}

    def taken(runs) -> list[str]:
        before = replace(report, runs=tuple(runs), load=loaded(plan, runs, [], paces))
        return [found.run.id for found in take_over(plan, before, lambda _: [], WORLD)]

    assert taken(made) == [t.run for t in plan.trials[:4]]
    assert taken([made[0], lost, *made[2:]]) == [t.run for t in plan.trials[2:4]]


def test_what_ran_beside_others_shows_no_calls() -> None:
    plan = load_plan(users=[1], runs=1, invariants=[Invariant(type="max_calls", id="few", limit=9)], prompts=["a"])
    trial = plan.trials[0]
    view = unseen(view_of(trial, run_of(trial).run, [], (), True, None))
    with pytest.raises(LookupError, match="cannot be told"):
        len(view.exchanges)
