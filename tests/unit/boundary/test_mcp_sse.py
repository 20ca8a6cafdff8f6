import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast
from unittest.mock import MagicMock as Mock

import pytest

from flakestorm.boundary.live import Live, LiveBody
from flakestorm.boundary.mcp_sse import Standing, Stream
from flakestorm.boundary.passage import Passage
from flakestorm.core.call import Call, Reply
from flakestorm.errors import CallFailed
from mcp_support import Run

ENDPOINT = b"event: endpoint\r\ndata: /messages?session_id=1\r\n\r\n"
BEGINS = ENDPOINT.replace(b"\r", b"")
POST = "http://up.test/messages?session_id=1"
ASKED = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'


class Source:
    """A live body that says what the test puts in; `None` ends it."""

    def __init__(self, *chunks: bytes | None) -> None:
        self.chunks: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        for chunk in chunks:
            self.chunks.put_nowait(chunk)
        self.closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self.chunks.get()
        if chunk is None:
            self.chunks.put_nowait(None)  # the end stays the end
            raise StopAsyncIteration
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    def close(self) -> None:
        self.closed = True


class Upstream:
    """Where messages are posted."""

    def __init__(self, status: int = 202) -> None:
        self.status, self.calls = status, asyncio.Queue[Call]()

    async def send(self, call: Call) -> Reply:
        self.calls.put_nowait(call)
        return Reply(self.status, reason="Nope")


def stream(source: Source, upstream: Upstream, passage: Passage) -> Stream:
    call = Call("GET", "http://up.test/sse", (("Authorization", "get"),))
    place = lambda url: url.replace("http://up.test", "/r/T/p/mcp-w")  # noqa: E731
    return Stream(cast(LiveBody, source), call, cast(Live, upstream), passage, place)


async def soon(waiting: Any) -> Any:
    return await asyncio.wait_for(waiting, 10)


async def test_a_session_crosses_message_by_message() -> None:
    run, source, upstream, passage = Run(), Source(ENDPOINT, b": ping\r\n\r\n"), Upstream(), Passage("T")
    with passage.bind(run.line):
        body = stream(source, upstream, passage)
        first = await soon(anext(body)) + await soon(anext(body))
        assert first == ENDPOINT.replace(b"/messages", b"/r/T/p/mcp-w/messages")
        assert await soon(anext(body)) + await soon(anext(body)) == b": ping\r\n\r\n"

        passage.sessions[POST].posted(ASKED, (("Authorization", "post"), ("Content-Length", "1")))
        sent = await soon(upstream.calls.get())
        assert (sent.method, sent.url, sent.headers, sent.body) == ("POST", POST, (("Authorization", "post"),), ASKED)
        source.chunks.put_nowait(b"event: message\r\ndata: " + ANSWER + b"\r\n\r\n")
        assert await soon(anext(body)) == b"event: message\ndata: " + ANSWER + b"\n\n"
    assert (run.names, run.exchanges[0].url, run.exchanges[0].reply.body) == (["echo"], POST, ANSWER)
    body.close()
    assert source.closed
    assert passage.sessions == {}


async def test_an_upstream_that_refuses_a_message_is_an_error_to_who_asked() -> None:
    source, upstream, passage = Source(ENDPOINT), Upstream(404), Passage("T")
    body = stream(source, upstream, passage)
    await soon(anext(body))
    passage.sessions[POST].posted(ASKED, ())
    said = b""
    while b"message" not in said or not said.endswith(b"\n\n"):
        said = await soon(anext(body))
    error = json.loads(said.partition(b"data: ")[2])
    assert (error["id"], "404 Nope" in error["error"]["message"]) == (1, True)
    await body.aclose()


async def test_the_end_of_the_stream_ends_the_session() -> None:
    source, passage = Source(ENDPOINT, None), Passage("T")
    body = stream(source, Upstream(), passage)
    said = b"".join([piece async for piece in body])
    assert said == ENDPOINT.replace(b"/messages", b"/r/T/p/mcp-w/messages")


async def test_a_break_of_the_stream_is_the_agents_too() -> None:
    source = Source(ENDPOINT)
    source.chunks.put_nowait(CallFailed("reset", "gone"))
    body = stream(source, Upstream(), Passage("T"))
    with pytest.raises(CallFailed):
        _ = [piece async for piece in body]


@pytest.mark.parametrize(
    "chunks",
    [
        (b"data: 1\n\n", b"data: 2\n\n"),
        (b"e", b"vent: other\ndata: x", b"\n\n"),
        (b"event: endpoint", b"\ndata: never whole"),
        (b"",),
        (),
    ],
)
async def test_any_other_stream_passes_chunk_by_chunk(chunks: tuple[bytes, ...]) -> None:
    passage = Passage("T")
    body = stream(Source(*chunks, None), Upstream(), passage)
    assert b"".join([piece async for piece in body]) == b"".join(chunks)
    assert passage.sessions == {}


async def test_a_stream_that_is_no_session_is_not_held_back() -> None:
    source = Source(b"data: half")
    body = stream(source, Upstream(), Passage("T"))
    assert await soon(anext(body)) == b"data: half"
    body.close()
    assert source.closed


class Server:
    """An upstream that opens streams, and notes what is posted."""

    def __init__(self, *sources: Source) -> None:
        self.sources, self.posted = list(sources), asyncio.Queue[Call]()

    async def send(self, call: Call) -> Reply:
        if call.method == "GET":
            body = Mock(spec=LiveBody)
            source = self.sources.pop(0)
            body.__aiter__.side_effect = lambda: source
            return Reply(200, body=body)
        self.posted.put_nowait(call)
        return Reply(202)


async def test_in_place_of_a_recorded_stream_one_is_held_open_until_a_message_is_for_the_server() -> None:
    run, passage = Run(), Passage("T")
    source = Source(ENDPOINT.replace(b"=1", b"=new"))
    server = Server(source)
    with passage.bind(run.line):
        body = stream(cast(Source, Standing(BEGINS)), cast(Upstream, server), passage)
        assert await soon(anext(body)) == BEGINS.replace(b"/messages", b"/r/T/p/mcp-w/messages")
        assert server.posted.empty()
        for _ in range(2):
            passage.sessions[POST].posted(ASKED, ())
            posted = await soon(server.posted.get())
            assert (posted.url, posted.body) == (POST.replace("=1", "=new"), ASKED)
            source.chunks.put_nowait(b"data: " + ANSWER + b"\n\n")
            assert ANSWER in await soon(anext(body))
    assert run.names == ["echo", "echo"]
    body.close()


async def test_a_server_that_opens_no_stream_fails_the_call() -> None:
    run, passage = Run(), Passage("T")
    with passage.bind(run.line):
        body = stream(cast(Source, Standing(BEGINS)), Upstream(503), passage)
        await soon(anext(body))
        passage.sessions[POST].posted(ASKED, ())
        assert b"answered 503 and no stream" in await soon(anext(body))
    body.close()


async def test_a_stream_that_is_held_open_ends_when_it_is_closed() -> None:
    standing = Standing(b"a")
    assert await anext(standing) == b"a"
    standing.close()
    with pytest.raises(StopAsyncIteration):
        await soon(anext(standing))
