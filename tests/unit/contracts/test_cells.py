import pytest

from contracts_support import cells
from flakestorm.contracts.cells import mark_also_fails, mark_also_unmutated, never_applied, never_found, rates


@pytest.mark.parametrize(
    ("outcomes", "min_pass_rate", "rate", "failing"),
    [
        ("p", 1.0, 1.0, False),
        ("f", 1.0, 0.0, True),
        ("ppppf", 0.8, 0.8, False),
        ("pppff", 0.8, 0.6, True),
        ("ppppfiiiii", 0.8, 0.8, False),  # over conclusive trials only
        ("ii", 1.0, None, False),
        ("f", 0.0, 0.0, False),
    ],
)
def test_a_cell_fails_below_its_pass_rate(
    outcomes: str, min_pass_rate: float, rate: float | None, failing: bool
) -> None:
    (cell,) = rates(cells(outcomes, min_pass_rate=min_pass_rate))
    assert (cell.rate, cell.failing) == (rate, failing)
    assert cell.conclusive + cell.inconclusive == len(outcomes)


def test_cells_are_told_apart_by_scenario_invariant_and_prompt() -> None:
    judged = cells("pf") + cells("p", prompt=1) + cells("p", invariant="other") + cells("p", scenario="calm")
    assert [(c.scenario, c.invariant, c.prompt, c.passed, c.failed) for c in rates(judged)] == [
        ("down", "admits", 0, 1, 1),
        ("down", "admits", 1, 1, 0),
        ("down", "other", 0, 1, 0),
        ("calm", "admits", 0, 1, 0),
    ]


@pytest.mark.parametrize(("outcomes", "reason"), [("pif", "broken"), ("pi", "unknown"), ("pp", "kept")])
def test_the_most_telling_reason_stands_for_the_cell(outcomes: str, reason: str) -> None:
    assert rates(cells(outcomes))[0].reason == reason


def test_a_fault_that_never_found_its_tool_leaves_no_pass_in_its_scenario() -> None:
    judged = cells("pfi") + cells("p", scenario="other")
    settled = never_found(judged, scenario="down", faults=["search=error"], seen=["book", "pay"])
    assert [c.verdict.outcome for c in settled] == ["inconclusive", "fail", "inconclusive", "pass"]
    assert settled[0].verdict.reason == "tool fault 'search=error' never found its tool; tools seen: book, pay"
    assert settled[2].verdict.reason == "unknown"


def test_several_lost_faults_are_all_named() -> None:
    (cell,) = never_found(cells("p"), scenario="down", faults=["a=error", "b=slow"], seen=[])
    assert cell.verdict.reason == "tool faults 'a=error', 'b=slow' never found their tools; tools seen: none"


def test_a_tool_that_only_the_model_spoke_of_is_told_how_to_reach() -> None:
    (cell,) = never_found(cells("p"), scenario="down", faults=["search=error"], seen=["search"], unreached=["search"])
    assert cell.verdict.outcome == "inconclusive"
    assert "tools seen: search; the model spoke of search, but nothing could be broken there" in cell.verdict.reason


def test_faults_that_found_their_tools_change_nothing() -> None:
    assert never_found(cells("pfi"), scenario="down", faults=[], seen=["x"]) == cells("pfi")


@pytest.mark.parametrize(
    ("control", "marked"),
    [("f", True), ("p", False), ("i", False), ("", False), ("pf", True)],
)
def test_a_fail_that_chaos_did_not_cause_says_so(control: str, marked: bool) -> None:
    judged = mark_also_fails(cells("fp"), cells(control, scenario="no chaos"))
    assert [c.also_fails_without_chaos for c in judged] == [marked, False]


def test_a_flaky_control_does_not_excuse_chaos() -> None:
    judged = mark_also_fails(cells("f"), cells("ppppf", scenario="no chaos", min_pass_rate=0.8))
    assert not judged[0].also_fails_without_chaos


def test_controls_of_another_prompt_or_invariant_say_nothing() -> None:
    controls = cells("f", scenario="calm", prompt=1) + cells("f", scenario="calm", invariant="other")
    assert not any(c.also_fails_without_chaos for c in mark_also_fails(cells("f"), controls))


def test_a_control_is_not_marked_itself() -> None:
    controls = cells("f", scenario="calm")
    assert [c.also_fails_without_chaos for c in mark_also_fails(controls + cells("f"), controls)] == [False, True]


def test_an_invariant_that_never_applied_is_named() -> None:
    assert never_applied(["admits", "declines"], cells("i")) == ("declines",)


def test_a_failing_mutation_says_so_where_its_golden_prompt_fails_too() -> None:
    broken = cells("fp", scenario="noise") + cells("f", scenario="noise", prompt=1)
    controls = cells("f", scenario="no chaos") + cells("p", scenario="no chaos", prompt=1)
    found = mark_also_unmutated(broken, controls, {c.run for c in broken})
    assert [c.also_fails_unmutated for c in found] == [True, False, False]
    assert mark_also_unmutated(broken, controls, set()) == broken
