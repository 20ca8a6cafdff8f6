from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts_support import cells
from flakestorm.contracts.cells import Cell, rates
from flakestorm.contracts.gate import (
    SEVERITY_WEIGHTS,
    contract_gate,
    contract_score,
    replay_gate,
    replay_score,
    run_score,
    score_gate,
)
from flakestorm.core.verdict import failed, inconclusive, passed
from flakestorm.stats.intervals import wilson

MATRIX = st.lists(
    st.builds(
        lambda outcome, severity, prompt, scenario, rate: cells(
            outcome, severity=severity, invariant=severity, prompt=prompt, scenario=scenario, min_pass_rate=rate
        ),
        st.text("pfi", min_size=1, max_size=4),
        st.sampled_from(["critical", "high", "medium", "low"]),
        st.integers(0, 30),
        st.sampled_from(["down", "calm"]),
        st.sampled_from([1.0, 0.5]),
    ),
    max_size=12,
    unique_by=lambda group: (group[0].invariant, group[0].prompt, group[0].scenario),
).map(lambda groups: [cell for group in groups for cell in group])


def test_the_score_is_the_weighted_mean_of_cell_pass_rates() -> None:
    judged = cells("p", severity="critical", invariant="a") + cells("pf", severity="high", invariant="b")
    judged += cells("f", severity="medium", invariant="c") + cells("i", severity="low", invariant="d")
    score = contract_score(judged)
    assert score.value == round(100 * (3 * 1 + 2 * 0.5 + 1 * 0) / (3 + 2 + 1), 2) == 66.67
    assert (score.passed, score.conclusive, score.inconclusive) == (2, 4, 1)
    assert score.low is not None
    assert score.high is not None
    assert 0 <= score.low < score.value < score.high <= 100


def test_ten_of_fourteen_prompts_have_the_plain_wilson_interval() -> None:
    judged = [c for i in range(14) for c in cells("p" if i < 10 else "f", prompt=i)]
    score = contract_score(judged)
    low, high = wilson(10, 14) or (0, 0)
    assert (score.value, score.low, score.high) == (71.43, round(low * 100, 2), round(high * 100, 2))


def test_a_perfect_score_is_not_certain() -> None:
    score = contract_score([c for i in range(5) for c in cells("p", prompt=i)])
    assert (score.value, score.high) == (100.0, 100.0)
    assert score.low is not None
    assert score.low < 60


@pytest.mark.parametrize("judged", [[], cells("ii")])
def test_no_data_no_number(judged: list[Cell]) -> None:
    for score in (contract_score(judged), run_score(judged)):
        assert (score.value, score.low, score.high, score.conclusive) == (None, None, None, 0)
    assert contract_score(judged).inconclusive == len(judged)


@given(MATRIX)
def test_the_score_agrees_with_its_formula(judged: list[Cell]) -> None:
    score = contract_score(judged)
    scored = [(r.rate, SEVERITY_WEIGHTS[r.severity]) for r in rates(judged) if r.rate is not None]
    if not scored:
        assert score.value is None
        return
    expected = 100 * sum(rate * weight for rate, weight in scored) / sum(weight for _, weight in scored)
    assert score.value == pytest.approx(expected, abs=0.0051)
    assert score.low is not None
    assert score.high is not None
    assert 0 <= score.low <= score.value <= score.high <= 100
    assert score.high > score.low


def test_robustness_counts_runs_by_weight() -> None:
    judged = cells("ppf", invariant="a") + cells("pip", invariant="b")
    judged += cells("i", prompt=1)
    score = run_score(judged, weights={("down", 0, 3): 2.0})
    # run 1 passes both; run 2 has one pass and one open question; run 3 fails one, at weight 2; prompt 1 is open
    assert score.value == 0.5
    assert (score.passed, score.conclusive, score.inconclusive) == (2, 3, 1)


def test_robustness_with_equal_weights_has_the_plain_wilson_interval() -> None:
    score = run_score(cells("pppf"))
    low, high = wilson(3, 4) or (0, 0)
    assert (score.value, score.low, score.high) == (0.75, round(low, 4), round(high, 4))


@pytest.mark.parametrize(
    ("judged", "min_score", "exit_code"),
    [
        (cells("p"), None, 0),
        (cells("f", severity="critical"), None, 1),
        (cells("f", severity="low"), None, 1),
        (cells("f", severity="low"), 0, 0),
        (cells("f", severity="critical"), 0, 1),  # whatever the score
        (cells("p", severity="high") + cells("f", severity="low", invariant="b"), 60, 0),
        (cells("p", severity="high") + cells("f", severity="low", invariant="b"), 66.67, 0),
        (cells("p", severity="high") + cells("f", severity="low", invariant="b"), 66.68, 1),
        (cells("ppf", severity="critical", min_pass_rate=0.6), None, 0),
        (cells("i"), None, 3),
        ([], None, 3),
        ([], 50, 3),
        (cells("i"), 50, 3),
        (cells("ip"), None, 0),  # the fault fired in the other trial
        (cells("i") + cells("p", prompt=1), None, 0),  # or under the other prompt
        (cells("i") + cells("p", scenario="calm"), None, 3),  # but not in another scenario
        (cells("p") + cells("i", invariant="b"), None, 3),
        (cells("f") + cells("i", invariant="b"), None, 1),  # a fail comes first
        (cells("i", invariant="b") + cells("f", severity="low"), 0, 3),
    ],
)
def test_the_gate_of_a_contract(judged: list[Cell], min_score: float | None, exit_code: int) -> None:
    ruling = contract_gate(judged, min_score=min_score)
    assert ruling.exit_code == exit_code
    assert ruling.verdict == {0: "pass", 1: "fail", 3: "inconclusive"}[exit_code]


@pytest.mark.parametrize(
    ("judged", "min_score", "exit_code"),
    [
        (cells("f", severity="high"), 0.0, 0),
        (cells("f", severity="critical"), 0.0, 1),
        (cells("pppf"), 0.75, 0),
        (cells("pppf"), 0.76, 1),
        (cells("i"), 0.0, 3),
        ([], 0.0, 3),
    ],
)
def test_the_gate_of_run_and_chaos(judged: list[Cell], min_score: float, exit_code: int) -> None:
    assert score_gate(judged, run_score(judged), min_score=min_score).exit_code == exit_code


def test_a_score_that_is_asked_for_and_is_not_there_is_no_pass() -> None:
    """All mutations have weight 0, say: cells passed, but nothing counts."""
    ruling = score_gate(cells("p"), run_score([]), min_score=0.9)
    assert (ruling.exit_code, ruling.verdict) == (3, "inconclusive")
    assert "no score to hold against the 0.9 asked for" in ruling.headline
    assert score_gate(cells("p"), run_score([])).exit_code == 0


def test_full_marks_are_for_no_failure_at_all() -> None:
    judged = [c for n in range(30_000) for c in cells("p" if n else "f", prompt=n)]
    assert (run_score(judged).value, contract_score(judged).value) == (0.9999, 99.99)
    assert score_gate(judged, run_score(judged), min_score=1.0).exit_code == 1
    assert (run_score(judged[1:]).value, contract_score(judged[1:]).value) == (1.0, 100.0)


def test_the_headline_names_the_worst_cell_and_its_evidence() -> None:
    judged = cells("f", severity="low", invariant="b") + cells("fp", severity="critical")
    ruling = contract_gate(judged)
    assert ruling.headline == (
        "a promise was broken: admits (critical) in scenario down, prompt 0, 1 of 2 runs passed: broken (and 1 more)"
    )
    assert [c.severity for c in ruling.failing] == ["critical", "low"]


def test_the_headline_of_a_single_failing_run_counts_nothing() -> None:
    expected = "a promise was broken: admits (medium) in scenario down, prompt 0: broken"
    assert contract_gate(cells("f")).headline == expected


def test_the_headline_of_a_low_score_and_of_a_met_gate() -> None:
    judged = cells("p") + cells("f", severity="low", invariant="b")
    assert contract_gate(judged, min_score=80).headline == "the score 50 is below the 80 asked for"
    assert (
        contract_gate(judged, min_score=50).headline
        == "the gate was met: 1 cell passed, 1 cell failed and the score allows it"
    )
    assert contract_gate(cells("p") + cells("p", prompt=1)).headline == "the gate was met: 2 cells passed"


def test_what_could_not_be_judged_is_listed() -> None:
    ruling = contract_gate(cells("ii") + cells("i", prompt=1) + cells("p", invariant="b"))
    assert ruling.unjudged == (("admits", "down"),)
    assert ruling.headline == "admits could not be judged in scenario down: unknown"
    assert contract_gate([]).headline == "nothing was judged: no invariant applied to any run"


@given(MATRIX)
def test_inconclusive_is_never_a_pass(judged: list[Cell]) -> None:
    blank = [replace(c, verdict=cells("i")[0].verdict) for c in judged]
    assert contract_gate(blank).exit_code == 3
    assert contract_score(blank).passed == 0


@given(MATRIX)
def test_a_failing_critical_cell_fails_every_gate(judged: list[Cell]) -> None:
    critical = any(r.failing and r.severity == "critical" for r in rates(judged))
    for ruling in (contract_gate(judged, min_score=0), score_gate(judged, run_score(judged))):
        assert (ruling.exit_code == 1) == critical
    assert contract_score(judged).critical_failed == run_score(judged).critical_failed == critical


def _session(name: str, *verdicts: str) -> list[Cell]:
    made = {"pass": passed("ok"), "fail": failed("no"), "inconclusive": inconclusive("not met")}
    return [Cell(name, f"i{n}", "low", 0, 1, made[verdict]) for n, verdict in enumerate(verdicts)]


@pytest.mark.parametrize(
    ("sessions", "numbers", "exit_code"),
    [
        ([["pass", "pass"], ["pass"]], (1.0, 2, 2, 0), 0),
        ([["pass", "fail"], ["pass"]], (0.5, 1, 2, 0), 1),
        ([["inconclusive"], ["pass"]], (1.0, 1, 1, 1), 3),
        ([["inconclusive", "inconclusive"]], (None, 0, 0, 1), 3),
        ([["inconclusive", "fail"]], (0.0, 0, 1, 0), 1),
        ([], (None, 0, 0, 0), 3),
    ],
)
def test_replay_counts_sessions(sessions: list[list[str]], numbers: tuple[object, ...], exit_code: int) -> None:
    judged = [cell for n, verdicts in enumerate(sessions) for cell in _session(f"s{n}", *verdicts)]
    score = replay_score(judged)
    assert (score.value, score.passed, score.conclusive, score.inconclusive) == numbers
    assert replay_gate(judged).exit_code == exit_code


def test_the_headline_of_sessions_that_passed() -> None:
    assert replay_gate(_session("a", "pass")).headline == "the gate was met: 1 session passed"
