from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import Flow
from flakestorm.errors import CallFailed
from gateway_support import Held, held
from proxy_support import forward_proxy


class Echo:
    """An upstream that sends back what it gets, in capitals."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.closed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data.upper())
                await writer.drain()
        writer.close()
        self.closed.set()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    it = Echo()
    async with await asyncio.start_server(it.serve, "127.0.0.1", 0) as server:
        it.port = server.sockets[0].getsockname()[1]
        yield it


@asynccontextmanager
async def connect(
    gate: Held, authority: str
) -> AsyncIterator[tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]]:
    """Ask for a tunnel: the head of the reply, and the connection."""
    token = base64.b64encode(f"x:{gate.channel.token}".encode()).decode()
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.gateway.port)
    try:
        writer.write(
            f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nProxy-Authorization: Basic {token}\r\n\r\n".encode()
        )
        yield await reader.readuntil(b"\r\n\r\n"), reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


async def test_bytes_pass_both_ways_and_the_tunnel_is_recorded(echo: Echo) -> None:
    async with held() as gate, connect(gate, f"127.0.0.1:{echo.port}") as (head, reader, writer):
        assert head == b"HTTP/1.1 200 Connection established\r\n\r\n"
        for part in (b"one", b"two" * 100_000):
            writer.write(part)
            assert await reader.readexactly(len(part)) == part.upper()
        (seen,) = gate.watch.seen
        assert (seen.call.method, seen.call.url) == ("CONNECT", f"https://127.0.0.1:{echo.port}")
        assert seen.reply is not None
        assert (seen.reply.status, seen.chunks, seen.end) == (200, [], "eof")


async def test_a_tunnel_goes_through_the_proxy_that_was_set_before(echo: Echo) -> None:
    async with (
        forward_proxy(echo.port) as proxied,
        held(HTTPS_PROXY=proxied.url.replace("//", "//me:pw@")) as gate,
        connect(gate, "api.test:443") as (head, reader, writer),
    ):
        assert head.startswith(b"HTTP/1.1 200 ")
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"HELLO"
    assert proxied.heads == [
        ["CONNECT api.test:443 HTTP/1.1", "Host: api.test:443", "Proxy-Authorization: Basic bWU6cHc="]
    ]


async def test_a_proxy_that_says_no_is_quoted() -> None:
    async with (
        forward_proxy(1, answer="HTTP/1.1 403 Forbidden by policy") as proxied,
        held(HTTPS_PROXY=proxied.url) as gate,
        connect(gate, "api.test:443") as (head, reader, _),
    ):
        assert head.startswith(b"HTTP/1.1 502 ")
        assert b"403 Forbidden by policy" in await reader.read(1000)


async def test_a_client_that_leaves_closes_the_upstream(echo: Echo) -> None:
    async with held() as gate:
        async with connect(gate, f"127.0.0.1:{echo.port}") as (_, _, writer):
            writer.write(b"bye")
        await asyncio.wait_for(echo.closed.wait(), 20)


async def test_an_upstream_that_leaves_closes_the_client(echo: Echo) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(10))
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with held() as gate, connect(gate, f"127.0.0.1:{port}") as (_, reader, writer):
            writer.write(b"last")
            assert await reader.read() == b"last"


async def test_nothing_flows_beyond_what_the_upstream_can_take() -> None:
    """A slow upstream slows the client down: the gateway holds a bounded amount."""
    begin, finished = asyncio.Event(), asyncio.Event()
    total = 64 * 1024 * 1024
    got = 0

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal got
        await begin.wait()
        while data := await reader.read(1 << 20):
            got += len(data)
        writer.close()
        finished.set()

    async with await asyncio.start_server(slow, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with held() as gate, connect(gate, f"127.0.0.1:{port}") as (_, _, writer):
            writer.write(bytes(total))
            drained = asyncio.ensure_future(writer.drain())
            for _ in range(2000):
                await asyncio.sleep(0)
            assert not drained.done()
            begin.set()
            await asyncio.wait_for(drained, 60)
            writer.write_eof()
            await asyncio.wait_for(finished.wait(), 60)
        assert got == total


async def test_nobody_there_is_said(echo: Echo) -> None:
    async with held() as gate, connect(gate, "127.0.0.1:1") as (head, _, _):
        assert head.startswith(b"HTTP/1.1 502 ")
        assert b"x-flakestorm-failed: refused" in head
        assert isinstance(gate.watch.seen[0].error, CallFailed)


@pytest.mark.parametrize(("how", "status"), [("refused", b"502"), ("timeout", b"504")])
async def test_a_fault_acts_when_the_tunnel_is_opened(echo: Echo, how: str, status: bytes) -> None:
    def broken(_: Call) -> Flow:
        raise CallFailed(how, injected=True)  # type: ignore[arg-type]
        yield

    async with held(broken) as gate, connect(gate, f"127.0.0.1:{echo.port}") as (head, _, _):
        assert head.split()[1] == status
    assert echo.connections == 0


async def test_an_answer_in_the_worlds_place_is_the_proxys_answer(echo: Echo) -> None:
    def outage(_: Call) -> Flow:
        return Reply(503, (("Content-Length", "0"),))
        yield

    async with held(outage) as gate, connect(gate, f"127.0.0.1:{echo.port}") as (head, _, _):
        assert head.startswith(b"HTTP/1.1 503 ")
    assert echo.connections == 0


async def test_a_tunnel_to_the_gateway_itself_is_not_a_call_but_what_is_in_it_is() -> None:
    """Some clients (undici) tunnel plain http as well, also to the base URL they were given."""
    async with held(OPENAI_BASE_URL="http://127.0.0.1:1") as gate:
        async with connect(gate, gate.authority) as (head, reader, writer):
            assert head.startswith(b"HTTP/1.1 200 ")
            assert gate.watch.seen == []
            path = gate.channel.env["OPENAI_BASE_URL"].partition(gate.authority)[2]
            writer.write(f"GET {path}/x HTTP/1.1\r\nHost: {gate.authority}\r\nConnection: close\r\n\r\n".encode())
            assert b"502" in await reader.readline()
        assert gate.watch.urls == ["http://127.0.0.1:1/x"]
