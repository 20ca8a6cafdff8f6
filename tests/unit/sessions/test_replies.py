"""A recorded reply, as each kind of caller expects it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flakestorm.config.replays import ToolResponse
from flakestorm.core.call import Call, header
from flakestorm.errors import CallFailed
from flakestorm.sessions.replies import breaks, reply_of, text_of, told_of
from flakestorm.wire.values import error_of, value_of

HTTP = Call("POST", "http://tools.test/search", kind="tool", name="search")
FUNCTION = Call("CALL", "python://search", kind="tool", name="search")
ASKED = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "search", "arguments": {}}}
MCP = Call("POST", "http://tools.test/mcp", body=json.dumps(ASKED).encode(), kind="mcp", name="search", wire="mcp")


def response(value: Any = None, **more: Any) -> ToolResponse:
    return ToolResponse(tool="search", response=value, **more)


@pytest.mark.parametrize(
    ("value", "kind", "body"),
    [
        ({"a": 1}, "application/json", b'{"a":1}'),
        ('{"a": 1}', "application/json", b'{"a": 1}'),
        ("plain words", "text/plain; charset=utf-8", b"plain words"),
        (None, None, b""),
    ],
)
def test_http(value: Any, kind: str | None, body: bytes) -> None:
    reply = reply_of(HTTP, response(value))
    assert (reply.status, header(reply.headers, "content-type"), reply.body) == (200, kind, body)
    assert header(reply.headers, "content-length") == str(len(body))


def test_http_failures() -> None:
    reply = reply_of(HTTP, response(status=503))
    assert (reply.status, reply.reason, reply.body) == (503, "Service Unavailable", b'{"error":"Service Unavailable"}')
    assert reply_of(HTTP, response("no", status=599)).body == b"no"
    for words, how in (("timed out", "timeout"), ("Connection refused", "refused"), (None, "reset")):
        with pytest.raises(CallFailed) as failed:
            reply_of(HTTP, response(words, status=0))
        assert failed.value.how == how


@pytest.mark.parametrize("value", [{"a": [1]}, "words", '{"a": 1}', 7, None, [1]])
def test_a_functions_caller_gets_the_value(value: Any) -> None:
    reply = reply_of(FUNCTION, response(value))
    assert isinstance(reply.body, bytes)
    assert value_of(reply, reply.body) == value


def test_a_functions_failure_is_its_exception() -> None:
    reply = reply_of(FUNCTION, response({"error": "no such city", "type": "ValueError"}, status=500))
    assert isinstance(reply.body, bytes)
    error = error_of(reply, reply.body)
    assert (type(error), str(error)) == (ValueError, "no such city")


@pytest.mark.parametrize(
    ("value", "promised", "structured"),
    [
        ("words", None, {"result": "words"}),
        ({"a": 1}, None, {"a": 1}),
        ({"a": 1}, {"properties": {"a": {}}}, {"a": 1}),
        ('{"a": 1}', {"properties": {"a": {}}}, {"a": 1}),
        ("words", {"properties": {"result": {"type": "string"}}}, {"result": "words"}),
        ([1], {"properties": {"result": {"type": "array"}}}, {"result": [1]}),
        ("words", {"properties": {"a": {}}}, None),
    ],
)
def test_mcp_results_are_valid(value: Any, promised: Any, structured: Any) -> None:
    reply = reply_of(MCP, response(value), promised)
    assert isinstance(reply.body, bytes)
    said = json.loads(reply.body)
    assert (said["id"], said["result"]["isError"]) == (7, False)
    assert said["result"]["content"] == [{"type": "text", "text": text_of(response(value))}]
    assert said["result"].get("structuredContent") == structured


def test_mcp_results_as_recorded_and_failures() -> None:
    whole = {"content": [{"type": "image", "data": "", "mimeType": "image/png"}], "isError": False}
    assert json.loads(bytes(reply_of(MCP, response(whole)).body))["result"] == whole  # type: ignore[arg-type]
    failed = json.loads(bytes(reply_of(MCP, response("gone", status=0)).body))["result"]  # type: ignore[arg-type]
    assert (failed["isError"], failed["content"][0]["text"]) == (True, "gone")


def test_what_a_model_is_told_and_what_is_broken() -> None:
    assert (told_of(response("x")).text, told_of(response("x")).failed) == ("x", False)
    assert (told_of(response(status=503)).text, told_of(response(status=503)).failed) == (
        "503 Service Unavailable",
        True,
    )
    cases = (response("x"), response("x", status=0), response("x", fault="wrong_value"), response({"isError": True}))
    assert [breaks(each) for each in cases] == [False, True, True, True]
