"""Recorded replies, edited: what is left is a prefix, says so, and is otherwise the provider's own."""

from __future__ import annotations

import pytest

from flakestorm.wire.base import Edit, Said
from flakestorm.wire.tokens import count_tokens
from wire_support import DATA, Fired, Recorded, edit_bytes, edit_said, recorded

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")

LENGTH = {
    "openai_chat": "length",
    "openai_responses": "incomplete",
    "anthropic": "max_tokens",
    "gemini": "MAX_TOKENS",
    "bedrock": "max_tokens",
}
STOP = {
    "openai_chat": "stop",
    "openai_responses": "completed",
    "anthropic": "end_turn",
    "gemini": "STOP",
    "bedrock": "end_turn",
}
NO_ANSWERS = (
    "text_gets_blocked#1",
    "background_mode_reasoning_vcr#0",
    "openai-error.1.chunks.txt",
    "openai-error.1.json",
)
"""A blocked prompt, a response that is still queued, and failures: there is nothing to edit in them."""
ANSWERS = [
    exchange
    for exchange in recorded()
    if exchange.status == 200 and exchange.edits and not exchange.id.endswith(NO_ANSWERS)
]
ONE_MESSAGE = [
    exchange
    for exchange in ANSWERS
    if max(exchange.body.count(b"event: message_start"), exchange.body.count(b"event: response.created")) < 2
]
"""Without hand-made streams that hold several messages: what comes after the end of the first is no answer."""


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
    ends = 0 if exchange.stream else sum(call.arguments.count(end) for call in after.tool_calls for end in "}]")
    assert answer_tokens(after) <= limit + ends  # arguments that are objects are closed again
    assert before.text.startswith(after.text)
    assert len(after.tool_calls) <= len(before.tool_calls)
    for was, now in zip(before.tool_calls, after.tool_calls, strict=False):
        assert (was.id, was.name) == (now.id, now.name)
    if exchange.stream:
        for was, now in zip(before.tool_calls, after.tool_calls, strict=False):
            assert was.arguments.startswith(now.arguments) or now.arguments == "{}"
    assert after.finish == LENGTH[exchange.wire.name] or before.error or not before.complete
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
    assert said.finish == LENGTH[exchange.wire.name] or said.error or not said.complete


@pytest.mark.parametrize("exchange", [e for e in recorded() if e.id.endswith(NO_ANSWERS)], ids=ids)
def test_what_is_no_answer_is_left_alone(exchange: Recorded) -> None:
    fired = Fired()
    edit = Edit(text=lambda _: "words", drop_tool_calls=True, max_tokens=0, on_change=fired)
    assert edit_bytes(exchange.wire, exchange.reply, edit) == exchange.body
    assert fired.times == 0
