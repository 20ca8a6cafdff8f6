import json

import pytest

from flakestorm.importers.messages import conversation
from flakestorm.reports.genai import meaning, messages


def exchange(kind, wire="", url="http://h/x", method="POST", body="", name="n", **reply):
    said = {"status": 200, "text": "", "tool_calls": [], "finish": None, "usage": {"input": None, "output": None}}
    request = {"method": method, "url": url, "body": body}
    return {"kind": kind, "wire": wire, "name": name, "request": request, "reply": {**said, **reply}}


@pytest.mark.parametrize(
    ("wire", "body", "provider"),
    [
        ("openai_chat", {"messages": [{"role": "user", "content": "hi"}]}, "openai"),
        ("openai_responses", {"input": "hi"}, "openai"),
        ("anthropic", {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}, "anthropic"),
        ("gemini", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, "gcp.gemini"),
        ("ollama", {"messages": [{"role": "user", "content": "hi"}]}, "ollama"),
        ("other", "hi", "other"),
        ("", "hi", "unknown"),
    ],
)
def test_every_provider_s_request_is_read(wire, body, provider) -> None:
    name, said = meaning(exchange("llm", wire, body=body, text="yes", finish="stop"), conversation)
    assert (name, said["gen_ai.provider.name"]) == ("chat n", provider)
    assert json.loads(said["gen_ai.input.messages"]) == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    assert json.loads(said["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "yes"}], "finish_reason": "stop"}
    ]


def test_an_error_is_no_answer_and_embeddings_are_no_chat() -> None:
    assert meaning(exchange("llm", status=500, text="oops"), conversation)[1]["gen_ai.output.messages"] is None
    assert meaning(exchange("llm", "embeddings"), conversation)[0] == "embeddings n"


def test_a_tool_s_arguments_are_its_body_else_its_query() -> None:
    for given, arguments in [
        (exchange("tool", body={"a": 1}), {"a": 1}),
        (exchange("tool", url="http://h/x?a=1&b=c"), {"a": "1", "b": "c"}),
        (exchange("tool", body="plain"), "plain"),
        (exchange("mcp", body={"method": "tools/call", "params": {"arguments": {"a": 1}}}), {"a": 1}),
        (exchange("mcp", body={"method": "ping"}), {"method": "ping"}),
        (exchange("mcp", body="odd"), "odd"),
    ]:
        name, said = meaning(given, conversation)
        assert name == "execute_tool n"
        assert json.loads(said["gen_ai.tool.call.arguments"]) == arguments


def test_messages_hold_calls_and_results() -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": "{bad"}}
    given = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
    ]
    assert [m["parts"] for m in json.loads(messages(given) or "")] == [
        [{"type": "tool_call", "id": "1", "name": "f", "arguments": "{bad"}],
        [{"type": "tool_call_response", "id": "1", "response": "ok"}],
    ]
    assert messages([]) is None
