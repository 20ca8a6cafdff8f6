"""The seam in aiohttp: the response it builds, and what it leaves alone. Clients against servers: tests/sdk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import web

from flakestorm.boundary.seams import aiohttp_client
from flakestorm.core.call import PULL, Call, Chunks, Reply, Sleep
from flakestorm.core.pipeline import Flow
from flakestorm.errors import CallFailed, Misuse
from inprocess_support import Watcher, crossing
from upstream import Canned, Gate, Upstream, sse


def test_a_version_that_is_too_old_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        async def _request(self, method: str, url: str) -> None: ...

    monkeypatch.setattr(aiohttp_client, "aiohttp", SimpleNamespace(ClientSession=Old))
    with pytest.raises(Misuse, match=r"aiohttp .* is too old .* install aiohttp 3\.12 or newer"):
        aiohttp_client.patches(aiohttp)


def outage(call: Call) -> Flow:
    headers = (("Content-Type", "application/json; charset=utf-8"), ("Set-Cookie", "seen=yes"))
    return Reply(503, headers, b'{"error": "down"}')
    yield call


async def test_a_made_up_response_is_one_in_every_respect() -> None:
    with crossing(outage):
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            async with session.get("http://127.0.0.1:9/x?q=1") as reply:
                assert (reply.status, reply.reason, reply.ok) == (503, "Service Unavailable", False)
                assert (reply.method, str(reply.url)) == ("GET", "http://127.0.0.1:9/x?q=1")
                assert str(reply.request_info.url) == "http://127.0.0.1:9/x?q=1"
                assert (reply.content_type, reply.charset, reply.version) == (
                    "application/json",
                    "utf-8",
                    aiohttp.HttpVersion11,
                )
                assert not reply.closed
                assert await reply.json() == {"error": "down"}
                assert await reply.text() == '{"error": "down"}'
                assert (reply.closed, reply.history, reply.connection) == (True, (), None)
                assert reply.raw_headers[0] == (b"Content-Type", b"application/json; charset=utf-8")
                with pytest.raises(aiohttp.ClientResponseError) as caught:
                    reply.raise_for_status()
                assert caught.value.status == 503
            assert [cookie.value for cookie in session.cookie_jar] == ["yes"]
            with pytest.raises(aiohttp.ClientResponseError):
                await session.get("http://127.0.0.1:9/x", raise_for_status=True)


async def test_the_session_s_own_response_class_is_used(up: Upstream) -> None:
    class Mine(aiohttp.ClientResponse):
        pass

    with crossing(Watcher()):
        async with aiohttp.ClientSession(response_class=Mine) as session, session.get(f"{up.url}/x") as reply:
            assert isinstance(reply, Mine)


async def test_a_response_may_be_read_without_a_block(up: Upstream) -> None:
    with crossing(Watcher()):
        async with aiohttp.ClientSession() as session:
            reply = await session.post(f"{up.url}/x", data=b"q")
            assert await reply.json() == {"got": "q"}
            unread = await session.post(f"{up.url}/x", data=b"q")
            unread.release()
            with pytest.raises(aiohttp.ClientConnectionError):
                await unread.read()


async def test_every_way_to_read_a_stream(up: Upstream) -> None:
    up.reply("/s", Canned((b"one\n", b"two\n"), chunked=True))
    with crossing(Watcher()):
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{up.url}/s") as reply:
                assert [line async for line in reply.content] == [b"one\n", b"two\n"]
            async with session.get(f"{up.url}/s") as reply:
                assert [c async for c in reply.content.iter_chunks()] == [(b"one\n", True), (b"two\n", True)]
            async with session.get(f"{up.url}/s") as reply:
                assert [c async for c in reply.content.iter_chunked(3)] == [b"one", b"\n", b"two", b"\n"]
            async with session.get(f"{up.url}/s") as reply:
                assert await reply.content.readexactly(6) == b"one\ntw"
                assert await reply.content.readuntil(b"\n") == b"o\n"
                assert (await reply.content.read(), reply.content.at_eof()) == (b"", True)
            async with session.get(f"{up.url}/s") as reply:
                await reply.content.wait_eof()
                assert await reply.read() == b"one\ntwo\n"


async def test_connections_are_kept_and_given_back(up: Upstream) -> None:
    up.reply("/s", sse(["one", "two"]))
    with crossing(Watcher()):
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
            for _ in range(3):
                async with session.get(f"{up.url}/x") as reply:
                    await reply.read()
            assert up.connections == 1
            for _ in range(3):
                async with session.get(f"{up.url}/s") as reply:
                    await reply.content.readany()


async def test_closing_a_response_under_its_reader_ends_the_read(up: Upstream) -> None:
    gate = Gate()
    up.reply("/s", sse(["one", "two"], gates={1: gate}))
    watcher = Watcher()
    with crossing(watcher):
        async with aiohttp.ClientSession() as session:
            reply = await session.get(f"{up.url}/s")
            assert await reply.content.readany() == b"data: one\n\n"
            reading = asyncio.create_task(reply.content.readany())
            await asyncio.sleep(0)  # the reader has run until it waits
            with pytest.raises(RuntimeError, match="already waiting"):
                await reply.content.readany()
            reply.close()
            with pytest.raises(aiohttp.ClientConnectionError):
                await reading
            assert reading.cancelling() == 0
    gate.open()
    assert watcher.ends == ["broken"]


async def test_cancelling_a_reader_lets_the_connection_go(up: Upstream) -> None:
    gate = Gate()
    up.reply("/s", sse(["one"], gates={0: gate}))
    watcher = Watcher()
    with crossing(watcher):
        async with aiohttp.ClientSession() as session:
            reply = await session.get(f"{up.url}/s")
            reading = asyncio.create_task(reply.read())
            await asyncio.sleep(0)  # the reader has run until it waits
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
    gate.open()
    assert [type(failure) for failure in watcher.failures] == [asyncio.CancelledError]


def late(call: Call) -> Flow:
    yield Sleep(3600)
    return (yield call)


def dawdling(call: Call) -> Flow:
    def dawdle() -> Chunks:
        while (chunk := (yield PULL)) is not None:
            yield chunk
            yield Sleep(3600)

    reply = yield call
    assert isinstance(reply, Reply)
    return reply.pipe(dawdle)


@pytest.mark.parametrize("stage", [late, dawdling])
async def test_the_total_time_out_ends_everything(up: Upstream, stage: Watcher) -> None:
    timeout = aiohttp.ClientTimeout(total=0.05)
    with crossing(stage):
        async with aiohttp.ClientSession(timeout=timeout) as session:
            with pytest.raises(TimeoutError) as caught:
                await (await session.get(f"{up.url}/x")).read()
    assert type(caught.value) is TimeoutError


async def test_the_total_time_out_ends_a_silent_stream_too(up: Upstream) -> None:
    gate = Gate()
    up.reply("/s", sse(["one"], gates={0: gate}))
    watcher = Watcher()
    with crossing(watcher):
        async with aiohttp.ClientSession() as session:
            reply = await session.get(f"{up.url}/s", timeout=aiohttp.ClientTimeout(total=0.2))
            with pytest.raises(TimeoutError):
                await reply.read()
    gate.open()
    assert watcher.failures


@pytest.mark.parametrize(
    ("given", "patience_s"),
    [(None, None), (7, 7), (aiohttp.ClientTimeout(total=9, sock_read=3), 3), (aiohttp.ClientTimeout(), None)],
)
async def test_time_outs_given_to_one_request(
    up: Upstream, given: float | aiohttp.ClientTimeout | None, patience_s: float | None
) -> None:
    watcher = Watcher()
    with crossing(watcher):
        async with aiohttp.ClientSession() as session:
            await (await session.get(f"{up.url}/x", timeout=given)).read()  # type: ignore[arg-type]
            await (await session.get(f"{up.url}/x")).read()
    assert [call.patience_s for call in watcher.calls] == [patience_s, 300]


async def test_the_agent_s_own_middlewares_stay_outside(up: Upstream) -> None:
    seen: list[int] = []

    async def retry(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        for _ in range(2):
            reply = await handler(request)
            seen.append(reply.status)
            if reply.status < 500:
                break
        return reply

    busy = [True]

    def busy_once(call: Call) -> Flow:
        if busy and busy.pop():
            return Reply(503)
        return (yield call)

    watcher = Watcher()
    with crossing(watcher, busy_once):
        async with aiohttp.ClientSession(middlewares=(retry,)) as session, session.get(f"{up.url}/x") as reply:
            assert reply.status == 200
    assert seen == watcher.statuses == [503, 200]


async def test_an_idempotent_call_that_was_reset_is_tried_again_as_aiohttp_does(up: Upstream) -> None:
    failing = [CallFailed("reset", injected=True)]

    def flaky(call: Call) -> Flow:
        if failing:
            raise failing.pop()
        return (yield call)

    watcher = Watcher()
    with crossing(watcher, flaky):
        async with aiohttp.ClientSession() as session, session.get(f"{up.url}/x") as reply:
            assert reply.status == 200
    assert (len(watcher.calls), up.count("/x")) == (2, 1)


async def test_a_body_still_being_produced_is_not_read_by_the_seam(up: Upstream) -> None:
    async def produce() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    watcher = Watcher()
    with crossing(watcher):
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{up.url}/x", data=produce()) as reply:
                assert await reply.json() == {"got": "one two"}
            async with session.post(f"{up.url}/x", json={"q": 1}) as reply:
                assert await reply.json() == {"got": '{"q": 1}'}
    assert [(call.body, call.upload is None) for call in watcher.calls] == [(b"", False), (b'{"q": 1}', True)]


async def test_the_handshake_of_a_web_socket_crosses_and_unix_sockets_are_left_alone(tmp_path: Path) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade") != "websocket":
            return web.Response(text="plain")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(f"echo {message.data}")
        return socket

    app = web.Application()
    app.router.add_get("/", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    path = str(tmp_path / "s")
    await web.UnixSite(runner, path).start()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[1][1]
    watcher = Watcher()
    with crossing(watcher):
        async with aiohttp.ClientSession() as session, session.ws_connect(f"http://127.0.0.1:{port}/") as socket:
            await socket.send_str("hi")
            assert await socket.receive_str() == "echo hi"
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as session:
            assert await (await session.get("http://local/")).text() == "plain"
    await runner.cleanup()
    assert [(call.method, call.url) for call in watcher.calls] == [("GET", f"http://127.0.0.1:{port}/")]


async def test_a_web_socket_can_be_refused_by_a_stage() -> None:
    def refuse(_: Call) -> Flow:
        return Reply(503, (("Content-Length", "4"),), b"busy")
        yield

    with crossing(refuse):
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect("http://127.0.0.1:1/")
    assert refused.value.status == 503
