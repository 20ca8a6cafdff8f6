from flakestorm.core.verdict import failed, inconclusive, passed


def test_negation_swaps_pass_and_fail_and_keeps_inconclusive() -> None:
    assert passed("found it").negated() == failed("negated: found it")
    assert failed("no").negated().outcome == "pass"
    assert inconclusive("unknown").negated() == inconclusive("unknown")


def test_only_inconclusive_is_not_conclusive() -> None:
    assert [v.conclusive for v in (passed(), failed("x"), inconclusive("y"))] == [True, True, False]
