from __future__ import annotations

import json

import pytest

from faults_support import tool_call
from flakestorm.config.model import ToolFault
from flakestorm.core.call import Call, header
from flakestorm.faults.answers import failure, failure_words, phrase


@pytest.mark.parametrize(
    ("settings", "status", "message"),
    [
        ({}, 503, "Service Unavailable"),
        ({"error_code": 404}, 404, "Not Found"),
        ({"error_code": 599}, 599, ""),
        ({"message": "back soon"}, 503, "back soon"),
        ({"message": ""}, 503, ""),
    ],
)
def test_a_failure_is_an_http_error_in_json(settings: dict[str, object], status: int, message: str) -> None:
    spec = ToolFault(mode="error", **settings)  # type: ignore[arg-type]
    reply = failure(spec, tool_call())
    assert isinstance(reply.body, bytes)
    assert (reply.status, json.loads(reply.body)) == (status, {"error": message})
    assert header(reply.headers, "content-length") == str(len(reply.body))
    assert failure_words(spec) == f"{status} {message}".strip()


def test_an_mcp_tool_fails_within_its_protocol() -> None:
    asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}'
    reply = failure(ToolFault(mode="error"), Call("POST", "http://x.test", body=asked, wire="mcp"))
    assert isinstance(reply.body, bytes)
    assert json.loads(reply.body)["result"]["content"][0]["text"] == "Error: 503 Service Unavailable"


def test_phrases() -> None:
    assert (phrase(503), phrase(599)) == ("Service Unavailable", "")
