"""Converse's streams, edited."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from flakestorm.core.call import Reply
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit, Said, ToolCall, Usage
from flakestorm.wire.bedrock import Bedrock
from flakestorm.wire.bedrock_stream import is_call
from flakestorm.wire.eventstream import MEDIA_TYPE, encode, messages
from wire_support import Fired, chunked

WIRE = Bedrock()
HEADERS = (("content-type", MEDIA_TYPE),)


def message(kind: str, **doc: Any) -> bytes:
    return encode(orjson.dumps(doc), {":event-type": kind, ":content-type": "application/json"})


def delta(index: int, **said: Any) -> bytes:
    return message("contentBlockDelta", contentBlockIndex=index, delta=said, p="abc")


def stop(index: int) -> bytes:
    return message("contentBlockStop", contentBlockIndex=index)


def use(index: int, name: str, *pieces: str, **more: str) -> bytes:
    begun = message(
        "contentBlockStart",
        contentBlockIndex=index,
        start={"toolUse": {"toolUseId": f"t{index}", "name": name, **more}},
    )
    return b"".join([begun, *(delta(index, toolUse={"input": piece}) for piece in pieces), stop(index)])


def stream(*blocks: bytes, reason: str = "end_turn") -> bytes:
    usage = {"inputTokens": 9, "outputTokens": 40, "totalTokens": 49}
    last = message("messageStop", stopReason=reason) + message("metadata", usage=usage)
    return b"".join([message("messageStart", role="assistant"), *blocks, last])


THOUGHT = delta(0, reasoningContent={"text": "hm"}) + delta(0, reasoningContent={"signature": "c2ln"}) + stop(0)
WORDS = delta(1, text="One two ") + delta(1, text="three four") + stop(1)
CALLS = use(2, "get", '{"city": "Par', 'is"}') + use(3, "list", '{"n": 1}')
WHOLE = stream(THOUGHT, WORDS, CALLS, reason="tool_use")
SAID = Said(
    "One two three four",
    (ToolCall("t2", "get", '{"city": "Paris"}'), ToolCall("t3", "list", '{"n": 1}')),
    "tool_use",
    Usage(9, 40),
)


def edited(body: bytes, **edit: Any) -> bytes:
    return read(WIRE.edit(Reply(200, HEADERS, [*chunked(body, 50)]), Edit(**edit)))


def said(body: bytes) -> Said:
    return WIRE.said(body, stream=True)


def indexes(body: bytes) -> list[int]:
    found = [orjson.loads(payload).get("contentBlockIndex") for _, payload in messages(body)]
    return [index for index in dict.fromkeys(found) if index is not None]


def kinds(body: bytes) -> list[str]:
    return [kind for kind, _ in messages(body)]


def test_an_edit_that_changes_nothing_gives_the_same_bytes() -> None:
    fired = Fired()
    for edit in ({}, {"max_tokens": 99}, {"text": str}, {"calls": lambda call: call}):
        assert edited(WHOLE, **edit, on_change=fired) == WHOLE
    assert fired.times == 0


def test_truncation_ends_the_block_it_cuts_and_leaves_out_what_follows() -> None:
    fired = Fired()
    out = edited(WHOLE, max_tokens=3, on_change=fired)
    assert said(out) == Said("One two thre", (), "max_tokens", Usage(9, 3))
    assert kinds(out) == [
        *("messageStart", "contentBlockDelta", "contentBlockDelta", "contentBlockStop"),
        *("contentBlockDelta", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"),
    ]
    assert fired.times == 1
    assert said(edited(WHOLE, max_tokens=0)) == Said("", (), "max_tokens", Usage(9, 0))
    assert said(edited(WHOLE, max_tokens=2, finish="content_filter")).finish == "content_filtered"


def test_a_cut_tool_call_is_the_beginning_of_one() -> None:
    out = said(edited(WHOLE, max_tokens=6))
    (call,) = out.tool_calls
    assert (out.text, call.name, out.finish) == (SAID.text, "get", "max_tokens")
    assert '{"city": "Paris"}'.startswith(call.arguments) != (call.arguments == '{"city": "Paris"}')


def test_what_follows_the_new_headers_is_as_it_came() -> None:
    _, payload = [each for each in messages(edited(WHOLE, max_tokens=1)) if each[0] == "contentBlockDelta"][2]
    assert orjson.loads(payload) == {"contentBlockIndex": 1, "delta": {"text": "One"}, "p": "abc"}


def test_a_mapped_text_comes_in_the_deltas_of_the_old_one() -> None:
    assert said(edited(WHOLE, text=str.upper)) == replace(SAID, text="ONE TWO THREE FOUR")
    refused = edited(WHOLE, text=lambda _: "No.", drop_tool_calls=True, finish="refusal")
    assert said(refused) == Said("No.", (), "end_turn", Usage(9, 40))
    assert indexes(refused) == [0, 1]


def test_a_text_that_has_gone_leaves_no_block() -> None:
    out = edited(WHOLE, text=lambda _: "")
    assert said(out) == replace(SAID, text="")
    assert indexes(out) == [0, 1, 2]
    one = edited(stream(delta(0, text="a"), stop(0), delta(1, text="b"), stop(1)), text=lambda _: "x")
    assert (said(one).text, indexes(one)) == ("x", [0])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (stream(use(0, "get", "{}"), reason="tool_use"), [0, 1]),
        (stream(THOUGHT, use(1, "get", "{}"), reason="tool_use"), [0, 1, 2]),
        (stream(THOUGHT), [0, 1]),
        (stream(), [0]),
    ],
)
def test_where_there_was_no_text_a_block_is_put_in(body: bytes, expected: list[int]) -> None:
    out = edited(body, text=lambda _: "Words.")
    assert said(out) == replace(said(body), text="Words.")
    assert indexes(out) == expected


def test_a_text_is_mapped_and_then_cut() -> None:
    out = edited(WHOLE, text=lambda _: "one two three four", max_tokens=2, drop_tool_calls=True)
    assert said(out) == Said("one two", (), "max_tokens", Usage(9, 2))
    put_in = edited(stream(use(0, "get", "{}")), text=lambda _: "one two three", max_tokens=1)
    assert said(put_in) == Said("one", (), "max_tokens", Usage(9, 1))


def test_a_block_may_begin_without_saying_what_it_is() -> None:
    begun = message("contentBlockStart", contentBlockIndex=0, start={})
    body = stream(begun + delta(0, text="One two three") + stop(0))
    assert edited(body, max_tokens=9) == body
    assert said(edited(body, max_tokens=1)) == Said("One", (), "max_tokens", Usage(9, 1))
    assert said(edited(body, text=str.upper)).text == "ONE TWO THREE"
    silent = kinds(edited(body, max_tokens=0))
    assert silent == ["messageStart", "contentBlockStart", "contentBlockStop", "messageStop", "metadata"]


def test_tool_calls_are_mapped_and_left_out() -> None:
    other = said(edited(WHOLE, calls=lambda call: ToolCall(call.id, f"x_{call.name}", '{"broken": ')))
    assert other.tool_calls == (ToolCall("t2", "x_get", '{"broken": '), ToolCall("t3", "x_list", '{"broken": '))
    bare = stream(use(0, "now"), reason="tool_use")
    assert said(edited(bare, calls=lambda call: ToolCall(call.id, "later", '{"a": 1}'))).tool_calls == (
        ToolCall("t0", "later", "{}"),
    )
    left = edited(WHOLE, drop_tool_calls=True, finish="stop")
    assert said(left) == replace(SAID, tool_calls=(), finish="end_turn")


def test_tools_that_amazon_runs_itself_are_never_touched() -> None:
    own = use(0, "search", '{"q": 1}', type="server_tool_use")
    body = stream(own, delta(1, text="One two three") + stop(1))
    assert edited(body, drop_tool_calls=True, calls=lambda call: replace(call, name="x")) == body
    assert edited(body, max_tokens=1).startswith(message("messageStart", role="assistant") + own)
    assert not is_call({"toolUse": {"type": "server_tool_use"}})
    assert not is_call({"toolUse": 1})


def test_a_stream_that_breaks_says_what_it_had() -> None:
    error = encode(b'{"message":"slow down"}', {":exception-type": "throttlingException"})
    body = message("messageStart", role="assistant") + delta(0, text="One two three") + error
    out = said(edited(body, text=str.upper))
    assert (out.text, out.error, out.complete) == ("ONE TWO THREE", "slow down", False)
    assert said(edited(body, max_tokens=1)).text == "One"
    assert said(edited(body[: -len(error)], text=str.upper)).text == "ONE TWO THREE"
