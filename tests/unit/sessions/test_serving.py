"""The stage that answers for the listed tools."""

from __future__ import annotations

import json
from typing import Any

from flakestorm.config.replays import ToolResponse
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import drive
from flakestorm.core.stream import pump
from flakestorm.sessions.serving import Serving


def crossed(serving: Serving, call: Call, world: Reply | None = None) -> tuple[Reply, list[Call], float]:
    """The reply, what reached the world, and the seconds that passed."""
    asked: list[Call] = []
    passed: list[float] = []

    def send(inner: Call) -> Reply:
        asked.append(inner)
        return world or Reply(200, (), b"live")

    def stage(inner: Call) -> Any:
        flow = serving(inner)
        return (yield flow) if isinstance(flow, Call) else (yield from flow)

    reply = drive(stage(call), send, passed.append)
    return Reply(reply.status, reply.headers, b"".join(pump(reply, passed.append))), asked, sum(passed)


def tool(name: str, kind: Any = "tool") -> Call:
    return Call("GET", f"http://tools.test/{name}", kind=kind, name=name)


def model(*messages: dict[str, Any], wire: str = "openai_chat", **more: Any) -> Call:
    key = "messages" if wire == "openai_chat" else "input"
    body = json.dumps({"model": "m", key: list(messages), **more}).encode()
    return Call("POST", "http://model.test/", body=body, kind="llm", name="m", wire=wire)


def result(call_id: str, text: str, name: str = "search") -> tuple[dict[str, Any], ...]:
    function = {"name": name, "arguments": "{}"}
    call = {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}
    return call, {"role": "tool", "tool_call_id": call_id, "content": text}


def test_the_nth_call_gets_the_nth_reply_and_nothing_goes_out() -> None:
    serving = Serving([
        ToolResponse(tool="search", response="one", latency_ms=1500),
        ToolResponse(tool="book", response="b"),
        ToolResponse(tool="search", response="two"),
    ])  # fmt: skip
    assert crossed(serving, tool("search"))[0].body == b"one"
    assert crossed(serving, tool("other"))[1], "what is not listed is live"
    reply, asked, _ = crossed(serving, tool("search", "http"))
    assert (reply.body, asked) == (b"two", [])
    reply, asked, _ = crossed(serving, tool("search"))
    assert (reply.status, asked) == (503, [])
    assert serving.short == {"search": 2}
    assert serving.uncalled == ("book",)
    assert [str(each.site) for each in serving.served] == ["tool/search#1", "tool/search#2"]


def test_latency_passes() -> None:
    serving = Serving([ToolResponse(tool="search", response="one", latency_ms=1500)])
    assert crossed(serving, tool("search"))[2] == 1.5


def test_the_result_of_an_unseen_tool_is_replaced_in_every_request() -> None:
    serving = Serving([ToolResponse(tool="search", response="recorded", latency_ms=10)])
    first = model(*result("c1", "live"), tools=[{"type": "function", "function": {"name": "search"}}])
    for seconds in (0.01, 0):
        _, (asked,), passed = crossed(serving, first)
        assert json.loads(asked.body)["messages"][1]["content"] == "recorded"
        assert passed == seconds
    assert serving.known == {"search"}
    _, (asked,), _ = crossed(serving, model(*result("c1", "live"), *result("c2", "live again")))
    assert "this is call 2" in json.loads(asked.body)["messages"][3]["content"]


def test_a_result_whose_call_was_answered_is_left_alone() -> None:
    serving = Serving([ToolResponse(tool="search", response="recorded")])
    crossed(serving, tool("search"))
    _, (asked,), _ = crossed(serving, model(*result("c1", "as the agent made of it")))
    assert b"as the agent made of it" in asked.body
    assert len(serving.served) == 1


def test_names_are_learnt_where_the_provider_keeps_the_conversation() -> None:
    serving = Serving([ToolResponse(tool="search", response="recorded")])
    item = {"type": "function_call", "call_id": "c9", "name": "search", "arguments": "{}", "id": "f"}
    said = Reply(
        200, (("content-type", "application/json"),), json.dumps({"object": "response", "output": [item]}).encode()
    )
    crossed(serving, model({"role": "user", "content": "hi"}, wire="openai_responses"), said)
    output = {"type": "function_call_output", "call_id": "c9", "output": "live"}
    _, (asked,), _ = crossed(serving, model(output, wire="openai_responses", previous_response_id="r"))
    assert json.loads(asked.body)["input"][0]["output"] == "recorded"


def test_so_it_is_of_a_result_whose_call_google_keeps() -> None:
    serving = Serving([ToolResponse(tool="search", response="recorded")])
    step = {"type": "function_call", "id": "c9", "name": "search", "arguments": {}}
    said = Reply(200, (("content-type", "application/json"),), json.dumps({"id": "i1", "steps": [step]}).encode())
    crossed(serving, model({"type": "user_input", "content": "hi"}, wire="interactions"), said)
    result = {"type": "function_result", "call_id": "c9", "result": "live"}
    _, (asked,), _ = crossed(serving, model(result, wire="interactions", previous_interaction_id="i1"))
    assert json.loads(asked.body)["input"][0]["result"] == "recorded"


def test_a_session_without_replies_changes_nothing() -> None:
    call = model(*result("c1", "live"))
    assert Serving([])(call) is call
