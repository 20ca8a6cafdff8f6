from flakestorm.api.blame_report import headline
from flakestorm.engine.blamed import BlamedEvent, BlamedStep, Blaming, Counted, Jump


def test_the_headline_says_how_sure_it_is() -> None:
    event = BlamedEvent(2, "tool/a#1", "fault", "error")
    step = BlamedStep(event, Jump(0.9, 0.6, 1.0), Counted(2, 24), Counted(24, 24))
    found = Blaming("step", "", "right", "a.tape", "d", steps=(step,))
    assert headline(found) == "tool/a#1, fault (error): it makes the failure likelier by 90% [60%, 100%]"
    none = Blaming("no_single_step", "nothing stands out", "right", "a.tape", "d")
    assert headline(none) == "no single step: nothing stands out"
