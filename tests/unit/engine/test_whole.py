from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.engine.events import PhaseResult, Report, Score
from flakestorm.engine.loaded import LevelResult, Loaded
from flakestorm.engine.whole import PHASES, Whole, overall, rule
from report_samples import sample


def score(value, low=None, high=None, *, critical=False) -> Score:
    return Score(value, low, high, 3, 4, 1, critical)


def phase(name, value=None, *, verdict="pass", weight=0.35, status="done", low=None, high=None) -> PhaseResult:
    found = None if value is None else score(value, low, high)
    return PhaseResult(name, status, verdict, f"{name} says why", weight, found)


OUTLINE = Report("ci", "inconclusive", 3, "", 7, "2026-01-01T00:00:00Z", 1.0, {}, (), ())


def test_the_overall_score_is_the_weighted_mean_of_the_phases_that_ran() -> None:
    found = overall([phase("chaos", 0.5), phase("contract", 80.0), phase("replay", weight=0.1)])
    assert found is not None
    assert (found.value, found.passed, found.conclusive, found.inconclusive) == (0.65, 6, 8, 2)
    assert overall([phase("chaos", 1.0, weight=0.3), phase("contract", 0.0, weight=0.1)]).value == 0.75


def test_nothing_scored_is_no_score() -> None:
    assert overall([]) is None
    assert overall([phase("chaos")]) is None
    assert overall([phase("chaos", 1.0, weight=0.0)]) is None


def test_the_interval_is_zou_and_donners() -> None:
    """Two equal halves with limits 0.1 and 0.2 away: sqrt((0.05)^2 + (0.1)^2) = 0.1118."""
    parts = [phase("chaos", 0.5, low=0.4, high=0.6), phase("contract", 50.0, low=30.0, high=70.0)]
    found = overall(parts)
    assert found is not None
    assert (found.low, found.high) == (0.3882, 0.6118)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 1)), min_size=1, max_size=4)
)
def test_the_score_lies_in_its_interval_and_between_the_phases(parts) -> None:
    phases = []
    for name, (a, b, c, weight) in zip(PHASES, parts, strict=False):
        low, value, high = sorted((a, b, c))
        full = 100 if name == "contract" else 1
        phases.append(phase(name, value * full, low=low * full, high=high * full, weight=weight))
    found = overall(phases)
    assert found is not None
    assert found.low <= found.value <= found.high
    values = [p.score.value / (100 if p.name == "contract" else 1) for p in phases]
    assert min(values) - 1e-4 <= found.value <= max(values) + 1e-4


@pytest.mark.parametrize(
    ("phases", "whole", "least", "code", "words"),
    [
        ([phase("chaos", 1.0)], 1.0, 0.0, 0, "the gate was met: overall 1, chaos passed"),
        ([phase("chaos", 1.0), phase("contract", 9.0, verdict="fail")], 1.0, 0.0, 1, "contract: contract says why"),
        ([phase("chaos", 0.6)], 0.6, 0.7, 1, "the overall score 0.6 is below the 0.7 asked for"),
        ([phase("chaos", 1.0), phase("contract", 9.0, verdict="inconclusive")], 1.0, 0.0, 3, "contract: contract says"),
        ([phase("chaos", 1.0), phase("replay", verdict="inconclusive")], 1.0, 0, 3, "replay: "),
        ([phase("chaos")], None, 0.0, 3, "nothing was conclusive"),
        (
            [phase("chaos", 0.1, verdict="fail"), phase("contract", status="not run")],
            0.1,
            0.9,
            130,
            "had finished: chaos",
        ),
        ([phase("chaos", status="interrupted")], None, 0.0, 130, "had finished: none"),
        ([phase("load", 80.0, weight=0.0)], None, 0.0, 0, "load passed; nothing here has a part in an overall score"),
        ([phase("load", 80.0, weight=0.0)], None, 0.5, 3, "there is no overall score"),
        ([phase("load", 80.0, weight=0.0, verdict="inconclusive")], None, 0.0, 3, "load: load says why"),
        ([phase("chaos", 1.0), phase("load", 1.0, weight=0.0, verdict="fail")], 1.0, 0.0, 1, "load: load says why"),
    ],
)
def test_the_gate(phases, whole, least, code, words) -> None:
    found, headline = rule(phases, None if whole is None else score(whole), min_score=least)
    assert found == code
    assert words in headline


def test_phases_stand_side_by_side_under_names_of_their_own() -> None:
    base = sample()
    changed = tuple(replace(i, description="other") if i.id == "fast" else i for i in base.invariants)
    chaos = replace(base, prompts=(*base.prompts, "a probe"), command="chaos")
    contract = replace(base, invariants=changed, prompts=(*base.prompts, "its own probe", "a probe"))
    contract = replace(contract, runs=(replace(contract.runs[0], prompt=2), *contract.runs[1:]))
    whole = Whole(golden=2)
    whole.add("chaos", chaos)
    whole.add("contract", contract)
    report = whole.report(OUTLINE, [phase("chaos", 1.0), phase("contract", 71.43)])
    assert len({run.id for run in report.runs}) == len(report.runs) == 16
    assert {cell.run for cell in report.cells} <= {run.id for run in report.runs}
    assert {cell.scenario for cell in report.cells} == {s.name for s in report.scenarios}
    assert [s.name for s in report.scenarios][:5] == [
        "no-chaos", "search-down", "booking-times-out", "model-cut-short", "no-chaos (contract)",
    ]  # fmt: skip
    assert [i.id for i in report.invariants] == [*(i.id for i in base.invariants), "fast (contract)"]
    assert report.prompts == (*base.prompts, "a probe", "its own probe")
    assert report.runs[8].prompt == 3
    assert report.seed == 7
    assert set(report.scores) == {"contract", "overall"}


def test_the_overall_score_is_full_where_every_phase_is_and_nowhere_else() -> None:
    found = [
        phase("chaos", 1.0, weight=0.35),
        phase("contract", 100.0, weight=0.35),
        phase("mutation", 1.0, weight=0.2),
    ]
    whole, nearly = overall(found), overall([*found[:2], phase("mutation", 0.9999, weight=0.2)])
    assert whole is not None
    assert nearly is not None
    assert (whole.value, nearly.value) == (1.0, 0.9999)


def test_what_could_not_be_judged_is_no_pass() -> None:
    whole = Whole(golden=1)
    report = whole.report(OUTLINE, [phase("replay", verdict="inconclusive")])
    assert (report.verdict, report.exit_code) == ("inconclusive", 3)
    assert "overall" not in report.scores


def test_what_has_failed_before_an_interruption_has_failed() -> None:
    whole = Whole(golden=1)
    report = whole.report(OUTLINE, [phase("chaos", 0.1, verdict="fail"), phase("contract", status="not run")])
    assert (report.verdict, report.exit_code, report.interrupted) == ("fail", 130, True)


def test_a_phase_whose_plan_is_extended_keeps_the_names_it_had() -> None:
    base = sample()
    whole = Whole(golden=2)
    whole.add("chaos", base)
    first = whole.names("contract", replace(base, scenarios=base.scenarios[:1], runs=(), cells=()))
    assert first.scenarios == {"no-chaos": "no-chaos (contract)"}
    whole.add("contract", base)
    later = whole.names("contract", base)
    assert later.scenarios["no-chaos"] == "no-chaos (contract)"
    assert len(later.scenarios) == 4
    report = whole.report(OUTLINE, [phase("chaos", 1.0), phase("contract", 71.43)])
    assert {cell.scenario for cell in report.cells} == {s.name for s in report.scenarios}


def test_load_has_no_part_in_the_scores_and_its_levels_keep_to_their_names() -> None:
    base = sample()
    level = LevelResult("no-chaos", 1, 2, 2, 0, 1.0, 1.0, 1.0, None, (), ())
    load = replace(base, command="load", load=Loaded((level,), None, "no knee"))
    whole = Whole(golden=2)
    whole.add("contract", base)
    whole.add("load", load)
    phases = [phase("contract", 71.43), phase("load", 10.0, weight=0.0)]
    report = whole.report(OUTLINE, phases)
    assert report.scores["contract"] == base.scores["contract"]
    assert (report.scores["overall"].value, report.scores["overall"].conclusive) == (0.7143, 4)
    assert [level.scenario for level in report.load.levels] == ["no-chaos (load)"]
    assert "no-chaos (load)" in {cell.scenario for cell in report.cells}
