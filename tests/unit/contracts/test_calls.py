from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts_support import asks_for, call, inside, said, tells
from flakestorm.contracts.calls import (
    ToolCalls,
    arguments,
    calls_of,
    includes,
    offered,
    sites,
    tool_calls,
    tools_seen,
    unseen,
)
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange
from trajectories_support import airline, airline_run, dojo, dojo_run


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


def test_tools_that_only_the_model_spoke_of_are_told_apart() -> None:
    exchanges = [call("tool", "search"), asks_for(("search", {}), ("book", {}))]
    assert tools_seen(said("", exchanges=exchanges)) == (
        "tools seen: search, book (in the model's conversation only: book)"
    )


def test_tool_names_cannot_break_a_report() -> None:
    assert tools_seen(said("", exchanges=[call("tool", "a\x1b[2J"), call("llm", "gpt")])) == "tools seen: a\\x1b[2J"
    assert tools_seen(said("", exchanges=[call("llm", "gpt")])) == "no tool was seen"


def found(*exchanges: Exchange, **more: Any) -> ToolCalls:
    return tool_calls(said("ok", exchanges=exchanges, **more))


def test_a_result_answers_the_latest_reply_that_asked_for_it() -> None:
    """An agent drops a reply that was cut, and a model that is asked the same again may use the same id."""
    cut, whole = asks_for(("pay", {"amount": 3})), asks_for(("pay", {"amount": 3}))
    cut.reply.chunks, whole.site = [cut.reply.body.replace(rb"\"amount\": 3}", b"")], Site("llm", "gpt-4o", 2)
    calls = found(cut, whole, tells(("pay", "done"), n=3))
    assert [(c.site, c.arguments) for c in calls.made] == [("pay in llm/gpt-4o#2", ({"amount": 3},))]
    assert [(c.site, c.arguments) for c in calls.open] == [("pay in llm/gpt-4o#1", ())]


def test_what_the_tool_said_is_kept_apart_from_what_a_fault_made_of_it() -> None:
    asked, told = inside(("pay", {}, "done"))
    told.world_body = told.body.replace(b"done", b"Error: 503")
    (call_,) = found(asked, told).made
    assert (call_.failed, call_.text) == (True, "Error: 503")
    assert call_.said is not None
    assert call_.said.text == "done"


def test_every_call_of_real_conversations_is_found_once() -> None:
    """gpt-4o's 100 airline runs ask for 577 tools; 30 runs end before the model is told the result of the last one."""
    made = unheard = 0
    for index, row in enumerate(airline()):
        calls = tool_calls(airline_run(index))
        asked = [c["function"]["name"] for m in row["traj"] for c in m.get("tool_calls") or ()]
        assert [call.tool for call in (*calls.made, *calls.open)] == asked
        made, unheard = made + len(calls.made), unheard + len(calls.open)
    assert (made, unheard) == (547, 30)


def test_parallel_calls_of_real_conversations_are_found_in_the_order_asked() -> None:
    for index, row in enumerate(dojo()):
        asked = [(c["function"], c["args"]) for m in row["messages"] for c in m.get("tool_calls") or ()]
        made = tool_calls(dojo_run(index)).made
        assert [(call.tool, *call.arguments) for call in made] == asked


SEEN = call("tool", "search", body={"to": "OSL", "date": "12 May"})
OTHER = call("tool", "flights", url="http://x/?to=OSL&date=12+May", method="GET")
WANTED = asks_for(("search", {"to": "OSL", "date": "12 May"}))


@pytest.mark.parametrize(
    ("exchanges", "names"),
    [
        ((WANTED, SEEN, tells(("search", "3 flights"))), [("search",)]),
        ((WANTED, OTHER, tells(("search", "3 flights"))), [("flights", "search")]),  # the same values, another name
        ((WANTED, call("tool", "flights"), tells(("search", "3"))), [("flights", "search")]),  # the only one there was
        ((WANTED, tells(("search", "3 flights"))), [("search",)]),  # inside the agent
        ((WANTED, tells(("search", "3")), tells(("search", "3"), n=3)), [("search",)]),  # told again with the history
        ((SEEN, WANTED, tells(("search", "3 flights"))), [("search",)]),  # before anybody asked: a seam sees this tool
        ((WANTED, SEEN, SEEN, tells(("search", "3"))), [("search",), ("search",)]),  # the agent tried again by itself
    ],
)
def test_a_call_is_counted_once_wherever_it_is_seen(exchanges: tuple[Exchange, ...], names: list[Any]) -> None:
    calls = found(*exchanges)
    assert [call.names for call in calls.made] == names
    assert calls.open == ()


def test_a_function_tool_beside_a_tool_that_a_seam_saw_counts_too() -> None:
    both = asks_for(("search", {"to": "OSL"}), ("pay", {"amount": 3}))
    calls = found(both, SEEN, tells(("search", "3"), ("pay", "done")))
    assert [(call.tool, call.exchange is None) for call in calls.made] == [("pay", True), ("search", False)]
    assert sites(calls.made) == "pay in llm/gpt-4o#1, tool/search#1"


def test_what_was_asked_for_and_never_heard_of_again_is_open() -> None:
    run = said("ok", exchanges=[WANTED])
    assert tool_calls(run).made == ()
    assert [call.tool for call in tool_calls(run).open] == ["search"]
    assert "nobody knows" in (unseen("s*", run) or "")
    assert unseen("pay", run) is None
    assert found(WANTED, visible=("search",)).open == ()  # a seam would have seen it


@pytest.mark.parametrize(
    ("text", "failed"), [("3 flights", False), ("Error: no such flight", True), ('{"error": "down"}', True)]
)
def test_a_result_inside_the_conversation_says_whether_the_call_failed(text: str, failed: bool) -> None:
    (made,) = found(WANTED, tells(("search", text))).made
    assert made.failed is failed
    assert made.text == text


def test_a_result_that_a_fault_took_away_failed() -> None:
    hit = Ledger(1, 1, 0, [Firing(Site("tool", "search", 1), "empty", "tool", via=Site("llm", "gpt-4o", 2))])
    (made,) = found(WANTED, tells(("search", "3")), ledger=hit).made
    assert made.failed


def test_what_the_model_was_told_is_what_a_fault_made_of_the_result() -> None:
    told = tells(("search", "3 flights"))
    told.world_body = told.body.replace(b"3 flights", b"Error: 503")
    (made,) = found(WANTED, told).made
    assert (made.text, made.failed) == ("Error: 503", True)


def test_tools_that_models_were_offered_are_known() -> None:
    assert "send_email" in set(offered(dojo_run(0)))
    assert list(offered(said("ok", visible=("pay*",)))) == ["pay*"]


def test_calls_are_worked_out_once_for_each_run() -> None:
    run = said("ok", exchanges=[WANTED])
    assert tool_calls(run) is tool_calls(run)
    assert calls_of("search", run) == []
