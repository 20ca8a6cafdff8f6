from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from faults_support import JSON, World, scene, tool_call
from flakestorm.core.call import Call, Reply
from flakestorm.core.site import Site
from flakestorm.faults.retelling import Restated, Retelling, is_json, retelling, told_otherwise
from flakestorm.wire.results import Told

SHOUT = Retelling(
    text=lambda text: (text.upper(), "shouted") if text.upper() != text else None,
    structured=lambda document, fits: Restated({"a": 2}, "doubled", {("a",): 2}) if fits({"a": 2}) else None,
    why_not="it is loud enough",
)
ASKED = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}'


def heard(answer: Reply, call: Call | None = None, **more: Any) -> tuple[bytes, list[str], list[str]]:
    fired, idle = list[str](), list[str]()
    stage = retelling(SHOUT, replace(scene(fired), idle=idle.append, **more))
    _, body = World(answer).read(stage, call or tool_call())
    return body, fired, idle


def mcp(result: dict[str, Any], **more: Any) -> tuple[Any, list[str], list[str]]:
    call = Call("POST", "http://x.test", JSON, ASKED, kind="mcp", name="t", wire="mcp", site=Site("mcp", "t", 1))
    answer = Reply(200, JSON, json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())
    body, fired, idle = heard(answer, call, **more)
    return json.loads(body)["result"], fired, idle


def test_one_retelling_serves_every_carrier() -> None:
    assert heard(Reply(200, (("content-type", "text/plain"),), b"hi")) == (b"HI", ["shouted"], [])
    assert mcp({"content": [{"type": "text", "text": "hi"}]})[0]["content"][0]["text"] == "HI"
    change = told_otherwise(SHOUT, scene([]), Told("hi"))
    assert change is not None
    assert (change.told, change.detail) == (Told("HI"), "shouted")


def test_what_is_not_retold_passes_with_a_reason() -> None:
    assert heard(Reply(200, JSON, b"HI")) == (b"HI", [], ["it is loud enough"])
    assert mcp({"content": [{"type": "text", "text": "HI"}]})[2] == ["it is loud enough"]


def test_a_text_follows_its_structure() -> None:
    said, fired, _ = mcp({"content": [{"type": "text", "text": '{"a": 1}'}], "structuredContent": {"a": 1}})
    assert said == {"content": [{"type": "text", "text": '{"a": 2}'}], "structuredContent": {"a": 2}}
    assert fired == ["doubled"]


def test_a_structure_is_retold_within_its_schema() -> None:
    fixed = {"properties": {"a": {"const": 1}}}
    said, fired, idle = mcp({"content": [], "structuredContent": {"a": 1}}, promised=fixed)
    assert (said["structuredContent"], fired, idle) == ({"a": 1}, [], ["it is loud enough"])


def test_a_schema_that_is_broken_already_holds_nobody() -> None:
    said, _, _ = mcp({"content": [], "structuredContent": {"a": 1}}, promised={"required": ["b"]})
    assert "structuredContent" in said


def test_json_by_its_name() -> None:
    assert is_json(Reply(200, (("Content-Type", "application/json; charset=utf-8"),)))
    assert is_json(Reply(200, (("content-type", "application/hal+json"),)))
    assert not is_json(Reply(200, (("content-type", "text/plain"),)))
    assert not is_json(Reply(200))
