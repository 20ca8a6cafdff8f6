from dataclasses import replace

import pytest

from engine_support import run_of, says, scenario
from flakestorm.engine.mutating import mutated_plan
from flakestorm.engine.plan import Plan, make_plan
from flakestorm.engine.score import UNHELD, Gate, assemble
from flakestorm.mutations.generate import Recipe, made

CALM, DOWN = scenario("calm"), scenario("down", "search")
CONTRACT = Gate("contract")


def plan_of(*scenarios, invariants=None, trials: int = 1, prompts=("a",)) -> Plan:
    return make_plan(
        "contract run", scenarios=scenarios, invariants=invariants or [says("fine")], prompts=prompts, trials=trials
    )


def test_everything_kept_is_a_pass() -> None:
    plan = plan_of(CALM, DOWN)
    found = assemble(plan, [run_of(t) for t in plan.trials], CONTRACT)
    assert (found.verdict, found.exit_code) == ("pass", 0)
    score = found.scores["contract"]
    assert (score.value, score.passed, score.conclusive, score.inconclusive) == (100.0, 2, 2, 0)
    assert score.low is not None
    assert score.low < 100


def test_a_broken_promise_fails_and_names_its_run() -> None:
    plan = plan_of(CALM, DOWN)
    found = assemble(plan, [run_of(plan.trials[0]), run_of(plan.trials[1], "oops")], CONTRACT)
    assert (found.verdict, found.exit_code) == ("fail", 1)
    assert [(c.scenario, c.verdict, c.run) for c in found.cells] == [
        ("calm", "pass", "r-0001"),
        ("down", "fail", "r-0002"),
    ]


def test_a_scenario_in_which_nothing_fired_is_inconclusive() -> None:
    plan = plan_of(DOWN)
    found = assemble(plan, [run_of(t, fired=False) for t in plan.trials], CONTRACT)
    assert (found.verdict, found.exit_code) == ("inconclusive", 3)
    assert found.scores["contract"].value is None


def test_runs_where_a_fault_happened_not_to_fire_spoil_nothing() -> None:
    plan = plan_of(scenario("flaky", "search", probability=0.5), trials=2)
    runs = [run_of(t, fired=t.number == 1) for t in plan.trials]
    assert assemble(plan, runs, CONTRACT).exit_code == 0


def test_a_fault_that_never_finds_its_tool_makes_passes_inconclusive_and_lists_the_tools_seen() -> None:
    plan = plan_of(scenario("two", "search", "pay"))
    found = assemble(plan, [run_of(t, seen=("search", "weather")) for t in plan.trials], CONTRACT)
    assert found.exit_code == 3
    assert "pay" in found.cells[0].reason
    assert "search, weather" in found.cells[0].reason
    assert any("never found its tool" in note for note in found.notes)


def test_a_tool_that_was_spoken_of_and_not_reached_is_told_how_to_reach() -> None:
    plan = plan_of(scenario("one", "sea*"))
    lost = [replace(j, run=replace(j.run, seen=("search",))) for j in [run_of(t, seen=()) for t in plan.trials]]
    (note,) = assemble(plan, lost, CONTRACT).notes
    assert "never found its tool; tools seen: search; the model spoke of search, but" in note


def test_a_failure_that_chaos_did_not_cause_says_so() -> None:
    plan = plan_of(CALM, DOWN)
    found = assemble(plan, [run_of(t, "oops") for t in plan.trials], CONTRACT)
    assert [c.also_fails_without_chaos for c in found.cells] == [False, True]


def test_controls_explain_but_are_not_scored() -> None:
    plan = plan_of(DOWN)
    runs = [run_of(plan.trials[0], "oops"), run_of(plan.controls([0])[0], "oops")]
    found = assemble(plan, runs, CONTRACT)
    assert len(found.cells) == 1
    assert found.cells[0].also_fails_without_chaos
    assert found.scores["contract"].conclusive == 1


def test_a_rule_that_holds_only_under_chaos_has_nothing_to_be_compared_with() -> None:
    plan = plan_of(CALM, DOWN, invariants=[says("fine", when="tool_faults_active")])
    found = assemble(plan, [run_of(t, "oops") for t in plan.trials], CONTRACT)
    assert [(c.scenario, c.also_fails_without_chaos) for c in found.cells] == [("down", False)]


@pytest.mark.parametrize(
    ("gate", "severity", "exit_code"),
    [
        (Gate("contract"), "low", 1),
        (Gate("contract", 10), "low", 0),
        (Gate("contract", 90), "low", 1),
        (Gate("contract", 10), "critical", 1),
        (Gate("chaos"), "high", 0),
        (Gate("chaos", 0.9), "high", 1),
        (Gate("chaos"), "critical", 1),
        (Gate("single"), "low", 1),
    ],
)
def test_gates(gate, severity, exit_code) -> None:
    plan = plan_of(CALM, DOWN, invariants=[says("fine", severity=severity)], prompts=("a", "b", "c"))
    runs = [run_of(t, "oops" if t.run == "r-0006" else "fine") for t in plan.trials]
    assert assemble(plan, runs, gate).exit_code == exit_code


def test_an_interruption_is_told_and_keeps_what_is_known() -> None:
    plan = plan_of(CALM, DOWN)
    found = assemble(plan, [run_of(plan.trials[0])], CONTRACT, interrupted=True)
    assert (found.verdict, found.exit_code) == ("inconclusive", 130)
    assert "1 of 2 runs were not made" in found.headline
    assert len(found.cells) == 1


def test_nothing_run_says_why() -> None:
    found = assemble(plan_of(CALM), [], CONTRACT, notes=["the agent could not be reached: refused"])
    assert (found.exit_code, found.headline) == (3, "the agent could not be reached: refused")
    told = "the agent ended: code 1; its last lines:\n    Traceback\n      File x\n    OSError: no model"
    found = assemble(plan_of(CALM), [], CONTRACT, notes=[told])
    assert found.headline == "the agent ended: code 1; its last lines: … OSError: no model"
    assert found.notes == (told,)
    assert found.scores["contract"].value is None


def test_an_agent_of_somebody_else_of_which_nothing_was_seen() -> None:
    def unheld(trial):
        judged = run_of(trial, fired=False, seen=())
        return replace(judged, view=replace(judged.view, held=False))

    plan = plan_of(CALM, DOWN)
    found = assemble(plan, [unheld(t) for t in plan.trials], CONTRACT)
    assert found.exit_code == 3
    assert UNHELD in found.notes
    assert UNHELD not in assemble(plan, [unheld(plan.trials[0]), run_of(plan.trials[1])], CONTRACT).notes
    calm = plan_of(CALM)  # nothing here depends on the boundary
    assert assemble(calm, [unheld(t) for t in calm.trials], CONTRACT).notes == ()


def test_robustness_is_by_weight_with_its_halves_and_not_of_probes() -> None:
    rows = [made(Recipe(["noise", "prompt_injection"], 2, 1, {"prompt_injection": 3.0}, {}), "a")[0]]
    probing = says("fine", name="probing", probes=["probe"])
    plan = mutated_plan(rows, invariants=[says("fine"), probing], prompts=["a"])
    outputs = ["fine", "fine", "fine", "oops", "oops"]
    found = assemble(plan, [run_of(t, o) for t, o in zip(plan.trials, outputs, strict=True)], Gate("mutation"))
    scores = found.scores
    assert scores["robustness"].value == pytest.approx((0.8 * 2 + 3) / (0.8 * 2 + 6), abs=1e-4)
    assert (scores["benign"].value, scores["resistance"].value) == (1.0, 0.5)
    assert scores["robustness"].conclusive == 4
    assert found.exit_code == 0
    assert assemble(plan, [run_of(plan.trials[3], "oops")], Gate("mutation", 0.9)).exit_code == 1


def test_a_type_without_weight_is_judged_and_not_scored() -> None:
    rows = [made(Recipe(["noise"], 2, 1, {"noise": 0.0}, {}), "a")[0]]
    plan = mutated_plan(rows, invariants=[says("fine", severity="critical")], prompts=["a"])
    found = assemble(plan, [run_of(t, "oops") for t in plan.trials], Gate("mutation"))
    assert found.scores["robustness"].value is None
    assert found.exit_code == 1
