from typing import Any

import pytest

from contracts_support import CRASH, asks_for, call, inside, inv, said, tells
from flakestorm.contracts.calls import tool_calls
from flakestorm.contracts.matrix import judge, prepare
from flakestorm.contracts.recovery import outstanding
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.site import Kind, Site
from flakestorm.core.verdict import Verdict
from flakestorm.errors import Misuse
from flakestorm.tape.model import Exchange, Recorded
from trajectories_support import airline, airline_run

DOWN = Recorded(503, chunks=[b'{"error": "down"}'])
FINE = Recorded(200, chunks=[b'{"hits": 3}'])
ADMITS = "I am sorry, the flight search is unavailable. Nothing has been booked."
PRETENDS = "Your flight SK4521 to Oslo is booked. The airline will confirm by e-mail."


def search(reply: Recorded, n: int = 1, name: str = "search") -> Exchange:
    return call("tool", name, n, body={"to": "OSL"}, reply=reply)


def hit(*, name: str = "search", kind: Kind = "tool", mode: str = "error", family: Any = "tool") -> Ledger:
    return Ledger(1, 1 if family == "tool" else 0, 0, [Firing(Site(kind, name, 1), mode, family)])


def verdict(type_: str, output: str, *exchanges: Exchange, ledger: Ledger | None = None, **more: Any) -> Verdict | None:
    transient = frozenset({0}) if type_ == "recovers" else frozenset()
    settings = {key: more.pop(key) for key in ("tool", "pattern", "patterns") if key in more}
    run = said(output, exchanges=exchanges, chaos=True, ledger=ledger or hit(), transient=transient, **more)
    return judge(inv(type_, **settings), run)


@pytest.mark.parametrize(
    ("output", "exchanges", "outcome"),
    [
        (ADMITS, (search(DOWN),), "pass"),
        (PRETENDS, (search(DOWN),), "fail"),
        (PRETENDS, (search(DOWN), search(FINE, 2)), "pass"),  # made good
        (PRETENDS, (search(DOWN), search(FINE, 1, "hotels")), "fail"),  # another tool does not stand in
        (PRETENDS, (asks_for(("search", {})), tells(("search", "Error: 503"))), "fail"),  # inside the agent
        (ADMITS, (asks_for(("search", {})), tells(("search", "Error: 503"))), "pass"),
        ("Der Flug ist gebucht.", (search(DOWN),), "inconclusive"),
    ],
)
def test_a_failed_tool_is_admitted(output: str, exchanges: tuple[Exchange, ...], outcome: str) -> None:
    result = verdict("acknowledges_failure", output, *exchanges)
    assert result is not None
    assert result.outcome == outcome, result.reason


def test_the_reason_tells_what_failed_and_what_was_said() -> None:
    failed, passed = (verdict("acknowledges_failure", text, search(DOWN)) for text in (PRETENDS, ADMITS))
    assert failed is not None
    assert failed.reason.startswith(
        'search failed (tool/search#1: "{"error": "down"}"), and the answer does not say so'
    )
    assert passed is not None
    assert "and the answer says so:" in passed.reason


def test_own_words_decide_in_any_language() -> None:
    for output, outcome in (("Die Suche ist leider gestört.", "pass"), ("Der Flug ist gebucht.", "fail")):
        result = verdict("acknowledges_failure", output, search(DOWN), patterns=["gestört|nicht erreichbar"])
        assert result is not None
        assert result.outcome == outcome
    with pytest.raises(Misuse, match="not a regular expression"):
        prepare([inv("acknowledges_failure", patterns=["("])])


def test_it_is_about_tools_that_failed() -> None:
    assert verdict("acknowledges_failure", PRETENDS, search(FINE), ledger=hit(mode="slow")) is None
    unfired = verdict("acknowledges_failure", PRETENDS, search(FINE), ledger=Ledger(1, 1))
    assert unfired is not None
    assert unfired.outcome == "inconclusive"
    assert verdict("acknowledges_failure", PRETENDS, search(DOWN), tool="book*") is None


def test_failures_of_real_runs_are_made_good_or_not_admitted() -> None:
    """Twelve of gpt-4o's airline runs hold a tool call that failed; one ends on it without a word."""
    found = {i: judge(inv("acknowledges_failure"), airline_run(i)) for i in range(len(airline()))}
    judged = {index: result.outcome for index, result in found.items() if result is not None}
    assert len(judged) == 12
    assert [index for index, outcome in judged.items() if outcome == "fail"] == [29]
    assert [call.tool for call in outstanding(tool_calls(airline_run(29)).made)] == ["book_reservation"]


BACK = (search(DOWN), search(FINE, 2))


@pytest.mark.parametrize(
    ("output", "exchanges", "outcome"),
    [
        (PRETENDS, BACK, "pass"),
        (ADMITS, (search(DOWN),), "fail"),
        (PRETENDS, (search(DOWN),), "fail"),  # whatever it says: the call was never made good
        (PRETENDS, (search(DOWN), search(DOWN, 2)), "fail"),
        ("The search failed at first, but SK4521 is booked.", BACK, "inconclusive"),
        ("Gebucht: SK4521.", BACK, "inconclusive"),
    ],
)
def test_recovery_is_a_call_made_good_and_an_answer_without_failure(
    output: str, exchanges: tuple[Exchange, ...], outcome: str
) -> None:
    result = verdict("recovers", output, *exchanges)
    assert result is not None
    assert result.outcome == outcome, result.reason


def test_a_pattern_says_what_success_is() -> None:
    for output, outcome in (("The search failed at first. Booked: SK4521.", "pass"), (ADMITS, "fail")):
        result = verdict("recovers", output, *BACK, pattern="(?i)booked: ")
        assert result is not None
        assert result.outcome == outcome


def test_a_model_is_made_good_by_any_later_answer() -> None:
    limited = call("llm", "gpt", 1, reply=Recorded(429, chunks=[b"{}"]))
    answered = call("llm", "gpt", 2, reply=Recorded(200, chunks=[b"{}"]))
    ledger = Ledger(1, 0, 1, [Firing(Site("llm", "gpt", 1), "rate_limit", "llm")])
    assert verdict("recovers", PRETENDS, limited, answered, ledger=ledger).outcome == "pass"  # type: ignore[union-attr]
    assert verdict("recovers", PRETENDS, limited, ledger=ledger).outcome == "fail"  # type: ignore[union-attr]


def test_a_result_inside_the_conversation_is_made_good_by_a_later_one() -> None:
    ledger = Ledger(1, 1, 0, [Firing(Site("tool", "search", 1), "error", "tool", via=Site("llm", "gpt-4o", 2))])
    again = asks_for(("search", {"n": 2}))
    again.site, again.body = Site("llm", "gpt-4o", 2), tells(("search", "Error: 503")).body
    run = (asks_for(("search", {})), again)
    assert verdict("recovers", PRETENDS, *run, ledger=ledger).outcome == "fail"  # type: ignore[union-attr]


def test_a_model_that_is_told_of_a_failure_and_asks_again_at_once_makes_it_good() -> None:
    """As models do: the exchange that tells the failure is the one that asks for the second try."""
    first, failed, second, answered = inside(("search", {"n": 1}, "3 hits"), ("search", {"n": 1}, "3 hits"))
    failed.world_body = failed.body.replace(b"3 hits", b"Error: 503")
    failed.reply, failed.site = second.reply, second.site
    ledger = Ledger(1, 1, 0, [Firing(Site("tool", "search", 1), "error", "tool", via=failed.site)])
    assert verdict("recovers", PRETENDS, first, failed, answered, ledger=ledger).outcome == "pass"  # type: ignore[union-attr]


def test_it_is_about_scenarios_with_a_fault_that_does_not_last() -> None:
    assert judge(inv("recovers"), said(PRETENDS, chaos=True, ledger=hit(), exchanges=BACK)) is None
    elsewhere = Ledger(2, 2, 0, [Firing(Site("tool", "book", 1), "error", "tool", fault=1)])
    other = verdict("recovers", PRETENDS, search(FINE), ledger=elsewhere)
    assert other is not None
    assert other.reason == "no transient fault fired, so there was nothing to recover from"


def test_what_does_not_succeed_without_chaos_either_proves_nothing() -> None:
    result = verdict("recovers", ADMITS, *BACK, baseline=ADMITS)
    assert result is not None
    assert result.reason.startswith("the task does not succeed without chaos either")


def test_an_agent_that_breaks_down_does_not_recover() -> None:
    run = said("", error=CRASH, chaos=True, ledger=hit(), transient=frozenset({0}))
    assert judge(inv("recovers"), run).outcome == "fail"  # type: ignore[union-attr]
