from flakestorm.contracts.gate import contract_score
from flakestorm.engine.events import Score


def test_a_report_shows_the_very_score_that_a_gate_rules_by() -> None:
    assert contract_score([]) == Score(None, None, None, 0, 0, 0)
