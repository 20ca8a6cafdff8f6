"""Every recorded exchange means what the index, made by others, says it means."""

from __future__ import annotations

import pytest

from flakestorm.core.call import Reply
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit
from flakestorm.wire.sse import DONE, Parser, events
from wire_support import DATA, Fired, Recorded, arguments_sha, cassettes, chunked, edit_bytes, fixtures, recorded, sha

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")

SETTLED = {
    # The reply's content is a list: a thinking part and a text part that says "4". The index counts strings only; the
    # text part is what the model said, and what Mistral's own SDK calls its TextChunk.
    ("test_thinking_wire_contract/test_reasoning_wire_contract[mistral-small-thinking-high]#0", "text"): "4",
    # The first fragment has no arguments and the second says "{}". The OpenAI SDK joins them to "{}"; the index calls
    # that unparsable.
    ("test_tools_streaming/test_tools_streaming_variant_c#0", "tools"): [["llm_version", arguments_sha("{}")]],
}
"""Where the index is not followed, and the reason; (exchange, fact) -> what is right."""


def ids(exchange: Recorded) -> str:
    return exchange.id


def test_the_collections_are_there() -> None:
    assert len(cassettes()) == 171
    assert len(fixtures()) > 40


@pytest.mark.parametrize("exchange", cassettes(), ids=ids)
def test_a_reply_says_what_the_index_states(exchange: Recorded) -> None:
    said, facts = exchange.wire.said(exchange.body, stream=exchange.stream), exchange.facts

    text = SETTLED.get((exchange.id, "text"))
    assert (sha(said.text), len(said.text)) == (
        (facts["text_sha"], facts["text_len"]) if text is None else (sha(text), len(text))
    )
    tools = [[call.name, arguments_sha(call.arguments)] for call in said.tool_calls]
    assert tools == SETTLED.get((exchange.id, "tools"), facts["tools"])
    assert said.finish == facts["finish"]
    assert (said.usage and [said.usage.input, said.usage.output]) == facts["usage"]
    assert (said.model or None) == facts["model"]
    failed_midway = any(event.name == "error" for event in events(exchange.body)) if exchange.stream else False
    assert (said.error is not None) == ("error" in facts or failed_midway)
    assert said.complete is not failed_midway


@pytest.mark.parametrize("exchange", [e for e in cassettes() if "events" in e.facts], ids=ids)
def test_a_stream_has_as_many_events_as_the_index_counts(exchange: Recorded) -> None:
    stated = [event for event in events(exchange.body) if event.data not in (None, DONE)]
    assert len(stated) == exchange.facts["events"]


@pytest.mark.parametrize("exchange", cassettes(), ids=ids)
def test_a_request_is_recognised_by_its_own_wire_and_names_its_model(exchange: Recorded) -> None:
    assert exchange.wire.recognises(exchange.call)
    asked = exchange.wire.asked(exchange.call.body)
    assert asked.model
    assert asked.model == exchange.wire.model_of(exchange.call)
    assert asked.stream or not exchange.stream
    assert asked.turns


@pytest.mark.parametrize("exchange", [e for e in recorded() if e.stream], ids=ids)
@pytest.mark.parametrize("sizes", [(1,), (7, 1, 64), (4096,)], ids=str)
def test_a_stream_is_the_same_bytes_and_events_however_it_is_chunked(exchange: Recorded, sizes: tuple[int]) -> None:
    parser = Parser()
    found = [event for chunk in chunked(exchange.body, *sizes) for event in parser.feed(chunk)] + parser.end()
    assert b"".join(event.raw for event in found) == exchange.body
    assert found == events(exchange.body)


@pytest.mark.parametrize("exchange", recorded(), ids=ids)
@pytest.mark.parametrize(
    "edit",
    [{"max_tokens": 10**6}, {"text": str}, {"max_tokens": 10**6, "text": str, "finish": "length"}],
    ids=["long enough", "same text", "both"],
)
def test_an_edit_that_changes_nothing_gives_the_same_bytes(exchange: Recorded, edit: dict[str, object]) -> None:
    fired = Fired()
    assert edit_bytes(exchange.wire, exchange.reply, Edit(**edit, on_change=fired)) == exchange.body
    assert fired.times == 0


@pytest.mark.parametrize("exchange", [e for e in recorded() if e.stream], ids=ids)
@pytest.mark.parametrize(
    "edit", [Edit(max_tokens=5), Edit(text=str.upper, drop_tool_calls=True, finish="stop")], ids=["cut", "mapped"]
)
def test_an_edited_stream_is_the_same_however_it_is_chunked(exchange: Recorded, edit: Edit) -> None:
    expected = edit_bytes(exchange.wire, exchange.reply, edit)
    for sizes in [(1,), (13, 200)]:
        reply = Reply(200, exchange.reply.headers, list(chunked(exchange.body, *sizes)))
        assert read(exchange.wire.edit(reply, edit)) == expected
