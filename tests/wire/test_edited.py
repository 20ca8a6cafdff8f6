"""Recorded replies, edited: what is left is a prefix, says so, and is otherwise the provider's own."""

from __future__ import annotations

import pytest

from flakestorm.wire.base import Edit, Said
from flakestorm.wire.tokens import count_tokens
from wire_support import DATA, Fired, Recorded, edit_said, recorded

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")

ANSWERS = [exchange for exchange in recorded() if exchange.status == 200]
LENGTH = {"openai_chat": "length", "anthropic": "max_tokens"}
ONE_MESSAGE = [exchange for exchange in ANSWERS if exchange.body.count(b"event: message_start") < 2]
"""Without two hand-made streams that hold two messages: what comes after the first `message_stop` is no answer."""
STOP = {"openai_chat": "stop", "anthropic": "end_turn"}


def ids(exchange: Recorded) -> str:
    return exchange.id


def said_by(exchange: Recorded) -> Said:
    return exchange.wire.said(exchange.body, stream=exchange.stream)


def answer_tokens(said: Said) -> int:
    """An upper bound is enough: text blocks are counted one by one, so their joint count may be a little lower."""
    arguments = [call.arguments for call in said.tool_calls if call.arguments != "{}"]
    return count_tokens(said.text) + sum(map(count_tokens, arguments))


@pytest.mark.parametrize("limit", [0, 1, 5, 20])
@pytest.mark.parametrize("exchange", ANSWERS, ids=ids)
def test_truncation_leaves_a_prefix_and_says_length(exchange: Recorded, limit: int) -> None:
    fired, before = Fired(), said_by(exchange)
    after = edit_said(exchange.wire, exchange.reply, Edit(max_tokens=limit, finish="length", on_change=fired))

    if fired.times == 0:
        assert after == before
        assert answer_tokens(before) <= limit
        return
    assert fired.times == 1
    assert answer_tokens(after) <= limit
    assert before.text.startswith(after.text)
    assert len(after.tool_calls) <= len(before.tool_calls)
    for was, now in zip(before.tool_calls, after.tool_calls, strict=False):
        assert (was.id, was.name) == (now.id, now.name)
    if exchange.stream:
        for was, now in zip(before.tool_calls, after.tool_calls, strict=False):
            assert was.arguments.startswith(now.arguments) or now.arguments == "{}"
    assert after.finish == LENGTH[exchange.wire.name] or before.error
    assert (after.model, after.complete, after.error) == (before.model, before.complete, before.error)
    assert (after.usage is None) == (before.usage is None)
    if after.usage and before.usage:
        assert after.usage.input == before.usage.input
        assert (after.usage.output or 0) <= (before.usage.output or 0)


@pytest.mark.parametrize("exchange", ONE_MESSAGE, ids=ids)
def test_a_mapped_text_is_all_the_text_there_is(exchange: Recorded) -> None:
    fired, before = Fired(), said_by(exchange)
    after = edit_said(exchange.wire, exchange.reply, Edit(text=lambda text: f"<{text[::-1]}>", on_change=fired))

    assert fired.times == 1
    assert after.text == f"<{before.text[::-1]}>"
    assert after.tool_calls == before.tool_calls
    assert (after.finish, after.usage, after.model, after.complete) == (
        before.finish,
        before.usage,
        before.model,
        before.complete,
    )


@pytest.mark.parametrize("exchange", ONE_MESSAGE, ids=ids)
def test_a_silenced_reply_says_nothing_and_ends_normally(exchange: Recorded) -> None:
    silence = Edit(text=lambda _: "", drop_tool_calls=True, finish="stop")
    before, after = said_by(exchange), edit_said(exchange.wire, exchange.reply, silence)

    assert (after.text, after.tool_calls) == ("", ())
    assert after.finish == (STOP[exchange.wire.name] if before.finish else None)
    assert (after.usage, after.model, after.complete) == (before.usage, before.model, before.complete)


@pytest.mark.parametrize("exchange", ONE_MESSAGE, ids=ids)
def test_a_reply_that_becomes_another_text_is_cut_after_it_was_mapped(exchange: Recorded) -> None:
    said = edit_said(
        exchange.wire,
        exchange.reply,
        Edit(text=lambda _: "one two three four five six", drop_tool_calls=True, max_tokens=3),
    )
    assert said.text == "one two thre"
    assert said.finish == LENGTH[exchange.wire.name] or said.error
