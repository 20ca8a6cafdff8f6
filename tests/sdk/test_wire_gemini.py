"""What Google's own SDK makes of our Gemini replies, sync and async: real errors, and the same meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from flakestorm.core.call import Call
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit, Failure, Said
from flakestorm.wire.gemini.protocol import Gemini
from wire_support import DATA, EDITS, Make, Recorded, recorded

genai = pytest.importorskip("google.genai", reason="google-genai is not installed; it is in the dev group")

WIRE = Gemini()


class World:
    """Answers every request with the reply made for it."""

    make: Make
    client: Any

    def __call__(self, request: httpx.Request) -> httpx.Response:
        reply = self.make(Call(request.method, str(request.url), tuple(request.headers.items()), request.content))
        return httpx.Response(reply.status, headers=list(reply.headers), content=read(reply))


WORLD = World()


@pytest.fixture(scope="module", autouse=True)
def client() -> Iterator[None]:
    """One client for all tests: making one takes longer than all that a test does with it."""
    with httpx.Client(transport=httpx.MockTransport(WORLD)) as http:
        options = genai.types.HttpOptions(
            httpx_client=http, httpx_async_client=httpx.AsyncClient(transport=httpx.MockTransport(WORLD))
        )
        World.client = genai.Client(api_key="k", http_options=options)
        yield


def ask(make: Make, *, stream: bool) -> list[Any]:
    WORLD.make = make
    if stream:
        return list(WORLD.client.models.generate_content_stream(model="m", contents="hi"))
    return [WORLD.client.models.generate_content(model="m", contents="hi")]


async def ask_async(make: Make, *, stream: bool) -> list[Any]:
    WORLD.make = make
    if stream:
        reply = await WORLD.client.aio.models.generate_content_stream(model="m", contents="hi")
        return [chunk async for chunk in reply]
    return [await WORLD.client.aio.models.generate_content(model="m", contents="hi")]


def understood(chunks: list[Any]) -> tuple[str, list[tuple[str, Any]], str | None]:
    parts = [
        part
        for chunk in chunks
        for candidate in (chunk.candidates or [])[:1]
        for part in (candidate.content.parts if candidate.content else None) or []
    ]
    text = "".join(part.text for part in parts if part.text and not part.thought)
    calls = [
        (part.function_call.name, part.function_call.args or {})
        for part in parts
        if part.function_call and part.function_call.name
    ]
    ends = [chunk.candidates[0].finish_reason for chunk in chunks if chunk.candidates]
    return text, calls, next((end.value for end in reversed(ends) if end), None)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("rate_limit", 429, "RESOURCE_EXHAUSTED"),
        ("overloaded", 503, "UNAVAILABLE"),
        ("server_error", 500, "INTERNAL"),
        ("timeout", 504, "DEADLINE_EXCEEDED"),
    ],
)
async def test_it_raises_its_own_error(kind: Any, status: int, code: str, stream: bool) -> None:
    def fails(call: Call) -> Any:
        return WIRE.failure(Failure(kind, message="so it is", retry_after_ms=50), call)

    with pytest.raises(genai.errors.APIError) as sync:
        ask(fails, stream=stream)
    with pytest.raises(genai.errors.APIError) as waited:
        await ask_async(fails, stream=stream)
    for error in (sync.value, waited.value):
        assert (error.code, error.status, error.message) == (status, code, "so it is")
        assert error.details["error"]["details"][-1]["retryDelay"] == "0.05s"
        assert isinstance(error, genai.errors.ClientError if status < 500 else genai.errors.ServerError)


def readable(exchange: Recorded) -> bool:
    """Whether it is an answer of the kind the SDK asks for: a document, or a stream of events."""
    return exchange.wire.name == "gemini" and exchange.status == 200 and not exchange.body.lstrip().startswith(b"[")


def same_as(chunks: list[Any], ours: Said) -> bool:
    """Whether both say the same. The SDK hands out arguments that come in pieces as pieces; those are not compared."""
    pieces = any(call.partial_args for chunk in chunks for call in chunk.function_calls or ())
    text, calls, finish = understood(chunks)
    asked = [(call.name, orjson.loads(call.arguments)) for call in ours.tool_calls]
    if pieces:
        asked, calls = [(name, None) for name, _ in asked], [(name, None) for name, _ in calls]
    return (text, calls, finish) == (ours.text, asked, ours.finish)


@pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("exchange", [e for e in recorded() if readable(e)], ids=lambda e: e.id)
async def test_an_edited_reply_is_read_as_the_wire_reads_it(exchange: Recorded, edit: Edit) -> None:
    ours = WIRE.said(read(WIRE.edit(exchange.reply, edit)), stream=exchange.stream)
    assert same_as(ask(lambda _: WIRE.edit(exchange.reply, edit), stream=exchange.stream), ours)
    assert same_as(await ask_async(lambda _: WIRE.edit(exchange.reply, edit), stream=exchange.stream), ours)
