from dataclasses import fields

from flakestorm.contracts.gate import ScoreNumbers
from flakestorm.engine.events import Score


def test_the_reports_score_has_the_fields_of_the_contracts_numbers() -> None:
    assert [f.name for f in fields(Score)] == [f.name for f in fields(ScoreNumbers)]
