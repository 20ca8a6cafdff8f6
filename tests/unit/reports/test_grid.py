from __future__ import annotations

from dataclasses import replace

import pytest

from contracts_support import cells
from flakestorm.contracts.gate import score_gate
from flakestorm.engine.events import InvariantInfo, PhaseResult, ScenarioInfo, Score
from flakestorm.engine.whole import rule
from flakestorm.reports import summary, terminal
from flakestorm.reports.grid import Square, grid_of, intervals_line, scale_of, score_text, worst_first
from flakestorm.reports.html import render
from flakestorm.reports.markdown import markdown
from report_samples import empty, sample


def square(verdicts: str, *, also: bool = False) -> Square:
    cell = sample().cells[0]
    words = {"P": "pass", "F": "fail", "I": "inconclusive"}
    return Square(
        ScenarioInfo("s"),
        InvariantInfo("i", "regex", "low"),
        tuple(replace(cell, verdict=words[v], also_fails_without_chaos=also and v == "F") for v in verdicts),
    )


@pytest.mark.parametrize(
    ("verdicts", "evidence"),
    [
        ("PPII", "2 of 2 passed (95% interval 0.342 to 1.000)"),
        ("FFP", "1 of 3 passed (95% interval 0.061 to 0.792)"),
        ("II", ""),
        ("", ""),
    ],
)
def test_a_rate_has_its_count_and_its_interval(verdicts, evidence) -> None:
    assert square(verdicts).evidence == evidence


@pytest.mark.parametrize(
    ("verdicts", "mark", "rate"),
    [
        ("PP", "pass", "2/2"),
        ("PF", "part", "1/2"),
        ("FF", "fail", "0/2"),
        ("II", "open", "0/0 +2?"),
        ("PI", "pass", "1/1 +1?"),
        ("FI", "fail", "0/1 +1?"),
        ("", "none", "n/a"),
    ],
)
def test_mark_and_rate(verdicts: str, mark: str, rate: str) -> None:
    assert (square(verdicts).mark, square(verdicts).rate) == (mark, rate)


def test_chaos_is_not_the_cause_only_if_every_failure_says_so() -> None:
    assert square("PF", also=True).chaos_is_not_the_cause
    assert not square("PF").chaos_is_not_the_cause
    assert not square("PP").chaos_is_not_the_cause


def test_axes_are_the_plans_and_every_cell_is_in_its_square() -> None:
    report = sample()
    grid = grid_of(report)
    assert [row[0].scenario for row in grid.rows] == list(report.scenarios)
    assert grid.invariants == report.invariants
    assert sorted(map(repr, (c for s in grid.squares for c in s.cells))) == sorted(map(repr, report.cells))
    assert all((c.scenario, c.invariant) == (s.scenario.name, s.invariant.id) for s in grid.squares for c in s.cells)


def test_names_that_only_cells_mention_are_not_lost() -> None:
    grid = grid_of(replace(sample(), scenarios=(), invariants=()))
    assert len(grid.rows) == 4
    assert grid.invariants[1].severity == "medium"
    assert sum(len(s.cells) for s in grid.squares) == len(sample().cells)


def test_nothing_judged_is_an_empty_grid() -> None:
    assert grid_of(empty()).rows == ()


def test_worst_first() -> None:
    order = [(c.verdict, c.severity) for c in worst_first(sample().cells)]
    assert order[0] == ("fail", "critical")
    assert [verdict for verdict, _ in order] == sorted((v for v, _ in order), key=["fail", "inconclusive"].index)
    assert "pass" not in dict(order)


@pytest.mark.parametrize(
    ("name", "value", "full"), [("contract", 0.5, 100), ("chaos", 0.5, 1), ("overall", 88.0, 100), ("overall", None, 1)]
)
def test_scale(name: str, value: float | None, full: int) -> None:
    assert scale_of(name, Score(value, None, None, 0, 0, 0)) == full


def test_a_score_that_missed_what_was_asked_for_does_not_look_like_it() -> None:
    score = Score(0.9496, 0.9, 0.98, 94, 99, 0)
    headline = score_gate(cells("p"), score, min_score=0.95).headline
    _, of_ci = rule([], score, min_score=0.95)
    assert score_text("overall", score, of_ci) == "0.9496"
    assert score_text("chaos", score) == "0.950"
    assert score_text("chaos", score, headline) == "0.9496"
    assert score_text("contract", Score(94.96, 90.0, 98.0, 94, 99, 0), headline) == "94.96"
    assert score_text("chaos", Score(0.9, 0.8, 0.98, 9, 10, 0), "the score 0.9 is below the 0.95") == "0.900"
    assert score_text("chaos", Score(0.9999, 0.9, 1.0, 99, 100, 0)) == "0.999"
    assert score_text("chaos", Score(None, None, None, 0, 0, 1), headline) == "no data"


def test_every_form_shows_such_a_score_in_all_its_digits() -> None:
    missed = Score(0.9496, 0.9, 0.98, 94, 99, 0)
    headline = "the score 0.9496 is below the 0.95 asked for"
    report = replace(sample(), headline=headline, scores={"chaos": missed})
    for shown in (terminal.text(report), markdown(report), render(report)):
        assert "0.9496" in shown.replace(headline, "")
        assert "0.950" not in shown
    phases = (PhaseResult("chaos", "done", "fail", headline, 0.35, missed),)
    whole = "the overall score 0.9496 is below the 0.95 asked for"
    page = summary.render(replace(report, phases=phases, headline=whole, scores={"overall": missed}))
    assert "0.950" not in page


def test_every_rate_of_the_map_has_its_interval_below_it() -> None:
    grid = grid_of(sample())
    line = intervals_line(grid)
    for each in grid.squares:
        rate = f"{each.passed}/{each.conclusive} is"
        assert (rate in line) == (each.conclusive > 0)
        assert line.count(rate) <= 1
    assert intervals_line(grid_of(empty())) == ""
    assert "".join(line.split()) in "".join(terminal.text(sample()).split())
    assert all(len(row) <= 40 for row in terminal.text(sample(), width=40).splitlines() if "interval" in row)
    assert markdown(sample()).count("95% interval&#58; ") == 1


def test_a_map_of_many_rates_tells_the_least_certain_ones() -> None:
    cells = sample().cells[:1]
    info = InvariantInfo("i", "regex", "low")
    rows = tuple((Square(ScenarioInfo(f"s{n}"), info, cells * n),) for n in range(1, 15))
    line = intervals_line(replace(grid_of(sample()), rows=rows))
    assert line.count(" to ") == 12
    assert line.endswith("; the others are in the HTML report")
