"""What OpenAI's own SDK makes of Responses replies: real errors, and the same meaning, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from flakestorm.core.call import Call
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit, Failure, Said, ToolCall
from flakestorm.wire.openai_responses.protocol import OpenAIResponses
from wire_support import DATA, EDITS, Make, Recorded, recorded

WIRE = OpenAIResponses()


class World:
    """Answers every request with the reply made for it."""

    make: Make
    client: openai.OpenAI

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        reply = self.make(Call(request.method, str(request.url), tuple(request.headers.items()), request.content))
        return httpx2.Response(reply.status, headers=list(reply.headers), content=read(reply))


WORLD = World()


@pytest.fixture(scope="module", autouse=True)
def client() -> Iterator[None]:
    """One client for all tests: making one takes longer than all that a test does with it."""
    with httpx2.Client(transport=httpx2.MockTransport(WORLD)) as http:
        World.client = openai.OpenAI(api_key="k", http_client=http, max_retries=0)
        yield


def ask(make: Make, *, stream: bool = False) -> Any:
    """The response the agent gets; of a stream, what the SDK put together."""
    WORLD.make = make
    if not stream:
        return WORLD.client.responses.create(model="m", input="hi")
    last: Any = None
    with WORLD.client.responses.stream(model="m", input="hi") as events:
        for event in events:
            last = event
    return last.response


def understood(response: Any) -> Said:
    calls = (item for item in response.output if item.type in ("function_call", "custom_tool_call"))
    return Said(
        response.output_text,
        tuple(ToolCall(call.call_id, call.name, getattr(call, "arguments", None) or call.input) for call in calls),
        response.status,
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("kind", "error"), [("rate_limit", openai.RateLimitError), ("overloaded", openai.InternalServerError)]
)
def test_it_raises_its_own_error(kind: Any, error: type[openai.APIStatusError], stream: bool) -> None:
    with pytest.raises(error) as caught:
        ask(lambda call: WIRE.failure(Failure(kind, message="so it is"), call), stream=stream)
    assert "so it is" in caught.value.message
    assert (caught.value.request_id or "").startswith("req_")


def readable(exchange: Recorded) -> bool:
    """Whether the SDK can read the recording as it is: it is one answer, from its beginning to its end, undamaged.

    It refuses two whose ids change on the way, and one that was shortened by hand contradicts itself.
    """
    odd = (
        "github-copilot-id-rotation.1.chunks.txt",
        "openai-client-tool-search.1.chunks.txt",
        "openai-phase.1.chunks.txt",
    )
    if exchange.wire.name != "openai_responses" or exchange.id.endswith(odd):
        return False
    said = exchange.wire.said(exchange.body, stream=exchange.stream)
    return said.complete and said.error is None and exchange.body.count(b"event: response.created") < 2


@pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("exchange", [e for e in recorded() if readable(e)], ids=lambda e: e.id)
def test_an_edited_reply_is_read_as_the_wire_reads_it(exchange: Recorded, edit: Edit) -> None:
    ours = WIRE.said(read(WIRE.edit(exchange.reply, edit)), stream=exchange.stream)
    theirs = understood(ask(lambda _: WIRE.edit(exchange.reply, edit), stream=exchange.stream))
    assert theirs == Said(ours.text, ours.tool_calls, ours.finish)


@pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("exchange", [e for e in recorded() if readable(e) and e.stream], ids=lambda e: e.id)
def test_the_events_of_an_edited_stream_say_what_its_last_one_says(exchange: Recorded, edit: Edit) -> None:
    WORLD.make = lambda _: WIRE.edit(exchange.reply, edit)
    text: dict[tuple[int, int], str] = {}
    items: list[Any] = []
    numbers: list[int] = []
    with WORLD.client.responses.create(model="m", input="hi", stream=True) as events:
        for event in events:
            numbers += [event.sequence_number] if event.sequence_number is not None else []
            if event.type == "response.output_item.added":
                assert event.output_index == len(items)
                items.append(event.item)
            elif event.type == "response.output_item.done":
                items[event.output_index] = event.item
            elif event.type == "response.output_text.delta":
                key = event.output_index, event.content_index
                text[key] = text.get(key, "") + event.delta
            elif event.type == "response.output_text.done":
                assert text.get((event.output_index, event.content_index), event.text) == event.text
    assert event.type == f"response.{event.response.status}"
    assert [item.type for item in items] == [item.type for item in event.response.output]
    spoken = [part for item in items if item.type == "message" for part in item.content if part.type == "output_text"]
    assert "".join(part.text for part in spoken) == event.response.output_text
    if edit.text is not None or edit.max_tokens is not None:
        assert numbers == sorted(set(numbers))
