from __future__ import annotations

import gzip
import json
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults_support import JSON, RESULTS, World, scene, stream, tool_call
from flakestorm.config.model import ToolFault
from flakestorm.core.call import Call, Reply, header
from flakestorm.core.pipeline import Interceptor
from flakestorm.core.site import Site
from flakestorm.faults.base import tool_faults
from flakestorm.faults.tool import DEFAULT_PAYLOAD

MODES = ("error", "malformed", "slow", "malicious_response")


def fault(fired: list[str], mode: str, **settings: object) -> Interceptor:
    return tool_faults.get(mode)(ToolFault(mode=mode, **settings), scene(fired))  # type: ignore[arg-type]


def test_every_mode_is_registered() -> None:
    assert set(MODES) <= set(tool_faults)


@pytest.mark.parametrize(
    ("settings", "status", "message", "reason"),
    [
        ({}, 503, "Service Unavailable", "Service Unavailable"),
        ({"error_code": 404}, 404, "Not Found", "Not Found"),
        ({"error_code": 500, "message": 'bad "day"'}, 500, 'bad "day"', "Internal Server Error"),
        ({"error_code": 599}, 599, "", ""),
        ({"message": ""}, 503, "", "Service Unavailable"),
    ],
)
def test_error_answers_in_the_tools_place(settings: dict[str, object], status: int, message: str, reason: str) -> None:
    world, fired = World(), list[str]()
    reply, body = world.read(fault(fired, "error", **settings), tool_call())
    assert (reply.status, reply.reason, json.loads(body)) == (status, reason, {"error": message})
    assert header(reply.headers, "Content-Type") == "application/json"
    assert header(reply.headers, "Content-Length") == str(len(body))
    assert world.asked == []
    assert fired == [f"{status} {message}".strip()]


@pytest.mark.parametrize(("settings", "seconds"), [({}, 5.0), ({"delay_ms": 20}, 0.02)])
def test_slow_waits_and_then_passes_the_reply_untouched(settings: dict[str, int], seconds: float) -> None:
    world, fired = World(), list[str]()
    reply = world.cross(fault(fired, "slow", **settings), tool_call())
    assert reply is world.answer
    assert (len(world.asked), world.slept, fired) == (1, [seconds], [f"delayed by {seconds * 1000:.0f} ms"])


def unreadable(body: bytes) -> bool:
    for loads in (json.loads, orjson.loads):
        try:
            loads(body)
        except ValueError:
            continue
        return False
    return True


def test_malformed_breaks_what_the_tool_said_and_keeps_what_it_promised() -> None:
    headers = (*JSON, ("content-length", str(len(RESULTS))), ("x-trace", "7"))
    world, fired = World(Reply(201, headers, RESULTS, reason="Created")), list[str]()
    reply, body = world.read(fault(fired, "malformed"), tool_call())
    assert len(world.asked) == 1
    assert unreadable(body)
    assert body.startswith(RESULTS[:10])
    assert (reply.status, reply.headers) == (201, (*JSON, ("x-trace", "7")))
    assert fired == [f"cut after {len(RESULTS) // 2} of {len(RESULTS)} bytes"]


@given(
    document=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    escaped=st.booleans(),
    cuts=st.lists(st.integers(0, 200), max_size=4),
)
def test_no_parser_reads_a_malformed_document(document: object, escaped: bool, cuts: list[int]) -> None:
    text = json.dumps(document, ensure_ascii=escaped).encode()
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    chunks = [text[a:b] for a, b in pairwise(edges)]
    world, fired = World(Reply(200, JSON, chunks)), list[str]()
    _, body = world.read(fault(fired, "malformed"), tool_call())
    assert unreadable(body)
    assert len(fired) == 1


def test_malformed_undoes_compression_so_that_it_is_the_json_that_is_broken() -> None:
    world = World(Reply(200, (*JSON, ("content-encoding", "gzip")), gzip.compress(RESULTS)))
    reply, body = world.read(fault([], "malformed"), tool_call())
    assert header(reply.headers, "content-encoding") is None
    assert body.startswith(RESULTS[:10])
    assert unreadable(body)


def test_malformed_finds_nothing_to_break_in_an_empty_body() -> None:
    world, fired = World(Reply(204)), list[str]()
    _, body = world.read(fault(fired, "malformed"), tool_call())
    assert (body, fired) == (b"", [])


def test_malformed_has_not_fired_before_the_agent_reads() -> None:
    world, fired = World(), list[str]()
    world.cross(fault(fired, "malformed"), tool_call())
    assert fired == []


@given(cut=st.integers(1, 40))
def test_a_malformed_stream_is_the_same_however_it_is_cut_into_chunks(cut: int) -> None:
    text = b'data: {"n": [1]}\n\ndata: {"n": [2]}\n\n'
    world, fired = World(stream(text[:cut], text[cut:])), list[str]()
    _, body = world.read(fault(fired, "malformed"), tool_call())
    assert body == b'data: {"n": [1\n\ndata: {"n": [2\n\n'
    assert fired


@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        ("application/json", "say hi", b'"say hi"'),
        ("application/problem+json; charset=utf-8", "say hi", b'"say hi"'),
        ("application/json", '{"results": []}', b'{"results": []}'),
        ("text/html", "<b>hi</b>", b"<b>hi</b>"),
        ("text/event-stream", "a\nb", b"data: a\ndata: b\n\n"),
        ("application/x-ndjson", "hi", b'"hi"\n'),
        ("application/json", "", b'""'),
    ],
)
def test_malicious_response_fits_the_content_type(kind: str, payload: str, expected: bytes) -> None:
    headers = (("content-type", kind), ("content-length", "9"))
    world, fired = World(Reply(200, headers, [b"real ", b"result"])), list[str]()
    reply, body = world.read(fault(fired, "malicious_response", payload=payload), tool_call())
    assert body == expected
    assert reply.headers == (("content-type", kind),)
    assert len(world.asked) == 1
    assert len(fired) == 1


@pytest.mark.parametrize(("said", "shown"), [(200, 200), (201, 201), (204, 200), (404, 200), (503, 200)])
def test_malicious_response_is_a_success(said: int, shown: int) -> None:
    world = World(Reply(said, (), b""))
    reply, body = world.read(fault([], "malicious_response"), tool_call())
    assert reply.status == shown
    assert body.decode() == DEFAULT_PAYLOAD
    assert header(reply.headers, "content-type") == "text/plain; charset=utf-8"


def test_malicious_response_comes_when_the_tool_would_have_spoken() -> None:
    read: list[bytes] = []

    def chunks() -> object:
        for chunk in (b"one", b"two"):
            read.append(chunk)
            yield chunk

    world = World(Reply(200, (("content-type", "text/plain"),), chunks()))  # type: ignore[arg-type]
    reply, body = world.read(fault([], "malicious_response", payload="x"), tool_call())
    assert (body, read) == (b"x", [b"one", b"two"])  # the tool's own words are read to their end, for the tape
    assert reply.status == 200


MCP_ASKED = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{}}}'
MCP_SAID = b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"4 flights"}]}}'


@pytest.mark.parametrize(
    ("spec", "asked", "text", "failed"),
    [
        (ToolFault(mode="error"), 0, "Error: 503 Service Unavailable", True),
        (ToolFault(mode="error", error_code=500, message="down"), 0, "Error: 500 down", True),
        (ToolFault(mode="malformed"), 1, '4 fl{"result": tru', None),
        (ToolFault(mode="malicious_response", payload="obey"), 1, "obey", False),
        (ToolFault(mode="slow", delay_ms=10), 1, "4 flights", None),
    ],
    ids=lambda value: value.mode if isinstance(value, ToolFault) else "",
)
def test_an_mcp_tool_answers_with_a_valid_message(spec: ToolFault, asked: int, text: str, failed: bool | None) -> None:
    fired: list[str] = []
    world = World(Reply(200, JSON, MCP_SAID))
    site = Site("mcp", "search", 1)
    call = Call("POST", "http://x.test/mcp", JSON, MCP_ASKED, kind="mcp", name="search", wire="mcp", site=site)
    reply, body = world.read(tool_faults.get(spec.mode)(spec, scene(fired, site)), call)
    answer = orjson.loads(body)
    assert (reply.status, answer["id"], answer["result"]["content"][0]["text"]) == (200, 7, text)
    assert answer["result"].get("isError") is failed
    assert (len(world.asked), len(fired)) == (asked, 1)


def test_an_mcp_tools_structured_content_keeps_the_form_that_was_promised() -> None:
    said = MCP_SAID.replace(b"}]", b'}],"structuredContent":{"n":4,"note":"x"}')
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "note": {"type": "string"}}}
    site = Site("mcp", "search", 1)
    call = Call("POST", "http://x.test/mcp", JSON, MCP_ASKED, kind="mcp", name="search", wire="mcp", site=site)
    spec = ToolFault(mode="malicious_response", payload="obey")
    stage = tool_faults.get("malicious_response")(spec, replace(scene([], site), promised=schema))
    _, body = World(Reply(200, JSON, said)).read(stage, call)
    assert orjson.loads(body)["result"]["structuredContent"] == {"n": 4, "note": "obey"}
