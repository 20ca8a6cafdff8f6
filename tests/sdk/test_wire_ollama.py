"""What Ollama's own SDK makes of our replies, sync and async: real errors, and the same meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from flakestorm.core.call import Call
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit, Failure
from flakestorm.wire.ollama.protocol import Ollama
from wire_ollama import chat, generation, streamed
from wire_support import EDITS, Make

ollama = pytest.importorskip("ollama", reason="ollama is not installed; it is in the dev group")

WIRE = Ollama()
MESSAGES = [{"role": "user", "content": "hi"}]
REPLIES = {
    "text": chat("The weather in Paris is sunny."),
    "thought": chat("Sunny it is.", thinking="Let me think."),
    "tools": chat("", ("weather", {"city": "Paris", "days": 3}), ("news", {})),
    "both": chat("I will look.", ("weather", {"city": "Paris"})),
}


def answers(make: Make) -> httpx.MockTransport:
    def answer(request: httpx.Request) -> httpx.Response:
        reply = make(Call(request.method, str(request.url), tuple(request.headers.items()), request.content))
        return httpx.Response(reply.status, headers=list(reply.headers), content=read(reply))

    return httpx.MockTransport(answer)


def ask(make: Make, *, stream: bool) -> list[Any]:
    reply = ollama.Client(transport=answers(make)).chat(model="m", messages=MESSAGES, stream=stream)
    return list(reply) if isinstance(reply, Iterator) else [reply]


async def ask_async(make: Make, *, stream: bool) -> list[Any]:
    reply = await ollama.AsyncClient(transport=answers(make)).chat(model="m", messages=MESSAGES, stream=stream)
    return [chunk async for chunk in reply] if stream else [reply]


def understood(chunks: list[Any]) -> tuple[str, str, list[tuple[str, Any]], str | None]:
    calls = [call.function for chunk in chunks for call in chunk.message.tool_calls or ()]
    return (
        "".join(chunk.message.content or "" for chunk in chunks),
        "".join(chunk.message.thinking or "" for chunk in chunks),
        [(function.name, dict(function.arguments)) for function in calls],
        chunks[-1].done_reason,
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("kind", "status"), [("rate_limit", 429), ("overloaded", 503), ("server_error", 500), ("timeout", 504)]
)
async def test_it_raises_its_own_error(kind: Any, status: int, stream: bool) -> None:
    def fails(call: Call) -> Any:
        return WIRE.failure(Failure(kind, message="so it is"), call)

    with pytest.raises(ollama.ResponseError) as caught:
        ask(fails, stream=stream)
    assert (caught.value.status_code, caught.value.error) == (status, "so it is")
    with pytest.raises(ollama.ResponseError) as caught:
        await ask_async(fails, stream=stream)
    assert (caught.value.status_code, caught.value.error) == (status, "so it is")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("doc", REPLIES.values(), ids=REPLIES)
async def test_an_edited_reply_is_read_as_the_wire_reads_it(doc: Any, edit: Edit, stream: bool) -> None:
    reply = streamed(doc) if stream else generation(doc)
    ours = WIRE.said(read(WIRE.edit(reply, edit)), stream=stream)
    calls = [(call.name, orjson.loads(call.arguments)) for call in ours.tool_calls]
    for chunks in (
        ask(lambda _: WIRE.edit(reply, edit), stream=stream),
        await ask_async(lambda _: WIRE.edit(reply, edit), stream=stream),
    ):
        text, thinking, theirs, finish = understood(chunks)
        assert (text, theirs, finish) == (ours.text, calls, ours.finish)
        assert thinking == (doc["message"].get("thinking") or "")
