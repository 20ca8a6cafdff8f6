from compare_support import cell_of, run_result
from engine_support import run_of, says, scenario
from flakestorm.api.sides import key_of, side_of, sides_in, texts_of
from flakestorm.engine.events import Report
from flakestorm.engine.plan import make_plan


def test_prompts_that_are_there_twice_stay_apart() -> None:
    assert texts_of(["a", "b", "a"]) == ["a (prompt 0)", "b", "a (prompt 2)"]


def test_a_run_and_the_same_run_of_a_report_have_one_key() -> None:
    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[says("fine")], prompts=["a"])
    (trial,) = plan.trials
    made = run_of(trial)
    report = Report("x", "pass", 0, "", 1, "", 0.0, {}, made.cells, (made.run, run_result("r-9")), prompts=("a",))
    found = sides_in(report)
    assert list(found) == [key_of(trial, texts_of(plan.prompts))]  # what nothing was judged on is left out
    assert found[key_of(trial, ["a"])] == side_of(made)
    assert side_of(None) is None


def test_a_report_that_does_not_name_its_prompts_is_read_by_its_inputs() -> None:
    report = Report("x", "pass", 0, "", 1, "", 0.0, {}, (cell_of("pass"),), (run_result(input="hello"),))
    assert [key.prompt for key in sides_in(report)] == ["hello"]
