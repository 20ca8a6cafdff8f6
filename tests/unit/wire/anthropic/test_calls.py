from __future__ import annotations

from dataclasses import replace

import pytest

import wire_anthropic as make
from flakestorm.core.call import Reply
from flakestorm.wire.anthropic.calls import MESSAGES_CALLS
from flakestorm.wire.base import Edit, ToolCall
from wire_support import Fired, edit_bytes


def said(body: bytes, *, headers=make.SSE, fired: Fired | None = None, arguments: str) -> ToolCall:  # type: ignore[no-untyped-def]
    edit = Edit(calls=lambda call: replace(call, arguments=arguments), on_change=fired or Fired())
    return make.said(edit_bytes(make.WIRE, Reply(200, headers, body), edit)).tool_calls[0]


def test_a_stream_can_hold_arguments_that_are_no_json() -> None:
    assert said(make.streamed(make.tool("pay", eur=120)), arguments='{"eur": 12').arguments == '{"eur": 12'


@pytest.mark.parametrize(
    ("arguments", "left"), [('{"eur":120,"to":"Os', '{"eur":120}'), ('{"eu', "{}"), ("", "{}"), ("[1", "{}")]
)
def test_a_whole_reply_has_what_was_complete(arguments: str, left: str) -> None:
    body = make.whole(make.tool("pay", eur=120, to="Oslo"))
    assert said(body, headers=(), arguments=arguments).arguments == left


def test_where_nothing_can_be_seen_of_the_damage_nothing_changes() -> None:
    fired = Fired()
    body = make.whole(make.tool("ping"))
    assert said(body, headers=(), fired=fired, arguments="{").arguments == "{}"
    assert fired.times == 0


def test_a_call_that_was_begun_without_deltas_states_its_input_at_once() -> None:
    block = {"type": "tool_use", "id": "t", "name": "ping", "input": {"a": 1}}
    docs = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
    ]
    assert MESSAGES_CALLS.put(docs, lambda call: replace(call, name="pong", arguments='{"b":2}')) == {0}
    assert (block["name"], block["input"]) == ("pong", {"b": 2})


def test_tools_that_anthropic_runs_itself_are_left_alone() -> None:
    body = make.streamed(make.SEARCH, make.THINKING)
    edit = Edit(calls=lambda call: replace(call, name="other"))
    assert edit_bytes(make.WIRE, Reply(200, make.SSE, body), edit) == body
