import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from compare_support import comparison_of, pair_of
from flakestorm.errors import Misuse
from flakestorm.reports.comparison import dumps, is_comparison, pairs_of, read, to_document
from flakestorm.reports.comparison_text import markdown, page, text

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
