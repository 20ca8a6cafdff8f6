import json

from compare_support import comparison_of, pair_of
from flakestorm.reports.comparison import dumps, to_document
from flakestorm.reports.comparison_text import markdown, page, text
from report_samples import HOSTILE

PAIRS = [pair_of([True, True], [True, False], trial=trial) for trial in range(1, 8)]


def test_what_a_regression_looks_like() -> None:
    document = to_document(comparison_of(PAIRS, notes=("careful",), stopped="--max-runs 14"))
    shown = text(document)
    assert shown.startswith("REGRESSION  HEAD is worse than BASE: 7 lost, 0 won, 0 tied of 7 pairs")
    assert "BASE passed 7 of 7 runs: 1.000" in shown
    assert "lost: calm, trial 1: a" in shown
    assert "HEAD breaks i1" in shown
    assert "the budget was reached (--max-runs 14)" in shown
    assert shown.endswith("note: careful")
    assert "pass^1: BASE 1.000" in shown
    assert [len(document[key]) for key in ("differing", "runs", "cells")] == [7, 14, 28]
    shown = page(document)
    assert shown.count('data-testid="pair"') == 7
    assert '<h1 class="fail" data-testid="verdict">Regression</h1>' in shown
    lines = markdown(document).splitlines()
    assert lines[0] == "## Regression: flakestorm compare"
    assert "| i1 | medium | 7/7 | 0/7 | 7 | 0 |" in markdown(document)


def test_no_stranger_writes_the_report() -> None:
    from dataclasses import replace

    from flakestorm.engine.compare import Key

    pairs = [replace(pair, key=Key(HOSTILE, HOSTILE, 1)) for pair in PAIRS]
    document = to_document(comparison_of(pairs, notes=(HOSTILE,)))
    assert "\x1b" not in text(document)
    assert "<script>" not in markdown(document)
    assert "<script" not in page(document)
    assert "\x1b" not in page(document)
    assert json.loads(dumps(document))["conclusion"] == "regression"
