from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import pytest
from aiohttp import web

from flakestorm.boundary.asked import Asked, Whole
from flakestorm.boundary.delivery import deliver
from flakestorm.boundary.door import REFUSED, Door, Doors
from flakestorm.boundary.http2 import refusal
from flakestorm.core.call import Reply
from gateway_support import held


async def test_http_2_from_the_first_byte_is_refused_in_its_own_language(caplog: pytest.LogCaptureFixture) -> None:
    async with held() as gate:
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.gateway.port)
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        said = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert said == refusal(REFUSED)
    assert REFUSED in caplog.text


async def test_the_preface_is_only_that_at_the_beginning_of_a_connection() -> None:
    async with held() as gate:
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.gateway.port)
        writer.write(b"POST /nowhere HTTP/1.1\r\nHost: h\r\nContent-Length: 24\r\nConnection: close\r\n\r\n")
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 404 ")
        writer.close()
        await writer.wait_closed()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
async def test_curl_says_that_http_1_1_is_required() -> None:
    async with held() as gate:
        words = ("curl", "-sS", "-v", "--noproxy", "*", "--http2-prior-knowledge", f"http://{gate.authority}/x")
        process = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        _, err = await process.communicate()
    assert process.returncode != 0
    assert "GOAWAY, error=13" in err.decode()


Handler = Callable[[Asked], Awaitable[web.StreamResponse]]


async def echo(request: Asked) -> web.StreamResponse:
    """Answers with the path, and the body where there is one."""
    if isinstance(request, Whole):
        body, way = request.body, "plain"
    else:
        body, way = await cast(web.BaseRequest, request).read(), "odd"
    said = f"{way} {request.method} {request.raw_path} ".encode() + body
    return await deliver(request, Reply(200, (("Content-Length", str(len(said))),), said))


@asynccontextmanager
async def doors(handler: Handler, **settings: Any) -> AsyncIterator[web.ServerRunner]:
    runner = web.ServerRunner(
        Doors(handler, access_log=None, handler_cancellation=True, **settings), shutdown_timeout=5
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner
    finally:
        await runner.cleanup()


@asynccontextmanager
async def client(runner: web.ServerRunner) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def answer(reader: asyncio.StreamReader) -> str:
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
    return (await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))).decode()


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode()


def post(path: str, body: bytes) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def chunked(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


async def test_a_connection_is_aiohttps_from_the_first_odd_request_on() -> None:
    async with doors(echo) as runner, client(runner) as (reader, writer):
        said = []
        for request in (get("/a"), post("/b", b"1"), chunked("/c", b"2"), get("/d"), post("/e", b"3")):
            writer.write(request)
            said.append(await answer(reader))
    assert said == ["plain GET /a ", "plain POST /b 1", "odd POST /c 2", "odd GET /d ", "odd POST /e 3"]


async def test_a_body_may_come_after_its_head_and_in_pieces() -> None:
    async with doors(echo) as runner, client(runner) as (reader, writer):
        request = post("/a", b"one two")
        for piece in (request[:10], request[10:-7], request[-7:-3], request[-3:]):
            writer.write(piece)
            await asyncio.sleep(0)
        assert await answer(reader) == "plain POST /a one two"


async def test_requests_that_do_not_wait_for_answers_are_answered_in_order() -> None:
    begun, going_on = asyncio.Event(), asyncio.Event()
    seen: list[str] = []

    async def slowly(request: Asked) -> web.StreamResponse:
        seen.append(request.raw_path)
        begun.set()
        if request.raw_path == "/a":
            await going_on.wait()
        return await echo(request)

    async with doors(slowly) as runner, client(runner) as (reader, writer):
        writer.write(get("/a"))
        await asyncio.wait_for(begun.wait(), 20)
        for path in ("/b", "/c"):
            writer.write(post(path, bytes(50_000)))
        writer.write(get("/d"))
        await asyncio.sleep(0)
        going_on.set()
        said = [await answer(reader) for _ in range(4)]
    assert seen == ["/a", "/b", "/c", "/d"]
    assert [words.split()[2] for words in said] == seen
    async with doors(echo) as runner, client(runner) as (reader, writer):
        writer.write(get("/a") + post("/b", b"x") + get("/c"))
        assert [(await answer(reader)).split()[2] for _ in range(3)] == ["/a", "/b", "/c"]


@pytest.mark.parametrize("line", ["GET / HTTP/1.0", "GET / HTTP/1.1\r\nConnection: close"])
async def test_the_connection_ends_where_the_client_wants_that(line: str) -> None:
    async with doors(echo) as runner, client(runner) as (reader, writer):
        writer.write(f"{line}\r\nHost: h\r\n\r\n".encode())
        assert (await asyncio.wait_for(reader.read(), 20)).endswith(b"plain GET / ")


async def test_a_client_that_leaves_ends_what_it_asked_for() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def never(request: Asked) -> web.StreamResponse:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async with doors(never) as runner:
        async with client(runner) as (_, writer):
            writer.write(get("/"))
            await asyncio.wait_for(begun.wait(), 20)
            assert not ended.is_set()
        await asyncio.wait_for(ended.wait(), 20)


async def test_what_cannot_be_answered_is_a_500_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: Asked) -> web.StreamResponse:
        raise ValueError("no")

    async with doors(broken) as runner, client(runner) as (reader, writer):
        writer.write(get("/"))
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 500 ")
    assert "ValueError: no" in caplog.text


async def test_letting_go_waits_for_what_is_under_way() -> None:
    begun, going_on = asyncio.Event(), asyncio.Event()

    async def slowly(request: Asked) -> web.StreamResponse:
        begun.set()
        await going_on.wait()
        return await echo(request)

    async with (
        doors(slowly) as runner,
        client(runner) as (idle, _),
        client(runner) as (answered, asking),
        client(runner) as (sent, sending),
    ):
        asking.write(get("/a"))
        sending.write(post("/b", b"12")[:-1])
        assert runner.server is not None
        await asyncio.wait_for(begun.wait(), 20)
        while len(runner.server.connections) < 3 or not any(  # noqa: ASYNC110 -- nothing tells that a head is here
            reading.headed for door in runner.server.connections if (reading := cast(Door, door)._reading)
        ):
            await asyncio.sleep(0)
        for door in list(runner.server.connections):
            cast(Door, door).let_go()
        assert await asyncio.wait_for(idle.read(), 20) == b""
        going_on.set()
        sending.write(b"2")
        for reader, path in ((answered, "/a"), (sent, "/b")):
            assert path in await answer(reader)
            assert await asyncio.wait_for(reader.read(), 20) == b""


async def test_a_connection_that_is_quiet_for_too_long_is_ended() -> None:
    async with doors(echo, keepalive_timeout=0.05) as runner, client(runner) as (reader, writer):
        writer.write(get("/a"))
        assert await answer(reader) == "plain GET /a "
        assert await asyncio.wait_for(reader.read(), 20) == b""


async def test_closing_the_server_waits_for_an_answer_and_then_ends_it() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def never(request: Asked) -> web.StreamResponse:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async with doors(never) as runner, client(runner) as (reader, writer):
        runner._shutdown_timeout = 0.05
        writer.write(get("/"))
        await asyncio.wait_for(begun.wait(), 20)
        await runner.cleanup()
        assert cancelled.is_set()
        assert await asyncio.wait_for(reader.read(), 20) == b""
