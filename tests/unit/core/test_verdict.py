from flakestorm.core.verdict import Score, failed, inconclusive, passed


def test_negation_swaps_pass_and_fail_and_keeps_inconclusive() -> None:
    assert passed("found it").negated() == failed("negated: found it")
    assert failed("no").negated().outcome == "pass"
    assert inconclusive("unknown").negated() == inconclusive("unknown")


def test_only_inconclusive_is_not_conclusive() -> None:
    assert [v.conclusive for v in (passed(), failed("x"), inconclusive("y"))] == [True, True, False]


def test_a_score_without_data_claims_nothing() -> None:
    none = Score(None, None, None, 0, 0, 3)
    assert (none.value, none.inconclusive, none.critical_failed) == (None, 3, False)
