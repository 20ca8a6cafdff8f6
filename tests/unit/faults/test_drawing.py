"""Random choices that another run makes again."""

import pytest

from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.site import Site
from flakestorm.errors import Misuse
from flakestorm.faults.drawing import Noticed, again, told
from flakestorm.faults.hits import Hit
from flakestorm.faults.planned import Planned, parse_injection

SITE = Site("tool", "search", 2)


@pytest.mark.parametrize("scenario", ["lies", "a/b/1", "", "test_x.py::test[a/0/1]"])
def test_they_are_those_of_the_run_that_told_of_them(scenario: str) -> None:
    run = Choices(42, scenario, 3, 7)
    mine = again(told(run, 5), SITE)
    assert mine.digest("lies") == run.within("fault", 5, SITE).digest("lies")
    assert mine.digest("lies") != run.within("fault", 4, SITE).digest("lies")


def test_what_is_no_run_of_a_plan_has_no_name() -> None:
    assert told(Choices(42, "fork", "tool/search#1"), 0) == ""


@pytest.mark.parametrize("text", ["", "42", "42/lies", "42/lies/0/1/x", "x/lies/0/1/0", "-1/lies/0/1/0"])
def test_what_names_none_is_refused(text: str) -> None:
    with pytest.raises(Misuse, match="SEED/SCENARIO/PROMPT/TRIAL/FAULT"):
        again(text, SITE)
    with pytest.raises(Misuse, match="SEED/SCENARIO/PROMPT/TRIAL/FAULT"):
        parse_injection(f"tool/search#1=wrong_value,draws={text or '%20'}")


def test_only_a_choice_between_several_is_noticed() -> None:
    made: list[None] = []
    choices = Noticed(1, "a", 0, 1, made=lambda: made.append(None))
    assert (choices.pick(["only"], "payload"), choices.token("canary")) == (
        "only",
        Choices(1, "a", 0, 1).token("canary"),
    )
    assert not made
    assert choices.within("b").stream("lies").random() == Choices(1, "a", 0, 1, "b").stream("lies").random()
    assert made


def test_a_fault_that_chose_says_whose_choices_they_were() -> None:
    ledger, run = Ledger(), Choices(42, "lies", 0, 3)
    planned: Planned = parse_injection("tool/search#2=wrong_value")
    hit = Hit(0, planned, SITE, ledger)
    draws = hit.draws(run)
    assert not ledger.drawn
    first = draws.below(1000, "lies")
    assert ledger.drawn == {(0, SITE): "42/lies/0/3/0"}
    pinned = planned.at(SITE, ledger.drawn[0, SITE])
    assert pinned.fault == "wrong_value,draws=42/lies/0/3/0"
    assert Hit(0, pinned, SITE, Ledger()).draws(Choices(7, "injected", 0, 1)).below(1000, "lies") == first
