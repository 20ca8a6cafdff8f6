from typing import Any

import pytest

from contracts_support import inv, said, tells
from flakestorm.contracts.base import RunView
from flakestorm.contracts.matrix import judge, prepare
from flakestorm.contracts.turns import faced
from flakestorm.core.answer import AgentError
from flakestorm.core.conversation import NOT_ASKED, Turn
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.errors import Misuse

SEARCH, BOOK = tells(("search", "{}")), tells(("book", "{}"))


def turn(asked: str, answered: str, *, calls: int = 0, number: int = 1, **more: Any) -> Turn:
    return Turn(asked, answered, more.get("error"), more.get("latency_ms", 1.0), calls, number)


def talk(*turns: Turn, **more: Any) -> RunView:
    return RunView("all", turns[-1].output, latency_ms=turns[-1].latency_ms, turns=turns, **more)


GREETED = talk(
    turn("hi", "hello", latency_ms=900.0), turn("well?", "filler", number=0), turn("bye", "so long", number=2)
)


@pytest.mark.parametrize(
    ("at", "value", "outcome"),
    [
        (1, "hello", "pass"), (2, "so long", "pass"), (2, "filler", "fail"), ("last", "so long", "pass"),
        ("every", "l", "pass"), ("every", "hello", "fail"), (None, "so long", "pass"),
    ],
)  # fmt: skip
def test_a_rule_is_about_its_turn(at: int | str | None, value: str, outcome: str) -> None:
    verdict = judge(inv("contains", value=value, turn=at), GREETED)
    assert verdict is not None
    assert verdict.outcome == outcome, verdict.reason


def test_a_turn_that_there_is_not_is_judged_by_nothing() -> None:
    assert judge(inv("completes", turn=3), GREETED) is None
    assert judge(inv("completes", turn=2), said("one answer")) is None
    for at in (1, "last", "every"):
        assert judge(inv("completes", turn=at), said("one answer")) is not None


def test_latency_is_that_of_the_turn() -> None:
    assert judge(inv("latency", max_ms=100), GREETED).outcome == "pass"  # type: ignore[union-attr]
    assert judge(inv("latency", max_ms=100, turn=1), GREETED).outcome == "fail"  # type: ignore[union-attr]


def test_what_failed_fails_its_own_turn_and_those_after_it() -> None:
    run = talk(
        turn("hi", "hello"), turn("boom", "", number=2, error="crash: boom"),
        turn("bye", "", number=3, error=NOT_ASKED),
        error=AgentError("crash", "turn 2 of 3: boom"),
    )  # fmt: skip
    found = [judge(inv("output_not_empty", turn=at), run) for at in (1, 2, 3, "every")]
    assert [verdict.outcome for verdict in found if verdict is not None] == ["pass", "fail", "fail", "fail"]


def test_the_calls_of_a_turn_are_its_own_and_what_came_before_is_known() -> None:
    run = talk(turn("hi", "a", calls=1), turn("go", "b", calls=1, number=2), exchanges=[SEARCH, BOOK])
    first, second = faced(inv("completes", turn=1), run), faced(inv("completes", turn=2), run)
    assert first is not None
    assert second is not None
    assert (list(first.exchanges), list(first.before)) == ([SEARCH], [])
    assert (list(second.exchanges), list(second.before)) == ([BOOK], [SEARCH])
    assert second.input == "hi\ngo"


def test_a_fault_that_fires_later_proves_nothing_about_an_earlier_turn() -> None:
    ledger = Ledger(planned=1, tools_planned=1, fired=[Firing(BOOK.site, "error", "tool")])
    exchanges = [SEARCH, BOOK] if SEARCH.site != BOOK.site else [BOOK]
    run = talk(
        turn("hi", "a", calls=len(exchanges) - 1), turn("go", "b", calls=1, number=2),
        exchanges=exchanges, ledger=ledger, chaos=True,
    )  # fmt: skip
    assert judge(inv("output_not_empty", turn=1), run).outcome == "inconclusive"  # type: ignore[union-attr]
    assert judge(inv("output_not_empty", turn=2), run).outcome == "pass"  # type: ignore[union-attr]


def test_what_was_told_in_an_earlier_turn_is_grounded() -> None:
    run = talk(turn("order 4711 please", "ok", calls=1), turn("which one?", "4711", number=2), exchanges=[SEARCH])
    assert judge(inv("grounded", turn=2), run).outcome == "pass"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "rule", [{"type": "judge", "rubric": "polite", "turn": "every"}, {"type": "behavior_unchanged", "turn": 1}]
)
def test_what_compares_one_answer_is_refused_for_others(rule: dict[str, Any]) -> None:
    with pytest.raises(Misuse, match="turn"):
        prepare([inv(**rule)])
