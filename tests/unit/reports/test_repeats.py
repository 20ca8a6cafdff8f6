from dataclasses import replace

from compare_support import cell_of
from flakestorm.engine.events import Report
from flakestorm.reports.document import to_document
from flakestorm.reports.html import render
from flakestorm.reports.markdown import markdown
from flakestorm.reports.repeats import repeats_lines
from flakestorm.reports.terminal import text

CELLS = (cell_of("pass"), cell_of("fail", trial=2), cell_of("pass", prompt=1))
REPORT = Report("contract run", "fail", 1, "", 1, "", 0.0, {}, CELLS, ())


def test_every_form_says_what_trials_say() -> None:
    first, second, flakes = repeats_lines(REPORT)
    assert first.startswith("pass^1  0.750 [")
    assert second.endswith("(1 task, 1 with fewer conclusive runs left out)")
    assert flakes.endswith("(1 of 1 cell both passed and failed)")
    assert "pass^1  0.750" in text(REPORT)
    assert "flake rate  1.000" in markdown(REPORT).replace("&#46;", ".")
    assert 'data-testid="repeats"' in render(REPORT)
    assert to_document(REPORT)["reliability"]["pass_k"][0]["value"] == 0.75


def test_one_trial_says_nothing() -> None:
    once = replace(REPORT, cells=CELLS[:1])
    assert list(repeats_lines(once)) == []
    assert "reliability" not in to_document(once)
    assert 'data-testid="repeats"' not in render(once)
