import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from compare_support import comparison_of, pair_of
from flakestorm.errors import Misuse
from flakestorm.reports.comparison import dumps, is_comparison, markdown, page, pairs_of, read, text, to_document
from report_samples import HOSTILE

SCHEMA = json.loads(
    (Path(__file__).resolve().parents[3] / "docs" / "reference" / "compare.schema.json").read_text(encoding="utf-8")
)
PAIRS = [pair_of([True, True], [True, False], trial=trial) for trial in range(1, 8)]


@pytest.mark.parametrize("pairs", [PAIRS, [], [pair_of([None], [None])], PAIRS[:1]])
def test_the_document_fits_its_schema(pairs) -> None:
    document = json.loads(dumps(to_document(comparison_of(pairs))))
    Draft202012Validator(SCHEMA).validate(document)
    assert is_comparison(document)
    assert text(document)
    assert markdown(document)
    assert "</html>" in page(document)


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


def test_pairs_come_back_as_they_were(tmp_path) -> None:
    document = json.loads(dumps(to_document(comparison_of(PAIRS))))
    found = pairs_of(document, base=tmp_path)
    assert [(p.key, p.how, p.newly, p.base.verdicts) for p in found] == [
        (p.key, p.how, p.newly, p.base.verdicts) for p in PAIRS
    ]
    with pytest.raises(Misuse, match="cannot be gone on from"):
        pairs_of({**document, "runs": [{}]})


def test_reading_one_back(tmp_path) -> None:
    file = tmp_path / "c.json"
    file.write_text(dumps(to_document(comparison_of(PAIRS))))
    found = read(file)
    assert found is not None
    assert found["conclusion"] == "regression"
    file.write_text('{"format": "flakestorm-report/1"}')
    assert read(file) is None
    assert read(tmp_path / "nowhere") is None
    file.write_text('{"format": "flakestorm-compare/1"}')
    with pytest.raises(Misuse, match="not a valid flakestorm-compare/1"):
        read(file)
