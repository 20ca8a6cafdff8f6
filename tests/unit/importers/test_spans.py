"""Spans as the exchanges of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flakestorm.core.call import Reply
from flakestorm.errors import CallFailed
from flakestorm.importers.spans import Span, traced

ASKED = [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": "hello"}], "finish_reason": "stop"}]


def llm(n: int = 1, parent: str = "", **more: Any) -> Span:
    of = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt", "gen_ai.input.messages": ASKED}
    return Span(f"s{n}", parent, "chat gpt", n, {**of, "gen_ai.output.messages": SAID, **more})


def tool(n: int = 2, **more: Any) -> Span:
    return Span(f"s{n}", "", "execute_tool search", n, {"gen_ai.operation.name": "execute_tool", **more})


def body(reply: Reply | CallFailed) -> Any:
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, bytes)
    return json.loads(reply.body)


def test_a_model_call() -> None:
    used = {"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 4, "gen_ai.provider.name": "azure.ai"}
    run = traced("t", [llm(**used)])
    ((call, reply),) = run.crossings
    assert call.url == "https://azure-ai.invalid/v1/chat/completions"
    assert json.loads(call.body) == {"model": "gpt", "messages": [{"role": "user", "content": "hi"}]}
    said = body(reply)
    assert said["choices"][0]["finish_reason"] == "stop"
    assert said["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert (run.input, run.output, run.error) == ("hi", "hello", None)


def test_order_names_and_results_of_tools() -> None:
    spans = [
        tool(2, **{"gen_ai.tool.call.arguments": '{"a": 1}', "gen_ai.tool.call.result": "found"}),
        tool(3, **{"gen_ai.tool.name": "book", "gen_ai.tool.call.result": {"ok": True}}),
        llm(1),
    ]
    _, (call, reply), (other, value) = traced("t", spans).crossings
    assert (call.name, json.loads(call.body), other.name, body(value)) == ("search", {"a": 1}, "book", {"ok": True})
    assert isinstance(reply, Reply)
    assert reply.body == b"found"


def test_what_is_missing_is_not_made_up() -> None:
    bare = llm(2)
    bare.attributes = {k: v for k, v in bare.attributes.items() if "output" not in k}
    failed = tool(3)
    failed.error = "no such city"
    _, (_, unknown), (_, broken), (_, silent) = traced("t", [llm(1), bare, failed, tool(4)]).crossings
    assert isinstance(unknown, CallFailed)
    assert "holds no reply" in unknown.detail
    assert isinstance(broken, Reply)
    assert (broken.status, body(broken)) == (500, {"error": "no such city"})
    assert isinstance(silent, CallFailed)


def test_the_end_of_a_reply_is_no_reply() -> None:
    of = {"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.input_messages.0.message.role": "user",
          "llm.input_messages.0.message.content": "hi"}  # fmt: skip
    pieces = {
        f"llm.output_messages.{n}.message.{k}": v for n in (7, 8) for k, v in (("role", "assistant"), ("content", "x"))
    }
    ((_, cut),) = traced("t", [Span("a", "", "llm", 1, {**of, **pieces})]).crossings
    assert isinstance(cut, CallFailed)
    whole = {name.replace("messages.7", "messages.0"): value for name, value in pieces.items()}
    ((_, reply),) = traced("t", [Span("a", "", "llm", 1, {**of, **whole})]).crossings
    assert body(reply)["choices"][0]["message"]["content"] == "xx"


def test_a_second_instrumentation_of_the_same_call_is_left_out() -> None:
    assert len(traced("t", [llm(1), llm(2, parent="s1")]).crossings) == 1


def test_steps_of_one_call_are_one_call() -> None:
    start = Span("a", "", "backend.chat.start-14", 1, llm().attributes, output=None)
    start.attributes = {k: v for k, v in start.attributes.items() if "output" not in k}
    end = Span("b", "", "backend.chat.success-15", 2, {**llm().attributes})
    ((_, reply),) = traced("t", [start, end]).crossings
    assert body(reply)["choices"][0]["message"]["content"] == "hello"


@pytest.mark.parametrize("old", [True, False])
def test_events(old: bool) -> None:
    span = Span("a", "", "chat", 1, {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    span.events = [
        ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([{"role": "user", "content": "hi"}])}),
        ("gen_ai.content.completion", {"gen_ai.completion": json.dumps([{"role": "assistant", "content": "hello"}])}),
    ] if old else [
        ("gen_ai.user.message", {"content": "hi"}),
        ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"content": "hello"}}),
    ]  # fmt: skip
    run = traced("t", [span])
    assert (run.input, run.output) == ("hi", "hello")


def test_refusals_say_what_was_expected() -> None:
    with pytest.raises(ValueError, match=r"no span in it is a model's or a tool's call.*'HTTP GET'"):
        traced("t", [Span("a", "", "HTTP GET", 1)])
    bare = Span("a", "", "chat gpt", 1, {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    with pytest.raises(ValueError, match=r"'chat gpt' holds no messages.*CAPTURE_MESSAGE_CONTENT"):
        traced("t", [bare])


def test_the_input_is_the_traces_where_it_says_so() -> None:
    assert traced("t", [llm()], input='{"question": "why?"}').input == "why?"
    assert traced("t", [llm()], input={"args": ["programming"], "kwargs": {}}).input == "programming"
    assert traced("t", [llm()], input={"a": {"deep": 1}}).input == "hi"


def test_messages_as_one_attribute() -> None:
    of = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.prompt": json.dumps(ASKED)}
    run = traced("t", [Span("a", "", "chat", 1, {**of, "gen_ai.completion": json.dumps(SAID)})])
    assert (run.input, run.output) == ("hi", "hello")


def test_the_ai_sdks_spans() -> None:
    asked = json.dumps([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])
    calls = json.dumps([{"toolCallId": "c", "toolName": "search", "args": '{"q":1}'}])
    model = {"ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "m", "ai.prompt.messages": asked,
             "ai.response.toolCalls": calls, "ai.response.finishReason": "tool-calls"}  # fmt: skip
    used = {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "search",
        "ai.toolCall.args": '{"q":1}',
        "ai.toolCall.result": '"x"',
    }
    (_, reply), (tool, said) = traced("t", [Span("a", "", "x", 1, model), Span("b", "", "y", 2, used)]).crossings
    (call,) = body(reply)["choices"][0]["message"]["tool_calls"]
    assert (call["id"], call["function"]) == ("c", {"name": "search", "arguments": '{"q":1}'})
    assert body(reply)["choices"][0]["finish_reason"] == "tool-calls"
    assert tool.name == "search"
    assert isinstance(said, Reply)
    assert said.body == b"x"


def test_google_s_agent_kit_keeps_requests_and_replies_in_attributes_of_its_own() -> None:
    request = {
        "model": "gemini",
        "config": {"system_instruction": "Greet.", "tools": [{"function_declarations": [{"name": "say_hello"}]}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }
    answer = {"content": {"role": "model", "parts": [{"function_call": {"name": "say_hello", "args": {}}}]}}
    model = {
        "gen_ai.request.model": "gemini",
        "gcp.vertex.agent.llm_request": json.dumps(request),
        "gcp.vertex.agent.llm_response": json.dumps({**answer, "finish_reason": "STOP"}),
    }
    own = {"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": '{"greeting": "Hello"}'}
    run = traced("t", [Span("a", "", "call_llm", 1, model), tool(2, **{"gen_ai.tool.name": "say_hello", **own})])
    (call, reply), (used, said) = run.crossings
    asked = json.loads(call.body)
    assert [message["content"] for message in asked["messages"]] == ["Greet.", "hi"]
    assert [each["function"]["name"] for each in asked["tools"]] == ["say_hello"]
    assert body(reply)["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "say_hello"
    assert (used.name, json.loads(used.body), body(said)) == ("say_hello", {}, {"greeting": "Hello"})


def test_mlflow_s_spans() -> None:
    answer = {
        "model": "gpt-2024",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ho"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
    model = {
        "mlflow.spanType": '"CHAT_MODEL"',
        "mlflow.spanInputs": json.dumps({"model": "gpt", "messages": [{"role": "user", "content": "hi"}]}),
        "mlflow.spanOutputs": json.dumps(answer),
    }
    find = {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"q": "x"}', "mlflow.spanOutputs": '"sun"'}
    spans = [Span("a", "", "Completions", 1, model), Span("b", "", "find", 2, find)]
    (call, reply), (used, said) = traced("t", spans).crossings
    assert json.loads(call.body)["model"] == "gpt"
    assert (body(reply)["model"], body(reply)["usage"]["total_tokens"]) == ("gpt-2024", 3)
    assert (used.kind, used.name, json.loads(used.body)) == ("tool", "find", {"q": "x"})
    assert isinstance(said, Reply)
    assert said.body == b"sun"


def test_tools_on_offer_in_every_spelling() -> None:
    schema = {"type": "object"}
    for offer in (
        {"gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "f", "parameters": schema}])},
        {"llm.request.functions.0.name": "f", "llm.request.functions.0.parameters": json.dumps(schema)},
        {"llm.tools.0.tool.json_schema": json.dumps({"function": {"name": "f", "parameters": schema}})},
        {"ai.prompt.tools": [json.dumps({"type": "function", "name": "f", "inputSchema": schema})]},
    ):
        [(call, _)] = traced("t", [llm(**offer)]).crossings
        assert json.loads(call.body)["tools"] == [{"type": "function", "function": {"name": "f", "parameters": schema}}]
