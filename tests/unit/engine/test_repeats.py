from collections import defaultdict
from dataclasses import replace

import pytest

from compare_support import cell_of, run_result
from flakestorm.core.verdict import Outcome
from flakestorm.engine.events import CellResult, MutationInfo
from flakestorm.engine.loaded import LevelResult, Loaded
from flakestorm.engine.repeats import pass_ks, reliability, repeated, runs_passed
from report_samples import sample
from trajectories_support import airline


def test_nothing_repeated_or_left_out_says_nothing() -> None:
    assert reliability([cell_of("pass")]) is None
    assert reliability([cell_of("pass"), cell_of("pass", trial=2)], saved=1) is None


def test_a_run_passes_when_all_it_was_judged_by_does() -> None:
    cells = [
        cell_of("pass"), cell_of("fail", invariant="j"),
        cell_of("pass", trial=2), cell_of("inconclusive", invariant="j", trial=2),
        cell_of("inconclusive", trial=3),
    ]  # fmt: skip
    assert runs_passed(cells) == [(1, 2)]
    found = reliability(cells)
    assert found is not None
    assert [(k.k, k.value) for k in found.pass_k] == [(1, 0.5), (2, 0.0)]
    assert found.flakes is not None
    assert (found.flakes.flaky, found.flakes.cells) == (0, 1)  # i passed twice; j was conclusive once


def test_a_flaky_cell_is_one_that_did_both() -> None:
    found = reliability([cell_of("pass"), cell_of("fail", trial=2)])
    assert found is not None
    assert found.flakes is not None
    assert found.flakes.rate == 1


def test_pass_k_goes_as_far_as_tasks_have_runs() -> None:
    assert pass_ks([]) == ()
    assert [(k.k, k.tasks, k.left_out) for k in pass_ks([(1, 1), (3, 3)])] == [(1, 2, 0), (2, 1, 1), (3, 1, 1)]


@pytest.mark.parametrize(("k", "published"), [(1, 0.4900), (2, 0.3867), (3, 0.3400), (4, 0.3200)])
def test_recorded_airline_runs_give_the_published_figures(k, published) -> None:
    trials: dict[int, int] = defaultdict(int)
    cells = []
    for row in airline():
        trials[row["task_id"]] += 1
        verdict = "pass" if row["reward"] == 1 else "fail"
        cells.append(cell_of(verdict, prompt=row["task_id"], trial=trials[row["task_id"]]))
    found = reliability(cells)
    assert found is not None
    assert round(found.pass_k[k - 1].value, 4) == published


def test_two_mutations_of_a_prompt_are_no_repetition_of_one() -> None:
    """Passing one and failing the other is not flaky: it is what the agent does, every time."""

    def made(numbers: list[int], verdicts: list[Outcome]) -> list[CellResult]:
        how = [MutationInfo("noise", f"op{number}", "a", "benign", number=number) for number in numbers]
        runs = tuple(run_result(f"r-{at:04}", trial=at, mutation=m) for at, m in enumerate(how, 1))
        cells = tuple(cell_of(verdict, trial=at) for at, verdict in enumerate(verdicts, 1))
        return repeated(replace(sample(), runs=runs, cells=cells))

    assert reliability(made([1, 2], ["pass", "fail"])) is None
    found = reliability(made([1, 1, 2, 2], ["pass", "pass", "fail", "fail"]))
    assert found is not None
    assert found.flakes is not None
    assert (found.flakes.flaky, found.flakes.cells) == (0, 2)
    assert [(k.k, k.value, k.tasks) for k in found.pass_k] == [(1, 0.5, 2), (2, 0.5, 2)]


def test_runs_that_put_load_on_the_agent_repeat_nothing() -> None:
    report = sample()
    name = report.scenarios[0].name
    level = LevelResult(name, 1, 2, 2, 0, 1.0, 1.0, 1.0, None, (), ())
    left = repeated(replace(report, load=Loaded((level,), None, "")))
    assert left == [cell for cell in report.cells if cell.scenario != name]
    assert repeated(report) == list(report.cells)
