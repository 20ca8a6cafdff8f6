from flakestorm.engine.blamed import BlamedEvent, BlamedStep, Blaming, Counted, Jump

STEP = BlamedStep(BlamedEvent(2, "tool/a#1", "tool"), Jump(0.9, 0.6, 1.0), Counted(1, 24), Counted(24, 24))


def test_only_a_step_is_named() -> None:
    assert Blaming("step", "", "right", "a.tape", "d", steps=(STEP,)).named is STEP
    assert Blaming("step", "", "right", "a.tape", "d").named is None
    assert Blaming("no_single_step", "no", "right", "a.tape", "d").named is None
