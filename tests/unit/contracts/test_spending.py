import json
from typing import Any

import pytest

from contracts_support import CRASH, call, inside, inv, said
from flakestorm.contracts.base import RunView
from flakestorm.contracts.matrix import judge
from flakestorm.contracts.spending import billed
from flakestorm.core.ledger import Firing
from flakestorm.core.site import Site
from flakestorm.core.verdict import Verdict
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.wire.base import Usage
from trajectories_support import airline_run, dojo_run


def model(n: int = 1, *, tokens: tuple[int, int] | None = (10, 5), status: int = 200, **more: Any) -> Exchange:
    usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}}
    said_ = {"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "hi"}}], **usage}
    reply = Recorded(status, chunks=[json.dumps(said_).encode()])
    return call("llm", "gpt", n, body={"model": "gpt", "messages": []}, wire="openai_chat", reply=reply, sent=1, **more)


def verdict(type_: str, *exchanges: Exchange, **settings: Any) -> Verdict:
    result = judge(inv(type_, **settings), said("ok", exchanges=exchanges))
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("exchanges", "limit", "outcome", "reason"),
    [
        ((model(), model(2)), 30, "pass", "30 tokens in 2 model calls, at most 30 allowed"),
        ((model(), model(2)), 29, "fail", "30 tokens in 2 model calls, more than 29"),
        ((model(), model(2, tokens=None)), 29, "inconclusive", "15 tokens in 2 model calls, but llm/gpt#2 did not say"),
        ((model(tokens=(3_000_000, 1)), model(2, tokens=None)), 2_000_000, "fail", "more than 2,000,000"),
        ((model(), model(2, status=429)), 15, "pass", "15 tokens"),  # a refusal is not billed
        ((call("tool", "t"),), 0, "pass", "no model was called"),
        ((), 9, "inconclusive", "nothing crossed the boundary"),
    ],
)
def test_tokens_are_added_up(exchanges: Any, limit: int, outcome: str, reason: str) -> None:
    result = verdict("max_tokens", *exchanges, limit=limit)
    assert result.outcome == outcome
    assert reason in result.reason


def test_what_a_fault_answered_was_not_billed_and_what_it_changed_was() -> None:
    fault = (Firing(Site("llm", "gpt", 1), "truncated_response", "llm"),)
    answered = model(faults=fault)
    answered.sent = 0
    assert billed(answered) == Usage(0, 0)
    changed = model(tokens=(10, 2), faults=fault, world=model(tokens=(10, 50)).reply)
    assert billed(changed) == Usage(10, 50)


def test_real_recordings_without_usage_cannot_pass() -> None:
    result = judge(inv("max_tokens", limit=100), airline_run(0))
    assert result is not None
    assert result.outcome == "inconclusive"


def tries(
    count: int, *, apart_ms: float = 100, status: int = 503, last: int = 503, name: str = "pay"
) -> list[Exchange]:
    statuses = [status] * (count - 1) + [last]
    return [
        call("tool", name, n, body={"id": 7}, t_ms=1 + apart_ms * n, reply=Recorded(code, chunks=[b"{}"]))
        for n, code in enumerate(statuses, 1)
    ]


@pytest.mark.parametrize(
    ("exchanges", "settings", "outcome"),
    [
        (tries(5), {}, "pass"),
        (tries(6), {}, "fail"),
        (tries(6, last=200), {}, "fail"),
        (tries(9, status=200, last=200), {}, "pass"),  # polling a service that answers
        (tries(6, apart_ms=5_000), {}, "pass"),  # patient
        (tries(6, apart_ms=5_000), {"window_ms": 60_000}, "fail"),
        (tries(3), {"limit": 2}, "fail"),
        (tries(3), {"limit": 2, "tool": "search"}, "pass"),
        (tries(3), {"limit": 2, "kind": "llm"}, "pass"),
        ([*tries(3, name="pay"), *tries(3, name="book")], {}, "pass"),  # different things
    ],
)
def test_storms(exchanges: list[Exchange], settings: dict[str, Any], outcome: str) -> None:
    assert verdict("no_retry_storm", *exchanges, **settings).outcome == outcome


def test_the_reason_says_how_often_in_how_long() -> None:
    assert verdict("no_retry_storm", *tries(8)).reason == (
        "tool/pay#1 was tried 6 times within 500 ms, more than 5 times"
    )
    assert verdict("no_retry_storm", *tries(2, last=200)).reason.startswith("the most tried call was tried 2 times")


def test_a_tape_without_times_cannot_tell_a_storm_from_patience() -> None:
    timeless = tries(9, apart_ms=0)
    for each in timeless:
        each.t_ms = 0
    result = verdict("no_retry_storm", *timeless)
    assert result.outcome == "inconclusive"
    assert "the tape does not say when" in result.reason
    assert verdict("no_retry_storm", *timeless[:5]).outcome == "pass"


def test_tools_inside_the_agent_storm_too() -> None:
    run = inside(*[("pay", {"id": 7}, "Error: 503")] * 7)
    for n, exchange in enumerate(run):
        exchange.t_ms = 5.0 * n
    assert verdict("no_retry_storm", *run, tool="pay").outcome == "fail"


def test_storms_of_mcp_calls_are_told_by_what_they_ask_for() -> None:
    wrong = Recorded(503, chunks=[b"{}"])
    calls = [
        call("mcp", "pay", n, body={"jsonrpc": "2.0", "id": n, "method": "tools/call"}, t_ms=n, reply=wrong)
        for n in range(1, 8)
    ]
    assert verdict("no_retry_storm", *calls).outcome == "fail"


def test_on_real_runs() -> None:
    assert all(judge(inv("no_retry_storm"), run(0)).outcome == "pass" for run in (airline_run, dojo_run))  # type: ignore[union-attr]


def test_a_run_that_broke_off_proves_no_calm() -> None:
    run = RunView("hi", error=CRASH, exchanges=tries(2))
    assert judge(inv("no_retry_storm"), run).outcome == "inconclusive"  # type: ignore[union-attr]
    assert judge(inv("no_retry_storm"), RunView("hi", error=CRASH, exchanges=tries(8))).outcome == "fail"  # type: ignore[union-attr]


def priced(name: str, tokens: tuple[int, int] | None = (1_000_000, 100_000), **more: Any) -> Exchange:
    found = model(tokens=tokens, **more)
    found.site = Site("llm", name, 1)
    return found


@pytest.mark.parametrize(
    ("exchanges", "settings", "outcome", "reason"),
    [
        ((priced("gpt-4o"),), {"limit": 3.5}, "pass", "3.500000 US dollars for 1 model calls, at most 3.5 allowed"),
        ((priced("gpt-4o"), priced("gpt-4o")), {"limit": 3.5}, "fail", "7.000000 US dollars for 2 model calls"),
        ((priced("qwen3:8b"),), {"limit": 1}, "inconclusive", "the price of qwen3:8b is not known"),
        ((priced("qwen3:8b"),), {"limit": 1, "prices": {"qwen3:8b": {"input": 0, "output": 0}}}, "pass", "0.000000"),
        ((priced("qwen3:8b"), priced("gpt-4o")), {"limit": 1}, "fail", "3.500000"),
        ((priced("gpt-4o", None),), {"limit": 1}, "inconclusive", "did not say how many tokens"),
        ((priced("qwen3:8b", status=500),), {"limit": 0}, "pass", "0.000000"),
        ((call("tool", "t"),), {"limit": 0}, "pass", "no model was called"),
        ((), {"limit": 1}, "inconclusive", "nothing crossed"),
    ],
)
def test_costs_are_added_up(exchanges: Any, settings: dict[str, Any], outcome: str, reason: str) -> None:
    result = verdict("max_cost", *exchanges, **settings)
    assert result.outcome == outcome
    assert reason in result.reason
