"""What a reply looks like on the wire; how it gets there is in test_gateway.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import orjson
import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flakestorm.boundary.delivery import Delivery, error_reply, reset
from flakestorm.core.call import Reply

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


async def serve(handler: Handler, request: bytes) -> bytes:
    """Everything that a client which sends this request gets."""
    runner = web.ServerRunner(web.Server(handler, access_log=None))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        writer.write(request)
        try:
            return await reader.read()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
    finally:
        await runner.cleanup()


async def deliver(reply: Reply, *chunks: bytes, method: str = "GET", version: str = "1.1", keep: bool = False) -> bytes:
    """What a client gets of this reply; the same, whether it arrives or is here."""

    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def arriving(request: web.BaseRequest) -> web.StreamResponse:
        return await Delivery(request, reply).run(source())

    async def here(request: web.BaseRequest) -> web.StreamResponse:
        return await Delivery(request, reply).whole(b"".join(chunks))

    line = f"{method} / HTTP/{version}\r\nHost: h\r\n" + ("" if keep else "Connection: close\r\n") + "\r\n"
    sent = await serve(arriving, line.encode())
    if len(list(filter(None, chunks))) < 2:
        assert await serve(here, line.encode()) == sent
    return sent


async def test_a_reply_with_a_length_keeps_it() -> None:
    sent = await deliver(Reply(200, (("Content-Length", "5"),)), b"hel", b"lo")
    assert sent == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


async def test_a_reply_without_a_length_is_chunked() -> None:
    sent = await deliver(Reply(599, reason="Odd"), b"hel", b"", b"lo")
    head = b"HTTP/1.1 599 Odd\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert sent == head + b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"


async def test_an_empty_reply_has_an_end() -> None:
    assert (await deliver(Reply(200))).endswith(b"\r\n\r\n0\r\n\r\n")
    assert (await deliver(Reply(200, (("Content-Length", "0"),)))).endswith(
        b"Content-Length: 0\r\nConnection: close\r\n\r\n"
    )


async def test_more_than_was_promised_is_not_sent() -> None:
    assert (await deliver(Reply(200, (("Content-Length", "3"),)), b"he", b"llo")).endswith(b"\r\n\r\nhel")


async def test_less_than_was_promised_ends_the_connection() -> None:
    assert (await deliver(Reply(200, (("Content-Length", "9"),)), b"hel", keep=True)).endswith(b"\r\n\r\nhel")


@pytest.mark.parametrize("length", ["-1", "abc", "1_0", "²", ""])
async def test_a_senseless_length_is_not_believed(length: str) -> None:
    sent = await deliver(Reply(200, (("Content-Length", length),)), b"x")
    assert sent.endswith(b"1\r\nx\r\n0\r\n\r\n")
    assert b"Content-Length" not in sent


async def test_an_old_client_gets_the_end_of_the_connection_as_the_end() -> None:
    sent = await deliver(Reply(200), b"x", version="1.0")
    assert sent == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nx"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunks=st.lists(st.binary(max_size=50), max_size=8))
async def test_whatever_comes_in_goes_out(chunks: list[bytes]) -> None:
    body = b"".join(chunks)
    sent = await deliver(Reply(200, (("Content-Length", str(len(body))),)), *chunks)
    assert sent.partition(b"\r\n\r\n")[2] == body


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_cut_delivers_what_was_emitted_and_no_end(chunked: bool) -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"x" * 2_000_000
        raise ValueError

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        delivery = Delivery(request, Reply(200, () if chunked else (("Content-Length", "3000000"),)))
        with pytest.raises(ValueError):
            await delivery.run(source())
        return delivery.cut()

    sent = await serve(handler, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert sent.count(b"x") == 2_000_000
    assert not sent.endswith(b"0\r\n\r\n")


async def test_a_cut_that_length_cannot_show_is_a_reset() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return Delivery(request, Reply(200)).cut()

    with pytest.raises(ConnectionResetError):
        await serve(handler, b"GET / HTTP/1.0\r\nHost: h\r\n\r\n")


async def test_reset() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return reset(request)

    with pytest.raises(ConnectionResetError):
        await serve(handler, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")


def test_an_error_of_the_gateways_own_is_json_with_its_length() -> None:
    reply = error_reply(502, "refused", "nobody there", ("X-A", "1"))
    assert isinstance(reply.body, bytes)
    assert dict(reply.headers) == {
        "Content-Type": "application/json", "Content-Length": str(len(reply.body)), "X-A": "1",
    }  # fmt: skip
    assert orjson.loads(reply.body)["error"]["message"] == "flakestorm gateway: nobody there"
