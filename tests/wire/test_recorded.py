"""Every recorded exchange means what the index, made by others, says it means."""

from __future__ import annotations

import pytest

from flakestorm.core.call import Reply
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit
from flakestorm.wire.protocols import wires
from flakestorm.wire.sse import DONE, Parser, events
from wire_support import DATA, Fired, Recorded, arguments_sha, cassettes, chunked, edit_bytes, fixtures, recorded, sha

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")

IN_BODY = ("openai_chat", "openai_responses", "anthropic")
"""The wires whose requests name their model in the body, not in the URL."""
CONVERSING = (*IN_BODY, "gemini", "bedrock")

SETTLED = {
    # The reply's content is a list: a thinking part and a text part that says "4". The index counts strings only; the
    # text part is what the model said, and what Mistral's own SDK calls its TextChunk.
    ("test_thinking_wire_contract/test_reasoning_wire_contract[mistral-small-thinking-high]#0", "text"): "4",
    # The first fragment has no arguments and the second says "{}". The OpenAI SDK joins them to "{}"; the index calls
    # that unparsable.
    ("test_tools_streaming/test_tools_streaming_variant_c#0", "tools"): [["llm_version", arguments_sha("{}")]],
    # The code interpreter is Amazon's own: its blocks are of type `server_tool_use` and their results are in the same
    # reply. The agent is asked for `final_result` only; botocore shows it the type of either.
    ("test_bedrock/test_bedrock_model_with_code_execution_tool#0", "tools"): [["final_result", "2fd572614cc7"]],
    ("test_bedrock/test_bedrock_model_with_code_execution_tool#1", "tools"): [["final_result", "cca8605660b2"]],
}
"""Where the index is not followed, and the reason; (exchange, fact) -> what is right."""


def ids(exchange: Recorded) -> str:
    return exchange.id


def test_the_collections_are_there() -> None:
    assert len(cassettes()) == 363
    assert len(fixtures()) > 80


@pytest.mark.parametrize("exchange", [e for e in cassettes() if e.facts], ids=ids)
def test_a_reply_says_what_the_index_states(exchange: Recorded) -> None:
    said, facts = exchange.wire.said(exchange.body, stream=exchange.stream), exchange.facts

    text = SETTLED.get((exchange.id, "text"))
    assert (sha(said.text), len(said.text)) == (
        (facts["text_sha"], facts["text_len"]) if text is None else (sha(text), len(text))
    )
    tools = [[call.name, arguments_sha(call.arguments)] for call in said.tool_calls]
    assert tools == SETTLED.get((exchange.id, "tools"), facts["tools"])
    assert said.finish == facts["finish"]
    counted = [said.usage.input, said.usage.output] if said.usage else None
    assert (counted or [None, None]) == (facts["usage"] or [None, None])
    assert (said.model or None) == facts["model"]
    failed_midway = any(event.name == "error" for event in events(exchange.body)) if exchange.stream else False
    assert (said.error is not None) == (exchange.status >= 400 or failed_midway)
    assert said.complete is not failed_midway


@pytest.mark.parametrize("exchange", [e for e in cassettes() if "events" in e.facts], ids=ids)
def test_a_stream_has_as_many_events_as_the_index_counts(exchange: Recorded) -> None:
    stated = [event for event in events(exchange.body) if event.data not in (None, DONE)]
    assert len(stated) == exchange.facts["events"]


@pytest.mark.parametrize("exchange", [e for e in cassettes() if not e.facts], ids=ids)
def test_a_reply_of_which_the_index_states_nothing_is_read_all_the_same(exchange: Recorded) -> None:
    said = exchange.wire.said(exchange.body, stream=exchange.stream)
    assert (said.error, said.complete) == (None, True)
    if exchange.stream:  # Bedrock's binary stream
        assert said.text or said.tool_calls
        assert said.finish
        assert said.usage


@pytest.mark.parametrize("exchange", cassettes(), ids=ids)
def test_a_request_is_recognised_by_its_own_wire_alone_and_names_its_model(exchange: Recorded) -> None:
    assert [wire.name for wire in wires() if wire.recognises(exchange.call)] == [exchange.wire.name]
    model = exchange.wire.model_of(exchange.call)
    assert model
    asked = exchange.wire.asked(exchange.call.body)
    if exchange.wire.name in IN_BODY:
        assert asked.model == model
        assert asked.stream or not exchange.stream
    else:
        assert asked.model in model
    assert asked.turns or (not exchange.edits and not exchange.stream)


@pytest.mark.parametrize("exchange", [e for e in cassettes() if e.wire.name in CONVERSING], ids=ids)
def test_a_tool_s_result_is_named_by_the_call_it_answers(exchange: Recorded) -> None:
    turns = exchange.wire.asked(exchange.call.body).turns
    calls = {call.id: call.name for turn in turns for call in turn.tool_calls}
    results = [result for turn in turns for result in turn.tool_results]
    quoted = exchange.call.body.count(b'"tool_result"') + exchange.call.body.count(b'"toolResult"')
    assert len(results) >= quoted
    for result in results:
        assert result.name == calls.get(result.call_id, result.name)
        assert result.name or result.call_id not in calls


@pytest.mark.parametrize("exchange", [e for e in recorded() if e.stream and e.edits], ids=ids)
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


@pytest.mark.parametrize("exchange", [e for e in recorded() if e.stream and e.edits], ids=ids)
@pytest.mark.parametrize(
    "edit", [Edit(max_tokens=5), Edit(text=str.upper, drop_tool_calls=True, finish="stop")], ids=["cut", "mapped"]
)
def test_an_edited_stream_is_the_same_however_it_is_chunked(exchange: Recorded, edit: Edit) -> None:
    expected = edit_bytes(exchange.wire, exchange.reply, edit)
    for sizes in [(1,), (13, 200)]:
        reply = Reply(200, exchange.reply.headers, list(chunked(exchange.body, *sizes)))
        assert read(exchange.wire.edit(reply, edit)) == expected
