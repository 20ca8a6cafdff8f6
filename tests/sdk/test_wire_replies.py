"""What the wires make is accepted by the providers' own SDKs: errors, cut and changed replies, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import anthropic
import httpx2
import openai
import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import read
from flakestorm.wire.anthropic.protocol import Anthropic
from flakestorm.wire.base import Edit, Failure, Said, ToolCall
from flakestorm.wire.openai_chat.protocol import OpenAIChat
from wire_support import DATA, EDITS, Make, Recorded, recorded

MESSAGES: Any = [{"role": "user", "content": "hi"}]


class World:
    """Answers every request with the reply made for it."""

    make: Make
    openai: ClassVar[openai.OpenAI]
    anthropic: ClassVar[anthropic.Anthropic]

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        reply = self.make(Call(request.method, str(request.url), tuple(request.headers.items()), request.content))
        return httpx2.Response(reply.status, headers=list(reply.headers), content=read(reply))


WORLD = World()


@pytest.fixture(scope="module", autouse=True)
def clients() -> Iterator[None]:
    """One client of each SDK for all tests: making one takes longer than all that a test does with it."""
    with httpx2.Client(transport=httpx2.MockTransport(WORLD)) as http:
        World.openai = openai.OpenAI(api_key="k", http_client=http, max_retries=0)
        World.anthropic = anthropic.Anthropic(api_key="k", http_client=http, max_retries=0)
        yield


def ask_openai(make: Make, *, stream: bool = False, max_retries: int = 0) -> Said:
    """What the agent gets, as the SDK understood it."""
    WORLD.make = make
    client = World.openai.with_options(max_retries=max_retries)
    if not stream:
        return _openai_said(client.chat.completions.create(model="m", messages=MESSAGES))
    with client.chat.completions.stream(model="m", messages=MESSAGES) as events:
        for _ in events:
            pass
        return _openai_said(events.current_completion_snapshot)


def _openai_said(completion: Any) -> Said:
    choice = completion.choices[0]
    calls = tuple(ToolCall(c.id, c.function.name, c.function.arguments) for c in choice.message.tool_calls or ())
    return Said(choice.message.content or "", calls, choice.finish_reason, model=completion.model)


def ask_anthropic(make: Make, *, stream: bool = False, max_retries: int = 0) -> Any:
    """The message the agent gets, put together by the SDK."""
    WORLD.make = make
    client = World.anthropic.with_options(max_retries=max_retries)
    if not stream:
        return client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
    with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as events:
        return events.get_final_message()


OPENAI_ERRORS = [
    ("rate_limit", openai.RateLimitError, 429),
    ("overloaded", openai.InternalServerError, 503),
    ("server_error", openai.InternalServerError, 500),
    ("timeout", openai.InternalServerError, 504),
]
ANTHROPIC_ERRORS = [
    ("rate_limit", anthropic.RateLimitError, 429),
    ("overloaded", anthropic.InternalServerError, 529),
    ("server_error", anthropic.InternalServerError, 500),
    ("timeout", anthropic.InternalServerError, 504),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("kind", "error", "status"), OPENAI_ERRORS)
def test_openai_raises_its_own_error(kind: Any, error: type[openai.APIStatusError], status: int, stream: bool) -> None:
    with pytest.raises(error) as caught:
        ask_openai(lambda call: OpenAIChat().failure(Failure(kind, message="so it is"), call), stream=stream)
    assert caught.value.status_code == status
    assert "so it is" in caught.value.message
    assert caught.value.type
    assert caught.value.request_id
    assert caught.value.request_id.startswith("req_")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("kind", "error", "status"), ANTHROPIC_ERRORS)
def test_anthropic_raises_its_own_error(
    kind: Any, error: type[anthropic.APIStatusError], status: int, stream: bool
) -> None:
    with pytest.raises(error) as caught:
        ask_anthropic(lambda call: Anthropic().failure(Failure(kind, message="so it is"), call), stream=stream)
    assert caught.value.status_code == status
    assert "so it is" in caught.value.message
    assert caught.value.request_id
    assert caught.value.request_id.startswith("req_")


@pytest.mark.parametrize(("wait_ms", "waited_s"), [(50, 0.05), (1500, 1.5)])
def test_the_sdks_wait_exactly_as_long_as_they_are_told(
    monkeypatch: pytest.MonkeyPatch, wait_ms: int, waited_s: float
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    failure = Failure("rate_limit", retry_after_ms=wait_ms)
    with pytest.raises(openai.RateLimitError):
        ask_openai(lambda call: OpenAIChat().failure(failure, call), max_retries=2)
    with pytest.raises(anthropic.RateLimitError):
        ask_anthropic(lambda call: Anthropic().failure(failure, call), max_retries=2)
    assert waits == [waited_s] * 4


def test_every_failure_is_retried() -> None:
    attempts: list[str] = []

    def fails(call: Call) -> Reply:
        attempts.append(call.url)
        wire = OpenAIChat() if "openai" in call.url else Anthropic()
        return wire.failure(Failure("overloaded", retry_after_ms=1), call)

    with pytest.raises(openai.InternalServerError):
        ask_openai(fails, max_retries=1)
    with pytest.raises(anthropic.InternalServerError):
        ask_anthropic(fails, max_retries=1)
    assert len(attempts) == 4


needs_data = pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")


def readable(exchange: Recorded) -> bool:
    """Whether the official SDK can read the recording as it is.

    It cannot read errors, two messages in one stream, content in parts, a stream that never says why it ended, and
    Mistral's tool calls without an index.
    """
    if exchange.status != 200 or b'"error"' in exchange.body[:20] or b"event: error" in exchange.body:
        return False
    said = exchange.wire.said(exchange.body, stream=exchange.stream)
    if exchange.wire.name == "anthropic":
        return exchange.body.count(b"event: message_start") < 2
    listed = b'"content": [' in exchange.body or b'"content":[' in exchange.body
    return not listed and said.finish is not None and "mistral-tool-call.chunks" not in exchange.id


OPENAI = [e for e in recorded() if e.wire.name == "openai_chat" and readable(e)]
ANTHROPIC = [e for e in recorded() if e.wire.name == "anthropic" and readable(e)]


@needs_data
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("exchange", OPENAI, ids=lambda e: e.id)
def test_openai_reads_an_edited_reply_as_the_wire_does(exchange: Recorded, edit: Edit) -> None:
    wire = OpenAIChat()
    body = read(wire.edit(exchange.reply, edit))
    ours = wire.said(body, stream=exchange.stream)
    theirs = ask_openai(lambda _: wire.edit(exchange.reply, edit), stream=exchange.stream)
    assert (theirs.text, theirs.finish) == (ours.text, ours.finish)
    assert [(c.id, c.name, c.arguments or "") for c in theirs.tool_calls] == [
        (c.id, c.name, c.arguments) for c in ours.tool_calls
    ]


@needs_data
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("exchange", ANTHROPIC, ids=lambda e: e.id)
def test_anthropic_reads_an_edited_reply_as_the_wire_does(exchange: Recorded, edit: Edit) -> None:
    wire = Anthropic()
    ours = wire.said(read(wire.edit(exchange.reply, edit)), stream=exchange.stream)
    message = ask_anthropic(lambda _: wire.edit(exchange.reply, edit), stream=exchange.stream)
    assert "".join(block.text for block in message.content if block.type == "text") == ours.text
    calls = [block for block in message.content if block.type == "tool_use"]
    assert [(block.id, block.name) for block in calls] == [(call.id, call.name) for call in ours.tool_calls]
    assert message.stop_reason == ours.finish
    assert ours.usage is not None
    assert message.usage.output_tokens == ours.usage.output
