import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import Call, header
from flakestorm.core.site import Site
from flakestorm.wire.base import Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.openai_chat.protocol import OpenAIChat
from wire_support import hostile_json

WIRE = OpenAIChat()
BODY = b'{"model":"gpt-4o","messages":[]}'


def whole(message: object, **more: object) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return orjson.dumps({"id": "c", "model": "m", "choices": [choice], **more})


def stream(*chunks: object, done: bool = True) -> bytes:
    lines = b"".join(b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks)
    return lines + (b"data: [DONE]\n\n" if done else b"")


def delta(delta: object, finish: str | None = None, index: int = 0) -> dict[str, object]:
    return {"model": "m", "choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        ("https://api.openai.com/v1/chat/completions", BODY, "gpt-4o"),
        ("https://api.groq.com/openai/v1/chat/completions", BODY, "gpt-4o"),
        ("https://api.deepseek.com/chat/completions/", BODY, "gpt-4o"),
        ("http://127.0.0.1:9/v1/chat/completions?x=/y", BODY, "gpt-4o"),
        ("https://r.test/openai/deployments/my%20gpt/chat/completions?api-version=1", b'{"messages":[]}', "my gpt"),
        ("https://r.test/openai/deployments/my/chat/completions", BODY, "gpt-4o"),
        ("http://127.0.0.1:9/v1/chat/completions", b'{"messages":[]}', ""),
        ("https://api.openai.com/v1/chat/completions", b"", None),
        ("https://api.openai.com/v1/chat/completions", b"[]", None),
        ("https://api.openai.com/v1/chat/completions", b'{"model":"m"}', None),
        ("https://api.openai.com/v1/chat/completions/abc/messages", BODY, None),
        ("https://api.openai.com/v1/completions", BODY, None),
        ("https://a.test/?next=/chat/completions", BODY, None),
    ],
)
def test_which_calls_are_its_own(url: str, body: bytes, model: str | None) -> None:
    call = Call("POST", url, body=body)
    assert WIRE.model_of(call) == model
    assert WIRE.recognises(call) is (model is not None)
    assert WIRE.model_of(Call("GET", url, body=body)) is None


def test_a_request_is_read_in_turns() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q":1}'}}
    body = {
        "model": "m",
        "stream": True,
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {}}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
            {"role": "function", "name": "old", "content": "42"},
        ],
        "tools": [{"type": "function", "function": {"name": "search"}}, {"type": "custom", "custom": {"name": "sql"}}],
        "functions": [{"name": "old"}],
    }
    asked = WIRE.asked(orjson.dumps(body))
    assert (asked.model, asked.stream, asked.tools) == ("m", True, ("search", "sql", "old"))
    assert asked.turns == (
        Turn("system", "be kind"),
        Turn("user", "hi"),
        Turn("assistant", "", (ToolCall("c1", "search", '{"q":1}'),)),
        Turn("tool", "", (), (ToolResult("c1", "search", "found"),)),
        Turn("function", "", (), (ToolResult("", "old", "42"),)),
    )


def test_a_whole_reply() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = whole({"content": "hi", "tool_calls": [call]}, usage={"prompt_tokens": 3, "completion_tokens": 4})
    assert WIRE.said(body, stream=False) == Said("hi", (ToolCall("c1", "f", "{}"),), "stop", Usage(3, 4), "m")


def test_a_streamed_reply() -> None:
    first = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": ""}}
    body = stream(
        delta({"role": "assistant", "content": "h"}),
        delta({"content": "i"}),
        delta({"content": "other"}, index=1),
        delta({"tool_calls": [first]}),
        delta({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}),
        delta({}, "tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    )
    assert WIRE.said(body, stream=True) == Said("hi", (ToolCall("c1", "f", "{}"),), "tool_calls", Usage(3, 4), "m")


def test_the_usage_stated_last_counts() -> None:
    body = stream(
        {"usage": {"prompt_tokens": 3, "completion_tokens": 1}}, {"usage": None}, {"usage": {"prompt_tokens": 9}}
    )
    assert WIRE.said(body, stream=True).usage == Usage(9, None)


def test_groq_states_usage_under_a_name_of_its_own() -> None:
    own = {"x_groq": {"id": "req_1", "usage": {"prompt_tokens": 100, "completion_tokens": 20}}}
    assert WIRE.said(stream(delta({"content": "hi"}), own), stream=True).usage == Usage(100, 20)
    both = {**own, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    assert WIRE.said(stream(both), stream=True).usage == Usage(3, 4)
    assert WIRE.said(stream({"x_groq": {"id": "req_1"}}), stream=True).usage is None


@pytest.mark.parametrize("body", [stream(delta({"content": "hi"}), done=False), b'data: {"choi'])
def test_a_stream_without_its_end_marker_is_not_complete(body: bytes) -> None:
    assert not WIRE.said(body, stream=True).complete


@pytest.mark.parametrize("body", [b"", b'{"choices":[{"message":{"content":"h', b"<html>", b"[]"])
def test_a_document_that_cannot_be_read_is_not_complete(body: bytes) -> None:
    assert WIRE.said(body, stream=False) == Said(complete=False)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"error": {"message": "no", "type": "t"}}, "no"),
        ({"error": {"type": "t"}}, "t"),
        ({"error": {"a": 1}}, '{"a":1}'),
        ({"error": "no"}, "no"),
        ({"object": "error", "message": "no"}, "no"),
        ({"detail": "no"}, "no"),
        ({"error": None, "choices": []}, None),
    ],
)
@pytest.mark.parametrize("announced", [True, False])
def test_an_error_is_read_even_where_a_stream_was_asked_for(body: object, error: str | None, announced: bool) -> None:
    assert WIRE.said(orjson.dumps(body), stream=announced).error == error


def test_an_error_in_the_middle_of_a_stream() -> None:
    said = WIRE.said(stream(delta({"content": "hi"}), {"error": {"message": "broken"}}, done=False), stream=True)
    assert (said.text, said.error, said.complete) == ("hi", "broken", False)


KEYS = [
    *("choices", "message", "delta", "content", "tool_calls", "function", "function_call", "custom", "name"),
    *(
        "arguments",
        "index",
        "id",
        "usage",
        "error",
        "finish_reason",
        "model",
        "messages",
        "tools",
        "role",
        "type",
        "text",
    ),
]
HOSTILE = hostile_json(KEYS)


@given(HOSTILE)
def test_hostile_json_never_raises(value: object) -> None:
    data = orjson.dumps(value)
    for body in (data, b"data: " + data + b"\n\n", orjson.dumps({"choices": [value], "messages": [value]})):
        WIRE.asked(body)
        for announced in (True, False):
            WIRE.said(body, stream=announced)
        WIRE.recognises(Call("POST", "https://a.test/chat/completions", body=body))


@given(st.binary())
def test_hostile_bytes_never_raise(body: bytes) -> None:
    WIRE.asked(body)
    for announced in (True, False):
        WIRE.said(body, stream=announced)


CALL = Call("POST", "https://api.openai.com/v1/chat/completions", body=BODY, site=Site("llm", "gpt-4o", 1))


@pytest.mark.parametrize(
    ("kind", "status", "type_", "code"),
    [
        ("rate_limit", 429, "requests", "rate_limit_exceeded"),
        ("overloaded", 503, "service_unavailable_error", "server_is_overloaded"),
        ("server_error", 500, "server_error", None),
        ("timeout", 504, "cf_gateway_timeout", 504),
    ],
)
def test_a_failure_is_the_provider_s_own(kind: str, status: int, type_: str, code: object) -> None:
    reply = WIRE.failure(Failure(kind), CALL)
    error = orjson.loads(reply.body)["error"]
    assert (reply.status, error["type"], error["code"], error["param"]) == (status, type_, code, None)
    assert error["message"]
    assert (header(reply.headers, "x-request-id") or "").startswith("req_")
    assert header(reply.headers, "retry-after") is None
    assert (header(reply.headers, "x-ratelimit-remaining-requests") == "0") is (kind == "rate_limit")


@pytest.mark.parametrize(
    ("wait_ms", "said"), [(50, "50ms"), (1500, "1.5s"), (20_000, "20s"), (60_000, "1m0s"), (61_001, "1m1.001s")]
)
def test_a_rate_limit_says_how_long_to_wait_wherever_the_provider_says_it(wait_ms: int, said: str) -> None:
    reply = WIRE.failure(Failure("rate_limit", retry_after_ms=wait_ms), CALL)
    assert header(reply.headers, "retry-after-ms") == str(wait_ms)
    assert header(reply.headers, "x-ratelimit-reset-requests") == said
    assert (
        f"reached for gpt-4o on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in {said}."
        in (WIRE.said(reply.body, stream=False).error or "")
    )


def test_status_and_message_are_the_caller_s_where_given() -> None:
    reply = WIRE.failure(Failure("server_error", 502, "{braces} stay"), CALL)
    assert (reply.status, WIRE.said(reply.body, stream=True).error) == (502, "{braces} stay")
