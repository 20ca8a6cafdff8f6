"""Reading request bodies as a server sees them; through the gateway they are tested in test_gateway.py."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from flakestorm.boundary import upload
from flakestorm.boundary.route import Lost
from flakestorm.boundary.upload import Upload


async def read(request: bytes, *, iterate: bool = False) -> tuple[Upload, bytes | Lost]:
    """What an upload makes of this request."""
    found: list[tuple[Upload, bytes | Lost]] = []

    async def handler(base: web.BaseRequest) -> web.StreamResponse:
        it = Upload(base)
        try:
            body = b"".join([chunk async for chunk in it]) if iterate else await it.whole()
            assert b"".join([chunk async for chunk in it]) == body  # whoever sends it a second time sends the same
            found.append((it, body))
        except Lost as lost:
            found.append((it, lost))
        answer = web.Response()
        answer.force_close()
        return answer

    runner = web.ServerRunner(web.Server(handler, access_log=None, lingering_time=0))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        writer.write(request)
        await reader.read()
        writer.close()
    finally:
        await runner.cleanup()
    return found[0]


def post(*headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join(("POST / HTTP/1.1", "Host: h", *headers, "", "")).encode() + body


@pytest.mark.parametrize("iterate", [True, False])
@pytest.mark.parametrize(
    "request_",
    [post("Content-Length: 3", body=b"abc"), post("Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n")],
)
async def test_a_body_is_read_and_remembered(request_: bytes, iterate: bool) -> None:
    it, body = await read(request_, iterate=iterate)
    assert body == bytes(it.seen) == b"abc"
    assert it.lost is None


@pytest.mark.parametrize("iterate", [True, False])
async def test_too_large_a_body_is_lost(iterate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "MAX_BODY_BYTES", 2)
    it, lost = await read(post("Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n"), iterate=iterate)
    assert isinstance(lost, Lost)
    assert (lost.status, it.lost) == (413, lost)


async def test_a_body_that_announces_too_much_is_not_read_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "MAX_BODY_BYTES", 2)
    it, lost = await read(post("Content-Length: 3", body=b"abc"))
    assert isinstance(lost, Lost)
    assert bytes(it.seen) == b""
