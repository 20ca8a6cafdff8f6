from dataclasses import replace

from engine_support import run_of, says, scenario
from flakestorm.engine.pacing import Refusal
from flakestorm.engine.plan import make_plan
from flakestorm.engine.steadiness import unsteady_prompts


def runs(*outputs: str, name: str = "calm", tools: tuple[str, ...] = ()):
    plan = make_plan(
        "x", scenarios=[scenario(name, *tools)], invariants=[says("a")], prompts=["p", "q"], trials=len(outputs)
    )
    return [run_of(trial, outputs[trial.number - 1] if trial.prompt == 0 else "same") for trial in plan.trials]


def test_equal_runs_that_are_equal_say_nothing() -> None:
    assert unsteady_prompts(runs("a", "a", "a")) == ((), [])


def test_one_note_however_many_differ() -> None:
    prompts, notes = unsteady_prompts(runs("a", "b", "c"))
    assert prompts == (0,)
    (note,) = notes
    assert "r-0001 and r-0002" in note
    assert "agent.reset_endpoint" in note


def test_chaos_may_differ_and_who_was_not_there_says_nothing() -> None:
    assert unsteady_prompts(runs("a", "b", name="down", tools=("search",))) == ((), [])
    first, second, *rest = runs("a", "b")
    gone = replace(second, run=replace(second.run, error="unreachable: refused"))
    assert unsteady_prompts([first, gone, *rest]) == ((), [])
    limited = replace(second, run=replace(second.run, refusals=(Refusal("llm/gpt#1", 429),)))
    assert unsteady_prompts([first, limited, *rest]) == ((), [])


def test_other_calls_are_a_difference_too() -> None:
    first, second, *rest = runs("a", "a")
    other = replace(second, run=replace(second.run, calls={"tool": 2}))
    assert unsteady_prompts([first, other, *rest])[0] == (0,)
