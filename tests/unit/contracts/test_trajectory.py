import gzip
from typing import Any

import pytest

from contracts_support import asks_for, call, inv, said, tells
from flakestorm.contracts.base import invariants
from flakestorm.contracts.calls import tool_calls
from flakestorm.contracts.matrix import judge, prepare
from flakestorm.core.verdict import Verdict
from flakestorm.errors import Misuse
from flakestorm.tape.model import Exchange, Recorded
from trajectories_support import airline_run, dojo_run

PAID = call("tool", "charge_card", 1, body={"amount": 250, "card": {"id": "c1", "cvc": "1"}})
SEARCHES = [call("tool", "search", n, body={"city": "Oslo", "page": n}) for n in (1, 2, 3)]


def verdict(type_: str, exchanges: list[Exchange], *, visible: tuple[str, ...] = (), **settings: Any) -> Verdict:
    return invariants.get(type_)(inv(type_, **settings), said("ok", exchanges=exchanges, visible=visible))


@pytest.mark.parametrize(
    ("tool", "args", "called"),
    [
        ("charge_card", None, True),
        ("charge_*", None, True),
        ("charge", None, False),
        ("gpt-4o", None, False),  # a model is not a tool
        ("charge_card", {}, True),
        ("charge_card", {"amount": 250}, True),
        ("charge_card", {"card": {"id": "c1"}}, True),
        ("charge_card", {"amount": 251}, False),
        ("charge_card", {"currency": "EUR"}, False),
        ("search", {"page": 3}, True),
    ],
)
def test_called_and_not_called_are_opposites(tool: str, args: dict[str, Any] | None, called: bool) -> None:
    exchanges = [call("llm", "gpt-4o"), *SEARCHES, PAID]
    assert verdict("tool_called", exchanges, tool=tool, args=args).outcome == ("pass" if called else "fail")
    assert verdict("tool_not_called", exchanges, tool=tool, args=args).outcome == ("fail" if called else "pass")


def test_reasons_name_the_sites_and_the_tools_seen() -> None:
    assert verdict("tool_not_called", [PAID], tool="charge_card").reason == "charge_card was called: tool/charge_card#1"
    missing = verdict("tool_called", SEARCHES, tool="book").reason
    assert missing == "book was never called; tools seen: search"
    other = verdict("tool_called", SEARCHES, tool="search", args={"city": "Rome"}).reason
    assert 'never with {"city":"Rome"}; last with {"city":"Oslo","page":3}' in other
    assert "tool/search#1, tool/search#2, tool/search#3" in other
    assert "nothing crossed the boundary" in verdict("tool_not_called", [], tool="book").reason
    many = [call("tool", "search", n) for n in range(1, 9)]
    assert verdict("tool_called", many, tool="search").reason.endswith("tool/search#5 and 3 more")


def test_a_call_that_a_fault_answered_was_made() -> None:
    assert verdict("tool_not_called", [call("tool", "pay", sent=0)], tool="pay").outcome == "fail"


def test_a_tool_that_the_model_asked_for_and_no_seam_can_see_leaves_both_questions_open() -> None:
    exchanges = [asks_for(("charge_card", {"amount": 250}))]
    for type_ in ("tool_called", "tool_not_called"):
        result = verdict(type_, exchanges, tool="charge_card")
        assert result.outcome == "inconclusive"
        assert "the model asked for charge_card (llm/gpt-4o#1)" in result.reason
        assert "boundary.tools" in result.reason
    # The same once the tool is known to be visible: the agent held the call back.
    assert verdict("tool_not_called", exchanges, tool="charge_card", visible=("charge_*",)).outcome == "pass"
    assert verdict("tool_called", exchanges, tool="charge_card", visible=("charge_card",)).outcome == "fail"
    # And where the model asked for another tool, or with other arguments, nothing is open.
    assert verdict("tool_not_called", exchanges, tool="refund").outcome == "pass"
    assert verdict("tool_not_called", exchanges, tool="charge_card", args={"amount": 1}).outcome == "pass"


def test_a_compressed_reply_of_the_model_is_read_too() -> None:
    exchange = asks_for(("charge_card", {}))
    exchange.reply.chunks = [gzip.compress(exchange.reply.body)]
    exchange.reply.headers = (*exchange.reply.headers, ("Content-Encoding", "gzip"))
    assert verdict("tool_not_called", [exchange], tool="charge_card").outcome == "inconclusive"


@pytest.mark.parametrize(
    ("settings", "outcome", "reason"),
    [
        ({"limit": 5}, "pass", "5 calls, at most 5 allowed"),
        ({"limit": 4}, "fail", "5 calls, more than 4; the first too many is http/api#1"),
        ({"limit": 1, "kind": "llm"}, "pass", "1 llm calls, at most 1 allowed"),
        ({"limit": 0, "kind": "llm"}, "fail", "1 llm calls, more than 0; the first too many is llm/gpt-4o#1"),
        ({"limit": 2, "tool": "search"}, "fail", "3 calls to search, more than 2; the first too many is tool/search#3"),
        (
            {"limit": 2, "tool": "s*", "kind": "tool"},
            "fail",
            "3 tool calls to s*, more than 2; the first too many is tool/search#3",
        ),
        ({"limit": 0, "kind": "mcp"}, "pass", "0 mcp calls, at most 0 allowed"),
    ],
)
def test_calls_are_counted(settings: dict[str, Any], outcome: str, reason: str) -> None:
    exchanges = [call("agent", "input"), call("draw", "clock"), call("llm", "gpt-4o"), *SEARCHES, call("http", "api")]
    assert verdict("max_calls", exchanges, **settings) == Verdict(outcome, reason)  # type: ignore[arg-type]


def test_a_tool_that_a_held_mcp_server_listed_would_have_been_seen() -> None:
    listed = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"charge_card"}]}}'
    listing = call("mcp", "tools/list", reply=Recorded(200, chunks=[listed]))
    exchanges = [listing, asks_for(("charge_card", {"amount": 250}))]
    assert verdict("tool_not_called", exchanges, tool="charge_card").outcome == "pass"
    assert verdict("tool_called", exchanges, tool="charge_card").outcome == "fail"


def test_the_housekeeping_of_mcp_is_no_tool() -> None:
    exchanges = [call("mcp", name) for name in ("initialize", "notifications/initialized", "tools/list", "search")]
    assert verdict("max_calls", exchanges, tool="*", limit=1).outcome == "pass"
    assert verdict("tool_called", exchanges, tool="init*").reason == "init* was never called; tools seen: search"
    assert verdict("tool_called", exchanges, tool="tools/list").outcome == "pass"


def test_a_tool_inside_the_agent_is_called_when_its_result_came_back() -> None:
    exchanges = [asks_for(("pay", {"amount": 3})), tells(("pay", "done"))]
    assert verdict("tool_called", exchanges, tool="pay", args={"amount": 3}).reason == (
        "pay was called: pay in llm/gpt-4o#1"
    )
    assert verdict("tool_called", exchanges, tool="pay", args={"amount": 4}).outcome == "fail"
    assert verdict("tool_not_called", exchanges, tool="p*").outcome == "fail"
    assert verdict("max_calls", exchanges, tool="pay", limit=0).reason.endswith(
        "the first too many is pay in llm/gpt-4o#1"
    )
    assert (
        verdict("max_calls", exchanges, limit=3).reason == "3 calls, at most 3 allowed"
    )  # two of the model's, one tool
    assert verdict("max_calls", exchanges[:1], tool="pay", limit=0).outcome == "inconclusive"


ADULTS = {"properties": {"passengers": {"maxItems": 1}}}


@pytest.mark.parametrize(
    ("index", "type_", "settings", "outcome"),
    [
        (0, "tool_called", {"tool": "book_reservation"}, "pass"),
        (1, "tool_called", {"tool": "book_reservation"}, "fail"),
        (2, "tool_called", {"tool": "transfer_to_human_agents"}, "inconclusive"),  # the run ends with it
        (1, "tool_not_called", {"tool": "book_*"}, "pass"),
        (0, "tool_not_called", {"tool": "book_*"}, "fail"),
        (0, "max_calls", {"tool": "search_*", "limit": 4}, "pass"),
        (5, "max_calls", {"tool": "search_*", "limit": 4}, "fail"),
        (0, "tool_order", {"before": "get_user_details", "after": "book_reservation"}, "pass"),
        (75, "tool_order", {"before": "get_reservation_details", "after": "cancel_reservation"}, "fail"),
        (1, "tool_order", {"before": "get_user_details", "after": "book_reservation"}, "inconclusive"),
        (0, "tool_args", {"tool": "book_reservation", "schema": ADULTS}, "pass"),
        (16, "tool_args", {"tool": "book_reservation", "schema": ADULTS}, "fail"),
        (1, "tool_args", {"tool": "book_reservation", "schema": ADULTS}, "inconclusive"),
    ],
)
def test_on_real_airline_runs(index: int, type_: str, settings: dict[str, Any], outcome: str) -> None:
    spec = inv(type_, **settings)
    prepare([spec])
    result = judge(spec, airline_run(index))
    assert result is not None
    assert result.outcome == outcome, result.reason


UNHEARD = ("transfer_to_human_agents",)


def test_a_real_run_that_ends_with_a_call_leaves_it_open() -> None:
    ends = next(i for i in range(100) if airline_run(i).exchanges and _last_asked(i) == UNHEARD[0])
    for type_, settings in (
        ("tool_called", {"tool": UNHEARD[0]}),
        ("tool_not_called", {"tool": UNHEARD[0]}),
        ("max_calls", {"tool": UNHEARD[0], "limit": 0}),
        ("tool_order", {"before": "nothing", "after": UNHEARD[0]}),
        ("tool_args", {"tool": UNHEARD[0], "schema": {"type": "object"}}),
    ):
        result = judge(inv(type_, **settings), airline_run(ends))
        assert result is not None
        assert result.outcome == "inconclusive", (type_, result.reason)


def _last_asked(index: int) -> str | None:
    calls = tool_calls(airline_run(index)).open
    return calls[-1].tool if calls else None


def test_a_tool_that_was_offered_and_not_called_breaks_no_order_and_no_schema() -> None:
    run = dojo_run(0)
    assert judge(inv("tool_order", before="search_emails", after="delete_email"), run) == Verdict(
        "pass",
        "delete_email was not called, so nothing was out of order; tools seen: search_calendar_events (in the "
        "model's conversation only: search_calendar_events)",
    )
    result = judge(inv("tool_args", tool="delete_email", schema={"type": "object"}), run)
    assert result is not None
    assert result.outcome == "pass"
    slip = judge(inv("tool_args", tool="delete_emial", schema={"type": "object"}), run)
    assert slip is not None
    assert "nothing in this run shows that there is such a tool" in slip.reason


def test_the_order_is_of_first_calls() -> None:
    search, pay = call("tool", "search"), call("tool", "pay")
    assert verdict("tool_order", [search, pay, search], before="search", after="pay").outcome == "pass"
    assert verdict("tool_order", [pay, search], before="search", after="pay").reason == (
        "pay was called (tool/pay#1), and search only afterwards: tool/search#1; tools seen: pay, search"
    )
    assert verdict("tool_order", [pay], before="search", after="pay").outcome == "fail"
    assert verdict("tool_order", [pay], before="p*", after="pay").outcome == "fail"  # a call does not precede itself


@pytest.mark.parametrize(
    ("exchange", "outcome"),
    [
        (call("tool", "t", body={"n": 3}), "pass"),
        (call("tool", "t", body={"n": "3"}), "fail"),
        (call("tool", "t", body=b"", url="http://x/?n=3"), "pass"),  # a query carries text only
        (call("tool", "t", body=b"", url="http://x/?n=three"), "fail"),
        (call("tool", "t", body=b"n=3", headers=(("content-type", "application/x-www-form-urlencoded"),)), "pass"),
        (call("tool", "t", body=b"\xff"), "inconclusive"),
        (call("tool", "u", body={"n": "x"}), "inconclusive"),
    ],
)
def test_arguments_fit_the_schema(exchange: Exchange, outcome: str) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert verdict("tool_args", [exchange], tool="t", schema=schema).outcome == outcome


def test_a_schema_that_is_none_is_refused_before_anything_is_run() -> None:
    with pytest.raises(Misuse, match=r"'schema' is not a JSON Schema: .*type"):
        prepare([inv("tool_args", tool="t", schema={"type": "objekt"})])
    with pytest.raises(Misuse, match="needs 'schema'"):
        prepare([inv("tool_args", tool="t")])
