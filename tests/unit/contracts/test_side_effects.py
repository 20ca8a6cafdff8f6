from __future__ import annotations

import json
from typing import Any

import pytest

from contracts_support import asks_for, call, inside, inv, said, tells
from flakestorm.contracts.base import invariants
from flakestorm.contracts.matrix import prepare
from flakestorm.contracts.side_effects import no_duplicate_side_effect
from flakestorm.core.site import Site
from flakestorm.core.verdict import Verdict
from flakestorm.errors import Misuse
from flakestorm.tape.model import Exchange, Recorded

KEYED = (("Idempotency-Key", "k-1"),)
FRESH = (("idempotency-key", "k-2"),)
ORDER = {"order_id": "o-1", "amount": 5, "card": {"ref": "c9"}}


def judged(*exchanges: Exchange, visible: tuple[str, ...] = (), **settings: Any) -> Verdict:
    spec = inv("no_duplicate_side_effect", **{"tool": "pay", **settings})
    return invariants.get("no_duplicate_side_effect")(spec, said("ok", exchanges=exchanges, visible=visible))


def pay(n: int = 1, body: Any = None, *, status: int = 200, sent: int = 1, **more: Any) -> Exchange:
    given = ORDER if body is None else body
    return call("tool", "pay", n, body=given, reply=Recorded(status), sent=sent, **more)


def test_it_is_registered_and_needs_its_tool() -> None:
    assert invariants.get("no_duplicate_side_effect") is no_duplicate_side_effect
    with pytest.raises(Misuse, match="needs 'tool'"):
        prepare([inv("no_duplicate_side_effect")])


@pytest.mark.parametrize("key", [None, "order_id", "card.ref"])
def test_two_calls_for_the_same_thing_are_one_too_many(key: str | None) -> None:
    verdict = judged(pay(1), pay(2), key=key)
    assert verdict.outcome == "fail"
    assert verdict.reason.startswith("pay was called 2 times with the same ")
    assert verdict.reason.endswith("no idempotency key: tool/pay#1, tool/pay#2")


@pytest.mark.parametrize(
    ("one", "other", "outcome"),
    [
        (pay(1, headers=KEYED), pay(2, headers=KEYED), "pass"),
        (pay(1, headers=KEYED), pay(2, headers=FRESH), "fail"),
        (pay(1, headers=KEYED), pay(2), "fail"),
        (pay(1), pay(2, headers=KEYED), "fail"),
        (pay(1, {**ORDER, "idempotency_key": "a"}), pay(2, {**ORDER, "idempotency_key": "a"}), "pass"),
        (pay(1, {**ORDER, "idempotencyKey": "a"}), pay(2, {**ORDER, "idempotencyKey": "b"}), "fail"),
        (pay(1, {**ORDER, "meta": {"client_token": 7}}), pay(2, {**ORDER, "meta": {"client_token": 7}}), "pass"),
        (pay(1, {**ORDER, "order_id": "o-2"}), pay(2), "pass"),
    ],
)
@pytest.mark.parametrize("key", ["order_id", None])
def test_an_idempotency_key_makes_two_calls_one(one: Exchange, other: Exchange, outcome: str, key: str | None) -> None:
    assert judged(one, other, key=key).outcome == outcome


@pytest.mark.parametrize("key", ["Idempotency-Key", "idempotency-key"])
def test_a_key_that_names_the_idempotency_header_asks_for_it(key: str) -> None:
    assert judged(pay(1, headers=KEYED), pay(2, headers=KEYED), key=key).outcome == "pass"
    assert judged(pay(1), pay(2), key=key).outcome == "fail"
    assert judged(pay(1), pay(2, {**ORDER, "amount": 6}), key=key).outcome == "pass"
    lost = judged(pay(1, headers=KEYED), pay(2, headers=FRESH), key=key)
    assert "with the same arguments and different idempotency keys" in lost.reason


def test_any_other_header_may_say_what_a_call_is_for() -> None:
    same, other = (("X-Order", "1"),), (("X-Order", "2"),)
    assert judged(pay(1, {"a": 1}, headers=same), pay(2, {"a": 2}, headers=same), key="x-order").outcome == "fail"
    assert judged(pay(1, {"a": 1}, headers=same), pay(2, {"a": 1}, headers=other), key="x-order").outcome == "pass"


@pytest.mark.parametrize(
    "harmless",
    [
        pay(1, sent=0),
        pay(1, status=402),
        pay(1, world=Recorded(409), status=0),
        pay(1, method="CALL", url="python://pay", status=500),
    ],
)
def test_what_never_reached_the_tool_or_was_refused_did_nothing(harmless: Exchange) -> None:
    assert judged(harmless, pay(2), key="order_id").outcome == "pass"


@pytest.mark.parametrize(
    "open_question",
    [
        pay(1, status=503),
        pay(1, world=Recorded(200), status=0),  # its reply was lost
        pay(1, status=0),
    ],
)
def test_what_may_have_happened_counts(open_question: Exchange) -> None:
    assert judged(open_question, pay(2), key="order_id").outcome == "fail"


def test_a_delivery_that_came_twice_is_harmless_by_its_key_alone() -> None:
    twice = judged(pay(1, sent=2), key="order_id")
    assert twice.outcome == "fail"
    assert twice.reason == (
        "tool/pay#1 was delivered 2 times and carried no idempotency key, so pay could not know the copy for one"
    )
    assert judged(pay(1, sent=2, headers=KEYED), key="order_id").outcome == "pass"
    refused = pay(1, sent=2, world=Recorded(409))
    assert judged(refused, key="order_id").outcome == "pass", "the tool knew the copy by itself"


def mcp(n: int, *, error: bool = False, arguments: Any = None) -> Exchange:
    body = {
        "jsonrpc": "2.0",
        "id": n,
        "method": "tools/call",
        "params": {"name": "pay", "arguments": arguments or ORDER},
    }
    result = {"content": [{"type": "text", "text": "declined" if error else "paid"}], "isError": error}
    reply = Recorded(200, (("content-type", "application/json"),))
    reply.chunks = [json.dumps({"jsonrpc": "2.0", "id": n, "result": result}).encode()]
    return Exchange(Site("mcp", "pay", n), wire="mcp", body=json.dumps(body).encode(), reply=reply, sent=1)


def test_over_mcp_a_failed_call_did_nothing() -> None:
    assert judged(mcp(1), mcp(2), key="order_id").outcome == "fail"
    assert judged(mcp(1, error=True), mcp(2), key="order_id").outcome == "pass"
    keyed = {**ORDER, "idempotency_key": "a"}
    assert judged(mcp(1, arguments=keyed), mcp(2, arguments=keyed), key="order_id").outcome == "pass"


def test_calls_that_do_not_say_what_they_are_for_leave_it_open() -> None:
    verdict = judged(pay(1, {"amount": 5}), pay(2, {"amount": 5}), key="order_id")
    assert verdict.outcome == "inconclusive"
    assert "2 of 2 calls that reached pay have no 'order_id'" in verdict.reason
    assert judged(pay(1, {"amount": 5}), key="order_id").outcome == "pass"


def test_a_body_that_is_no_json_is_compared_as_it_is() -> None:
    assert judged(pay(1, b"\xff1"), pay(2, b"\xff1")).outcome == "fail"
    assert judged(pay(1, b"\xff1"), pay(2, b"\xff2")).outcome == "pass"


def test_different_tools_do_different_things() -> None:
    other = call("tool", "payback", 1, body=ORDER, reply=Recorded(200), sent=1)
    assert judged(pay(1), other, tool="pay*", key="order_id").outcome == "pass"
    assert judged(pay(1), other, pay(2), tool="pay*", key="order_id").outcome == "fail"


def test_a_tool_that_was_not_called_did_nothing_unless_nobody_could_see_it() -> None:
    assert judged(visible=("pay",)).outcome == "pass"
    assert judged(asks_for(("pay", ORDER))).outcome == "inconclusive"


AGAIN = {**ORDER, "amount": 6}
KEYS = [{**ORDER, "idempotency_key": key} for key in "aab"]


@pytest.mark.parametrize(
    ("calls", "outcome", "reason"),
    [
        ([(ORDER, "paid: r-1")], "pass", "1 of 1 calls reached pay"),
        ([(ORDER, "paid: r-1"), (AGAIN, "paid: r-2")], "pass", "each for a thing of its own"),
        ([(ORDER, "paid: r-1"), (ORDER, "paid: r-2")], "fail", "pay was called 2 times with the same arguments and no"),
        (
            [(ORDER, "paid"), (ORDER, "paid")],
            "inconclusive",
            "and the answers are the same; register it in agent.tools",
        ),
        ([(ORDER, "Error: declined"), (ORDER, "paid: r-2")], "pass", "1 of 2 calls reached pay and were not refused"),
        ([(KEYS[0], "paid: r-1"), (KEYS[1], "paid: r-2")], "pass", "2 of 2 calls"),
        ([(KEYS[0], "paid: r-1"), (KEYS[2], "paid: r-2")], "fail", "different idempotency keys"),
    ],
)
def test_inside_the_agent_two_answers_tell_of_two_deeds(calls: Any, outcome: str, reason: str) -> None:
    verdict = judged(*inside(*[("pay", given, text) for given, text in calls]))
    assert verdict.outcome == outcome, verdict.reason
    assert reason in verdict.reason


def test_inside_the_agent_a_fault_that_takes_a_result_away_undoes_nothing() -> None:
    run = inside(("pay", ORDER, "paid: r-1"), ("pay", ORDER, "paid: r-2"))
    run[1].world_body = run[1].body.replace(b"paid: r-1", b"Error: 503")
    assert judged(*run).outcome == "fail"


def test_inside_the_agent_a_key_says_what_is_the_same() -> None:
    run = inside(("pay", ORDER, "paid: r-1"), ("pay", AGAIN, "paid: r-2"))
    assert judged(*run, key="order_id").reason.startswith('pay was called 2 times with the same order_id ("o-1") and')
    assert judged(*run, key="invoice").reason.startswith("2 of 2 calls that reached pay have no 'invoice'")
    unread = [asks_for(("pay", ORDER)), tells(("pay", "paid: r-1"))]
    unread[0].reply.chunks = [unread[0].reply.body.replace(rb"\"amount\"", b"")]
    verdict = judged(*unread, *run[2:])
    assert verdict.reason.startswith("1 of 2 calls that reached pay do not say what they were for")


def test_a_call_that_nobody_heard_of_again_may_be_the_second() -> None:
    run = [*inside(("pay", ORDER, "paid: r-1")), asks_for(("pay", ORDER))]
    assert judged(*run).outcome == "inconclusive"
    assert judged(*inside(("pay", ORDER, "r-1"), ("pay", ORDER, "r-2")), run[-1]).outcome == "fail"


def test_the_model_s_word_for_the_tool_means_its_calls_too() -> None:
    one, told, other, again = inside(("make_payment", ORDER, "paid"), ("make_payment", ORDER, "paid"))
    assert judged(one, pay(1), told, other, pay(2), again, tool="make_payment").outcome == "fail"


def test_without_a_sign_of_what_is_different_reasons_are_short() -> None:
    assert judged(pay(1)).reason == "1 of 1 calls reached pay and were not refused"
    three = judged(pay(1), pay(2, sent=0), pay(3, {"order_id": "o-9"}), key="order_id")
    assert three.reason == "2 of 3 calls reached pay and were not refused, each for a thing of its own"
