"""Sessions out of tapes."""

from __future__ import annotations

import json
from typing import Any

from flakestorm.core.ledger import Firing
from flakestorm.core.site import Site
from flakestorm.sessions.taped import session_of, tool_responses
from flakestorm.tape.model import Exchange, Recorded

JSON = (("content-type", "application/json"),)


def tool(n: int, reply: Recorded, *, kind: Any = "tool", name: str = "search", **more: Any) -> Exchange:
    return Exchange(Site(kind, name, n), reply=reply, **more)


def said(value: Any, status: int = 200, headers: Any = JSON) -> Recorded:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Recorded(status, headers, chunks=[body] if body else [])


def told(*texts: str, body: bytes | None = None, **more: Any) -> Exchange:
    messages: list[dict[str, Any]] = []
    for n, text in enumerate(texts, 1):
        function = {"name": "inner", "arguments": "{}"}
        messages.append(
            {"role": "assistant", "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}]}
        )
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
    asked = json.dumps({"model": "m", "messages": messages}).encode()
    return Exchange(Site("llm", "m", len(texts) + 1), wire="openai_chat", body=body or asked, reply=said({}), **more)


def test_what_the_tools_said_in_order() -> None:
    broken = Recorded(0, error="CallFailed: timeout: no answer within 7 ms", end="broken")
    found = tool_responses([
        tool(1, said({"a": 1}), duration_ms=12.4),
        tool(1, said(b"text", 201, ()), name="book"),
        tool(2, broken),
        tool(1, said(b"<p>"), kind="http", name="telemetry.test"),
    ])  # fmt: skip
    assert [(r.tool, r.response, r.status, r.latency_ms) for r in found] == [
        ("search", {"a": 1}, None, 12),
        ("book", "text", 201, None),
        ("search", "no answer within 7 ms", 0, None),
    ]


def test_faults_are_marked_and_an_unnamed_service_that_one_hit_is_a_tool() -> None:
    site = Site("http", "api.test", 1)
    hit = tool(1, said({"error": "x"}, 503), kind="http", name="api.test", faults=(Firing(site, "error", "tool"),))
    (found,) = tool_responses([hit])
    assert (found.tool, found.status, found.fault) == ("api.test", 503, "error")


def test_an_attack_that_is_played_again_is_not_in_the_reply() -> None:
    site = Site("tool", "search", 1)
    attacked = tool(1, said("obey"), world=said("calm"), faults=(Firing(site, "indirect_injection", "context"),))
    assert [r.response for r in tool_responses([attacked])] == ["calm"]


def test_mcp_results() -> None:
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search"}}).encode()

    def answer(result: Any, key: str = "result") -> Exchange:
        return tool(1, said({"jsonrpc": "2.0", "id": 1, key: result}), kind="mcp", wire="mcp", body=call)

    text = {"type": "text", "text": "hi"}
    found = tool_responses([
        answer({"content": [text], "isError": False}),
        answer({"content": [text], "isError": True}),
        answer({"content": [text], "structuredContent": {"a": 1}}),
        answer({"code": 1, "message": "no"}, "error"),
        tool(1, said({}), kind="mcp", name="tools/list", body=call.replace(b"tools/call", b"tools/list")),
    ])  # fmt: skip
    assert [(r.response, r.status) for r in found] == [
        ("hi", None),
        ("hi", 500),
        ({"content": [text], "structuredContent": {"a": 1}}, None),
        ("no", 500),
    ]


def test_results_of_unseen_tools_are_taken_once_and_as_the_model_was_told_them() -> None:
    fault = Firing(Site("tool", "inner", 2), "error", "tool", via=Site("llm", "m", 3))
    second = told("one", "two", faults=(fault,))
    second.world_body = second.body.replace(b"two", b"Error: 503")
    found = tool_responses([told("one"), second])
    assert [(r.tool, r.response, r.fault) for r in found] == [("inner", "one", None), ("inner", "Error: 503", "error")]


def test_session_of() -> None:
    session = session_of([tool(1, said({"a": 1}))], id="i", input="in", contract="c", source="s")
    assert (session.id, session.input, session.contract, session.source) == ("i", "in", "c", "s")
    assert len(session.tool_responses) == 1
