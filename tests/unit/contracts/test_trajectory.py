import gzip
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts_support import asks_for, call, inv, said
from flakestorm.contracts.base import invariants
from flakestorm.contracts.trajectory import arguments, includes, tools_seen
from flakestorm.core.verdict import Verdict
from flakestorm.tape.model import Exchange, Recorded

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


@pytest.mark.parametrize(
    ("exchange", "given_"),
    [
        (call("tool", "t", body={"a": 1}), [{"a": 1}]),
        (call("tool", "t", url="http://x/?a=1&b=", method="GET"), [{"a": "1", "b": ""}]),
        (call("tool", "t", body={"a": 1}, url="http://x/?b=2"), [{"a": 1}, {"b": "2"}]),
        (
            call("tool", "t", body=b"a=1&b=x+y", headers=(("Content-Type", "application/x-www-form-urlencoded"),)),
            [{"a": "1", "b": "x y"}],
        ),
        (
            call(
                "mcp",
                "t",
                body={"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "t", "arguments": {"a": 1}}},
            ),
            [{"a": 1}],
        ),
        (call("tool", "t", body=[1, 2]), []),
        (call("tool", "t", body=b"\xff\x00"), []),
        (call("tool", "t", url="http://[broken/?a=1"), []),
    ],
)
def test_arguments_are_read_in_every_form(exchange: Exchange, given_: list[dict[str, Any]]) -> None:
    assert list(arguments(exchange)) == given_


@pytest.mark.parametrize(
    ("given_", "wanted", "expected"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, True),
        ({"a": None}, {"a": None}, True),
        ({}, {"a": None}, False),
        ({"a": 1.0}, {"a": 1}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": "1"}, {"a": 1}, True),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": "true"}, {"a": True}, True),
        ({"a": "True"}, {"a": True}, False),
        ({"a": [1, {"b": 2, "c": 3}]}, {"a": [1, {"b": 2}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ([], {}, False),
    ],
)
def test_args_match_by_subset_and_json_equality(given_: Any, wanted: Any, expected: bool) -> None:
    assert includes(given_, wanted) is expected


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_everything_includes_itself(value: Any) -> None:
    assert includes(value, value)


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


def test_tools_that_only_the_model_spoke_of_are_told_apart() -> None:
    exchanges = [call("tool", "search"), asks_for(("search", {}), ("book", {}))]
    assert tools_seen(said("", exchanges=exchanges)) == (
        "tools seen: search, book (in the model's conversation only: book)"
    )


def test_tool_names_cannot_break_a_report() -> None:
    assert tools_seen(said("", exchanges=[call("tool", "a\x1b[2J"), call("llm", "gpt")])) == "tools seen: a\\x1b[2J"
    assert tools_seen(said("", exchanges=[call("llm", "gpt")])) == "no tool was seen"


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
