import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import Call, header
from flakestorm.core.site import Site
from flakestorm.wire.anthropic.protocol import Anthropic
from flakestorm.wire.base import Failure, Said, ToolCall, ToolResult, Turn, Usage
from wire_support import hostile_json

WIRE = Anthropic()
BODY = b'{"model":"claude","messages":[]}'
URL = "https://api.anthropic.com/v1/messages"
VERTEX = "https://h.test/v1/projects/p/locations/eu/publishers/anthropic/models/claude%401"


def stream(*docs: dict[str, object]) -> bytes:
    return b"".join(b"event: %s\ndata: %s\n\n" % (str(doc["type"]).encode(), orjson.dumps(doc)) for doc in docs)


def start(**usage: int) -> dict[str, object]:
    return {"type": "message_start", "message": {"id": "m1", "model": "claude", "content": [], "usage": usage}}


def block(index: int, **block: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **delta: object) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


END: tuple[dict[str, object], ...] = (
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
)


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        (URL, BODY, "claude"),
        (URL + "?beta=true", BODY, "claude"),
        ("https://x.services.ai.azure.com/anthropic/v1/messages", BODY, "claude"),
        (URL, b'{"messages":[]}', ""),
        (URL, b'{"model":"claude"}', None),
        (URL, b"nothing", None),
        (URL + "/count_tokens", BODY, None),
        (URL + "/batches", BODY, None),
        ("https://api.openai.com/v1/threads/t/messages", BODY, None),
        (f"{VERTEX}:rawPredict", b'{"anthropic_version":"vertex-2023-10-16","messages":[]}', "claude@1"),
        (f"{VERTEX}:streamRawPredict", BODY, "claude@1"),
        (f"{VERTEX}:countTokens", BODY, None),
        (f"{VERTEX}:rawPredict", b'{"instances":[]}', None),
    ],
)
def test_which_calls_are_its_own(url: str, body: bytes, model: str | None) -> None:
    call = Call("POST", url, body=body)
    assert WIRE.model_of(call) == model
    assert WIRE.recognises(call) is (model is not None)
    assert WIRE.model_of(Call("GET", url, body=body)) is None


def test_a_request_is_read_in_turns() -> None:
    body = {
        "model": "claude",
        "stream": True,
        "system": [{"type": "text", "text": "be kind"}],
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "let me see"},
                    {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "found"}]}
                ],
            },
        ],
        "tools": [{"name": "search", "input_schema": {}}, {"type": "web_search_20250305", "name": "web_search"}],
    }
    asked = WIRE.asked(orjson.dumps(body))
    assert (asked.model, asked.stream, asked.tools) == ("claude", True, ("search", "web_search"))
    assert asked.turns == (
        Turn("system", "be kind"),
        Turn("user", "hi"),
        Turn("assistant", "let me see", (ToolCall("t1", "search", '{"q":1}'),)),
        Turn("user", "", (), (ToolResult("t1", "search", "found"),)),
    )


def test_a_whole_reply() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "a"},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "text", "text": "b"},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
    ]
    usage = {"input_tokens": 3, "output_tokens": 4}
    doc = {"type": "message", "model": "claude", "content": content, "stop_reason": "tool_use", "usage": usage}
    assert WIRE.said(orjson.dumps(doc), stream=False) == Said(
        "ab", (ToolCall("t1", "f", "{}"),), "tool_use", Usage(3, 4), "claude"
    )


def test_a_streamed_reply() -> None:
    body = stream(
        start(input_tokens=3, output_tokens=1),
        {"type": "ping"},
        block(0, type="thinking", thinking=""),
        delta(0, type="thinking_delta", thinking="hm"),
        block(1, type="text", text=""),
        delta(1, type="text_delta", text="a"),
        delta(1, type="text_delta", text="b"),
        block(2, type="server_tool_use", id="s1", name="web_search", input={}),
        delta(2, type="input_json_delta", partial_json='{"q":1}'),
        block(3, type="tool_use", id="t1", name="f", input={}),
        delta(3, type="input_json_delta", partial_json='{"x"'),
        delta(3, type="input_json_delta", partial_json=": 1}"),
        block(4, type="tool_use", id="t2", name="g", input={}),
        delta(4, type="input_json_delta", partial_json=""),
        *END,
    )
    calls = (ToolCall("t1", "f", '{"x": 1}'), ToolCall("t2", "g", "{}"))
    assert WIRE.said(body, stream=True) == Said("ab", calls, "tool_use", Usage(3, 9), "claude")


def test_the_input_counts_as_stated_first_and_the_output_as_stated_last() -> None:
    again = {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 99, "output_tokens": 8}}
    assert WIRE.said(stream(start(input_tokens=3, output_tokens=1), again), stream=True).usage == Usage(3, 8)
    assert WIRE.said(stream(start(), again), stream=True).usage == Usage(99, 8)
    assert WIRE.said(stream(start()), stream=True).usage is None


def test_a_stream_without_its_end_marker_is_not_complete() -> None:
    assert not WIRE.said(stream(start(), END[0]), stream=True).complete


@pytest.mark.parametrize("body", [b"", b'{"content":[{"type":"text","te', b"[]"])
def test_a_document_that_cannot_be_read_is_not_complete(body: bytes) -> None:
    assert WIRE.said(body, stream=False) == Said(complete=False)


@pytest.mark.parametrize(
    ("doc", "error"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded"),
        ({"type": "error", "error": {"type": "overloaded_error"}}, "overloaded_error"),
        ({"error": "no"}, "no"),
        ({"message": "no"}, "no"),
    ],
)
def test_an_error_is_read_whole_and_in_a_stream(doc: dict[str, object], error: str) -> None:
    for announced in (True, False):
        assert WIRE.said(orjson.dumps(doc), stream=announced).error == error
    said = WIRE.said(stream(start()) + b"event: error\ndata: " + orjson.dumps(doc) + b"\n\n", stream=True)
    assert (said.error, said.complete) == (error, False)


KEYS = [
    *("type", "message", "content", "index", "content_block", "delta", "text", "partial_json", "usage", "input_tokens"),
    *(
        "output_tokens",
        "stop_reason",
        "error",
        "model",
        "messages",
        "system",
        "tools",
        "name",
        "id",
        "input",
        "tool_use",
    ),
    *("content_block_start", "content_block_delta", "message_start", "message_delta", "tool_result", "text_delta"),
]


@given(hostile_json(KEYS))
def test_hostile_json_never_raises(value: object) -> None:
    data = orjson.dumps(value)
    for body in (data, b"data: " + data + b"\n\n", orjson.dumps({"content": [value], "messages": [value]})):
        WIRE.asked(body)
        for announced in (True, False):
            WIRE.said(body, stream=announced)
        WIRE.recognises(Call("POST", URL, body=body))


@given(st.binary())
def test_hostile_bytes_never_raise(body: bytes) -> None:
    WIRE.asked(body)
    for announced in (True, False):
        WIRE.said(body, stream=announced)


CALL = Call("POST", URL, body=BODY, site=Site("llm", "claude", 1))


@pytest.mark.parametrize(
    ("kind", "status", "type_"),
    [
        ("rate_limit", 429, "rate_limit_error"),
        ("overloaded", 529, "overloaded_error"),
        ("server_error", 500, "api_error"),
        ("timeout", 504, "timeout_error"),
    ],
)
def test_a_failure_is_the_provider_s_own(kind: str, status: int, type_: str) -> None:
    reply = WIRE.failure(Failure(kind, retry_after_ms=50), CALL)
    doc = orjson.loads(reply.body)
    assert (reply.status, doc["type"], doc["error"]["type"]) == (status, "error", type_)
    assert doc["error"]["message"]
    assert doc["request_id"] == header(reply.headers, "request-id")
    assert len(doc["request_id"]) == len("req_011CYEXr8tVywV7AFBGxgYh2")
    assert header(reply.headers, "retry-after-ms") == "50"
    assert header(reply.headers, "x-should-retry") == "true"
    assert (header(reply.headers, "anthropic-ratelimit-requests-remaining") == "0") is (kind == "rate_limit")


def test_status_and_message_are_the_caller_s_where_given() -> None:
    reply = WIRE.failure(Failure("server_error", 502, "down"), CALL)
    assert (reply.status, WIRE.said(reply.body, stream=True).error) == (502, "down")
    assert header(reply.headers, "retry-after") is None


def test_by_way_of_google_its_errors_are_google_s() -> None:
    reply = WIRE.failure(Failure("rate_limit"), Call("POST", f"{VERTEX}:rawPredict", body=BODY))
    assert isinstance(reply.body, bytes)
    assert (reply.status, orjson.loads(reply.body)["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
