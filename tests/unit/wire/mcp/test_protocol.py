import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import Call
from flakestorm.wire.base import Edit, Failure
from flakestorm.wire.mcp.protocol import Mcp, identify, key_of, messages, name_of, read, works
from flakestorm.wire.protocols import wire_of

STREAMABLE = (("Accept", "application/json, text/event-stream"),)


def body(method: str, params: Any = None, *, key: Any = 1) -> bytes:
    document = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
    return json.dumps(document if key is None else document | {"id": key}).encode()


def post(data: bytes, *headers: tuple[str, str], url: str = "http://x.test/mcp") -> Call:
    return Call("POST", url, headers, data)


@pytest.mark.parametrize(
    ("data", "kind", "method", "key"),
    [
        (body("ping"), "request", "ping", "1"),
        (body("ping", key="1"), "request", "ping", '"1"'),
        (body("notifications/initialized", key=None), "notification", "notifications/initialized", ""),
        (b'{"jsonrpc": "2.0", "id": 7, "result": {}}', "answer", "", "7"),
        (b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1}}', "answer", "", ""),
    ],
)
def test_a_message_is_a_request_a_notification_or_an_answer(data: bytes, kind: str, method: str, key: str) -> None:
    message = read(data)
    assert message is not None
    assert (message.kind, message.method, message.key) == (kind, method, key)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"no json", b"{}", b'{"jsonrpc": "1.0", "method": "x"}', b'{"jsonrpc":"2.0"}']
)
def test_anything_else_is_no_message(data: bytes) -> None:
    assert read(data) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_nothing_a_stranger_sends_breaks_the_reader(value: Any) -> None:
    for document in (value, {"jsonrpc": "2.0", "id": value, "method": value, "params": value, "result": value}):
        data = json.dumps(document).encode()
        message = read(data)
        assert message is None or isinstance(name_of(message), str)
        identify(post(data, *STREAMABLE))
        works(post(data))
        Mcp().said(data, stream=False)


def test_ids_of_different_types_differ() -> None:
    assert len({key_of(1), key_of("1"), key_of(1.5)}) == 3
    assert key_of(True) == key_of(None) == key_of([1]) == ""


def test_a_call_is_named_for_its_tool_and_else_for_its_method() -> None:
    def name(data: bytes) -> str:
        message = read(data)
        assert message is not None
        return name_of(message)

    assert name(body("tools/call", {"name": "search"})) == "search"
    assert name(body("tools/call", {})) == "tools/call"
    assert name(body("resources/read", {"uri": "x://y"})) == "resources/read"
    assert name(b'{"jsonrpc": "2.0", "id": 1, "result": {}}') == "response"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (post(body("tools/call", {"name": "search"}), *STREAMABLE), ("search", "mcp")),
        (post(body("server/discover"), *STREAMABLE), ("server/discover", "mcp")),
        (post(body("tasks/get"), ("MCP-Protocol-Version", "2025-11-25"), *STREAMABLE), ("tasks/get", "mcp")),
        (post(b'{"jsonrpc":"2.0","id":1,"result":{}}', ("mcp-session-id", "s")), ("response", "mcp")),
        (Call("GET", "http://x.test/mcp", (("Mcp-Session-Id", "s"),)), ("GET", "")),
        (Call("DELETE", "http://x.test/mcp", (("Mcp-Session-Id", "s"),)), ("DELETE", "")),
        (post(b"[" + body("tools/list") + b"]", *STREAMABLE), ("batch", "")),
        # HTTP+SSE: the reply to the POST says nothing
        (post(body("tools/call", {"name": "search"}), url="http://x.test/messages?session_id=1"), ("search", "")),
        (post(b'{"jsonrpc":"2.0","id":1,"result":{}}', url="http://x.test/messages?sessionId=1"), ("response", "")),
    ],
)
def test_http_calls_of_the_protocol_are_known(call: Call, expected: tuple[str, str]) -> None:
    assert identify(call) == expected
    assert Mcp().recognises(call)


@pytest.mark.parametrize(
    "call",
    [
        post(body("eth_blockNumber")),  # JSON-RPC of others
        post(body("message/send"), *STREAMABLE),
        post(body("tasks/get"), *STREAMABLE),
        post(b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        post(b"[]", *STREAMABLE),
        post(b'{"messages": []}', *STREAMABLE),
        Call("GET", "http://x.test/mcp", (("Accept", "text/event-stream"),)),
        Call("PUT", "http://x.test/mcp", (("mcp-session-id", "s"),), body("ping")),
    ],
)
def test_calls_of_other_protocols_are_not(call: Call) -> None:
    assert identify(call) is None


@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get"])
def test_work_is_what_a_server_does_for_the_agent(method: str) -> None:
    assert works(post(body(method)))


@pytest.mark.parametrize("method", ["initialize", "server/discover", "tools/list", "ping", "notifications/progress"])
def test_housekeeping_is_not(method: str) -> None:
    assert not works(post(body(method)))
    assert not works(Call("GET", "http://x.test/mcp", kind="mcp", name="GET"))


RESULT = {
    "jsonrpc": "2.0",
    "id": 1,
    "result": {"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]},
}
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps(RESULT).encode(),
        json.dumps(RESULT, indent=1).encode(),
        f"event: message\r\ndata: {json.dumps(PROGRESS)}\r\n\r\ndata: {json.dumps(RESULT)}\r\n\r\n".encode(),
        f"{json.dumps(PROGRESS)}\n{json.dumps(RESULT)}\n".encode(),
    ],
    ids=["document", "pretty", "events", "lines"],
)
def test_a_reply_says_the_text_of_its_result(reply: bytes) -> None:
    assert list(messages(reply))[-1] == RESULT
    said = Mcp().said(reply, stream=False)
    assert (said.text, said.error, said.complete) == ("a\nb", None, True)


def test_the_text_of_an_embedded_resource_is_text_of_the_result() -> None:
    blocks = [{"type": "text", "text": "See:"}, {"type": "resource", "resource": {"uri": "file:///a", "text": "sun"}}]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": blocks}}).encode()
    assert Mcp().said(body, stream=False).text == "See:\nsun"


def test_a_result_that_is_not_made_of_text_is_said_as_it_is() -> None:
    wire = Mcp()
    assert wire.said(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}', stream=False).text == '{"tools":[]}'
    assert wire.said(b'{"jsonrpc":"2.0","id":1,"result":{"contents":[{"text":"n"}]}}', stream=False).text == "n"
    prompt = b'{"jsonrpc":"2.0","id":1,"result":{"messages":[{"content":{"type":"text","text":"p"}}]}}'
    assert wire.said(prompt, stream=False).text == "p"


def test_errors_of_the_server_and_of_its_tools_are_said() -> None:
    wire = Mcp()
    assert wire.said(b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}', stream=False).error == "no"
    failed = b'{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"text","text":"down"}]}}'
    assert wire.said(failed, stream=False).error == "down"


def test_a_reply_without_an_answer_is_incomplete() -> None:
    assert not Mcp().said(json.dumps(PROGRESS).encode(), stream=True).complete
    assert Mcp().said(b"", stream=False).complete  # a notification was accepted


def test_it_is_a_wire_that_knows_no_model() -> None:
    wire = wire_of("mcp")
    assert isinstance(wire, Mcp)
    call = post(body("resources/read", key="a"), *STREAMABLE)
    assert wire.model_of(call) is None
    assert wire.asked(call.body).model == ""
    reply = wire.failure(Failure("server_error"), call)
    assert json.loads(bytes(reply.body))["id"] == "a"  # type: ignore[arg-type]
    assert wire.edit(reply, Edit(max_tokens=1)) is reply
