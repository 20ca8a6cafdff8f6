from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import jsonschema
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults_support import JSON, RESULTS, World, scene, stream, tool_call
from flakestorm.config.model import ToolFault
from flakestorm.core.call import Call, Reply, header
from flakestorm.core.choices import Choices
from flakestorm.core.site import Site
from flakestorm.faults.base import Change, Scene, result_faults, tool_faults
from flakestorm.faults.lying import drop_fields, empty, wrong_value
from flakestorm.wire.results import Told

MODES = ("wrong_value", "drop_fields", "empty")
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8) | st.sampled_from(["HAT17", "Oslo"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


def heard(mode: str, answer: Reply, *, seed: int = 1, call: Call | None = None, **more: Any) -> tuple[Any, ...]:
    """Reply, body, what fired, and why it did not."""
    fired, idle = list[str](), list[str]()
    at = replace(scene(fired, seed=seed), idle=idle.append, **more)
    world = World(answer)
    reply, body = world.read(tool_faults.get(mode)(ToolFault(mode=mode), at), call or tool_call())
    assert len(world.asked) == 1, "the tool runs"
    return reply, body, fired, idle


def test_the_modes_are_registered_and_take_no_argument() -> None:
    assert [tool_faults.get(mode) for mode in MODES] == [wrong_value, drop_fields, empty]


def test_a_false_value_is_written_down_and_all_else_stays_as_it_was() -> None:
    text = b'{ "results": [ {"flight": "Br\\u00e5 12",\n "price": 120.50} ] }'
    seen = set()
    for seed in range(60):
        reply, body, (words,), _ = heard("wrong_value", Reply(200, (*JSON, ("content-length", "9")), text), seed=seed)
        assert header(reply.headers, "content-length") is None
        old, new = words.rsplit(" ", 3)[1::2][0], words.rsplit(" ", 1)[1]
        if "price" in words:
            assert body == text.replace(b"120.50", new.encode())
        seen.add(old)
    assert len(seen) > 1


@given(DOCUMENTS, st.integers(0, 2**32), st.sampled_from(MODES), st.sampled_from([None, 1]))
def test_json_stays_json(document: Any, seed: int, mode: str, indent: int | None) -> None:
    text = json.dumps(document, indent=indent).encode()
    _, body, fired, idle = heard(mode, Reply(200, JSON, text), seed=seed)
    now = json.loads(body)
    assert bool(fired) != bool(idle)
    assert bool(fired) == (json.dumps(now) != json.dumps(document))
    if not fired:
        assert body == text
    if mode == "drop_fields" or isinstance(document, (dict, list, str)):
        assert type(now) is type(document)


def test_plain_text_is_false_in_its_numbers() -> None:
    answer = Reply(200, (("content-type", "text/plain"),), b"3 flights from 120 EUR")
    _, body, fired, _ = heard("wrong_value", answer)
    assert fired[0].startswith("120 -> ")
    assert body == f"3 flights from {fired[0].split(' -> ')[1]} EUR".encode()


def test_a_compressed_result_is_unpacked_first() -> None:
    answer = Reply(200, (*JSON, ("content-encoding", "gzip")), gzip.compress(RESULTS))
    reply, body, fired, _ = heard("wrong_value", answer)
    assert json.loads(body).keys() == {"results"}
    assert header(reply.headers, "content-encoding") is None
    assert fired


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Reply(404, JSON, b'{"error": 12}'), "the tool answered 404 by itself"),
        (stream(b'data: {"n": 1}\n\n'), "the tool answers with a stream of events"),
        (Reply(200, (("content-type", "image/png"),), b"12"), "the result is image/png, not text"),
        (Reply(200, (*JSON, ("content-encoding", "br")), b"12"), "the result is compressed in a way"),
    ],
)
def test_what_is_no_result_in_words_is_left_alone_and_that_is_said(mode: str, answer: Reply, why: str) -> None:
    reply, _, fired, idle = heard(mode, answer)
    assert reply is answer
    assert fired == []
    assert idle[0].startswith(why)


@pytest.mark.parametrize(
    ("mode", "body", "why"),
    [
        ("wrong_value", b'{"city": "Oslo"}', "the result holds nothing to lie about"),
        ("wrong_value", b"", "the result holds nothing to lie about"),
        ("wrong_value", b"\xff\xfe1", "the result holds nothing to lie about"),
        ("drop_fields", b"[1, 2]", "the result has no fields to leave out"),
        ("empty", b"{}", "the result is empty anyway"),
        ("empty", b"[ ]", None),
        ("empty", b"", "the result is empty anyway"),
    ],
)
def test_where_there_is_nothing_to_do_it_says_so(mode: str, body: bytes, why: str | None) -> None:
    _, said, fired, idle = heard(mode, Reply(200, JSON, body))
    assert (idle == [why]) == (why is not None)
    assert bool(fired) == (why is None)
    assert said == (body if why else b"[]")


@pytest.mark.parametrize(
    ("kind", "body", "left"),
    [
        ("application/json", b'{"a": 1}', b"{}"),
        ("application/json", b"[1]", b"[]"),
        ("application/json", b'"text"', b'""'),
        ("application/json", b"12", b"null"),
        ("application/json", b"not json", b""),
        ("application/problem+json", b'{"a": 1}', b"{}"),
        ("text/plain", b'{"a": 1}', b""),
        ("", b"text", b""),
    ],
)
def test_an_empty_result_is_as_empty_as_its_kind_can_be(kind: str, body: bytes, left: bytes) -> None:
    reply, said, fired, _ = heard("empty", Reply(200, (("content-type", kind),) if kind else (), body))
    assert (reply.status, said, fired) == (200, left, ["result left empty"])


def test_nothing_fires_before_the_agent_reads() -> None:
    fired = list[str]()
    World().cross(tool_faults.get("wrong_value")(ToolFault(mode="wrong_value"), scene(fired)), tool_call())
    assert fired == []


MCP_ASKED = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{}}}'
SITE = Site("mcp", "search", 1)
MCP_CALL = Call("POST", "http://x.test/mcp", JSON, MCP_ASKED, kind="mcp", name="search", wire="mcp", site=SITE)
FLIGHT = {"flight": "HAT170", "price": 120, "note": None}
SCHEMA = {
    "type": "object",
    "properties": {"flight": {"type": "string"}, "price": {"type": "integer"}},
    "required": ["flight", "price"],
}


def mcp(mode: str, result: dict[str, Any], *, seed: int = 1, schema: Any = None) -> tuple[Any, list[str], list[str]]:
    said = {"jsonrpc": "2.0", "id": 7, "result": result}
    answer = Reply(200, JSON, orjson.dumps(said))
    _, body, fired, idle = heard(mode, answer, seed=seed, call=MCP_CALL, promised=schema)
    answered = orjson.loads(body)
    assert (answered["jsonrpc"], answered["id"]) == ("2.0", 7)
    return answered["result"], fired, idle


def block(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_structured_content_and_its_text_tell_the_same_lie(schema: Any) -> None:
    text = json.dumps(FLIGHT, indent=2)
    for seed in range(40):
        result = {"content": block(text), "structuredContent": FLIGHT}
        said, fired, _ = mcp("wrong_value", result, seed=seed, schema=schema)
        assert len(fired) == 1
        assert said["structuredContent"] != FLIGHT
        assert json.loads(said["content"][0]["text"]) == said["structuredContent"]
        assert said["content"][0]["text"].count("\n") == text.count("\n"), "the spacing stays"
        jsonschema.validate(said["structuredContent"], SCHEMA)


def test_a_text_of_its_own_words_follows_the_structure() -> None:
    result = {"content": block("It is 21 degrees."), "structuredContent": {"city": "Oslo", "degrees": 21}}
    said, (words,), _ = mcp("wrong_value", result)
    assert said["content"][0]["text"] == f"It is {said['structuredContent']['degrees']} degrees."
    assert words == f"degrees 21 -> {said['structuredContent']['degrees']}"


def test_dropped_fields_are_optional_ones_where_there_are_any() -> None:
    result = {"content": block(json.dumps(FLIGHT)), "structuredContent": FLIGHT}
    for seed in range(20):
        said, fired, _ = mcp("drop_fields", result, seed=seed, schema=SCHEMA)
        assert fired == ["left out note"]
        assert said["structuredContent"] == {"flight": "HAT170", "price": 120}
        assert json.loads(said["content"][0]["text"]) == said["structuredContent"]


def test_a_structure_that_may_lose_nothing_becomes_an_error() -> None:
    whole = {**SCHEMA, "required": ["flight", "price", "note"]}
    result = {"content": block(json.dumps(FLIGHT)), "structuredContent": FLIGHT}
    said, fired, _ = mcp("drop_fields", result, schema=whole)
    assert said["isError"] is True
    assert "structuredContent" not in said
    assert len(json.loads(said["content"][0]["text"])) == 2
    assert fired[0].endswith(", as an error")


@pytest.mark.parametrize(
    ("schema", "left"),
    [
        (None, {}),
        ({"type": "object", "required": ["rows"], "properties": {"rows": {"type": "array"}}}, {"rows": [], "next": ""}),
        ({"required": ["rows"], "properties": {"next": {"minLength": 1}}}, {"rows": [], "next": "p2"}),
        ({"properties": {"rows": {"minItems": 1}}, "required": ["rows"]}, None),
    ],
)
def test_an_empty_structure_is_the_emptiest_that_is_allowed(schema: Any, left: Any) -> None:
    document = {"rows": [1, 2], "next": "p2"}
    said, fired, _ = mcp("empty", {"content": block("2 rows"), "structuredContent": document}, schema=schema)
    assert said["content"] == []
    assert said.get("structuredContent") == left
    assert said.get("isError", False) is (left is None)
    assert len(fired) == 1


def test_results_of_text_alone_and_of_resources_are_told_otherwise_too() -> None:
    said, (words,), _ = mcp("wrong_value", {"content": [*block("21 degrees"), {"type": "image", "data": "12"}]})
    assert said["content"][0]["text"] != "21 degrees"
    assert said["content"][1] == {"type": "image", "data": "12"}
    assert words.startswith("21 -> ")
    said, _, _ = mcp("drop_fields", {"contents": [{"uri": "a://b", "text": '{"a": 1}'}]})
    assert said == {"contents": [{"uri": "a://b", "text": "{}"}]}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({"content": block("card 12 declined"), "isError": True}, "the tool failed by itself"),
        ({"resultType": "input_required", "content": block("12")}, ""),
        ({"tools": []}, ""),
    ],
)
def test_failures_and_answers_without_a_result_are_left_alone(mode: str, result: dict[str, Any], why: str) -> None:
    said, fired, idle = mcp(mode, result)
    assert said == result
    assert fired == []
    assert idle[0].startswith(why)


def change(mode: str, told: Told, idle: list[str] | None = None) -> Change | None:
    at: Scene = replace(scene([]), idle=[].append if idle is None else idle.append)
    return result_faults.get(mode)(ToolFault(mode=mode), at, told)


def test_results_in_a_conversation_lie_as_calls_do() -> None:
    told = Told('{"price": 120}')
    made = change("wrong_value", told)
    assert made is not None
    assert made.told is not None
    assert made.detail == f"price 120 -> {json.loads(made.told.text)['price']}"
    assert change("drop_fields", told) == Change("left out price", Told("{}"))


def test_a_result_that_failed_or_holds_nothing_says_why_not() -> None:
    idle = list[str]()
    assert change("wrong_value", Told("Error: 503", failed=True), idle) is None
    assert change("drop_fields", Told("booked!"), idle) is None
    assert idle == ["the tool failed by itself", "the result has no fields to leave out"]


def test_the_draws_are_those_of_the_scene() -> None:
    one = Choices(1).within("fault", 0, Site("tool", "search", 1))
    two = Choices(1).within("fault", 0, Site("tool", "search", 2))
    told = Told(json.dumps([{"n": n} for n in range(50)]))
    answers = [result_faults.get("wrong_value")(ToolFault(mode="wrong_value"), replace(scene([]), choices=c), told)
               for c in (one, one, two)]  # fmt: skip
    assert answers[0] == answers[1] != answers[2]
