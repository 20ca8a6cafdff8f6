from __future__ import annotations

import json

from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.tools import tool_results_of, tools_named


def model(n: int, *told: tuple[str, str], asks: tuple[tuple[str, str], ...] = (), calls: bool = True) -> Exchange:
    """A model call that is told results (call id, text) and asks for tools (call id, name).

    Args:
        calls: whether the request shows which calls the results answer.
    """
    messages: list[dict[str, object]] = []
    for call_id, text in told:
        if calls:
            call = {"id": call_id, "function": {"name": f"tool_{call_id}", "arguments": "{}"}}
            messages.append({"role": "assistant", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
    wanted = [{"id": i, "type": "function", "function": {"name": name, "arguments": "{}"}} for i, name in asks]
    said = {"choices": [{"message": {"role": "assistant", "tool_calls": wanted}, "finish_reason": "tool_calls"}]}
    return Exchange(
        Site("llm", "gpt-4o", n),
        wire="openai_chat",
        body=json.dumps({"messages": messages}).encode(),
        reply=Recorded(200, chunks=[json.dumps(said).encode()]),
    )


def test_tools_are_named_by_what_models_asked_for_and_were_told() -> None:
    run = [model(1, ("b", "x"), asks=(("c1", "search"), ("c2", "pay"))), model(2, asks=(("c3", "search"),))]
    assert tools_named(run) == ("tool_b", "search", "pay")
    assert tool_results_of(run) == ("tool_b",)


def test_a_result_sent_again_is_one_result() -> None:
    run = [model(1, ("a", "x")), model(2, ("a", "x"), ("b", "y")), model(3, ("a", "x"), ("b", "y"))]
    assert tool_results_of(run) == ("tool_a", "tool_b")


def test_a_result_without_its_call_is_named_by_an_earlier_reply() -> None:
    run = [model(1, asks=(("c1", "search"),)), model(2, ("c1", "x"), calls=False)]
    assert tool_results_of(run) == ("search",)
    assert tool_results_of(run[1:]) == ("unknown",)
    assert tools_named(run[1:]) == (), "what nobody named has no name to show"


def test_other_calls_and_unread_protocols_say_nothing() -> None:
    tool, foreign = Exchange(Site("tool", "search", 1)), Exchange(Site("llm", "m", 1), wire="morse", body=b"{}")
    assert tools_named([tool, foreign]) == tool_results_of([tool, foreign]) == ()
