"""Requests as a server sees them, read as calls; through the gateway they are tested in test_gateway.py."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web

from flakestorm.boundary import upload
from flakestorm.boundary.asked import Asked
from flakestorm.boundary.delivery import deliver
from flakestorm.boundary.door import Doors
from flakestorm.boundary.incoming import call_of, patience_of, peer_of
from flakestorm.boundary.passage import Passage
from flakestorm.boundary.patience import Patience
from flakestorm.boundary.route import Lost
from flakestorm.core.call import Call, Reply
from flakestorm.core.clock import Clock

CLOCK = Clock(time.monotonic)
URL = "http://up.example:8/v1/chat?x=1"


async def calls(*requests: bytes) -> list[tuple[Call, Patience, object] | Lost]:
    """What is made of these requests, sent one after the other on one connection."""
    found: list[tuple[Call, Patience, object] | Lost] = []
    passage = Passage("token")

    async def handler(request: Asked) -> web.StreamResponse:
        patience = patience_of(request, CLOCK)
        try:
            found.append((await call_of(request, URL, passage, patience, "base"), patience, peer_of(request)))
        except Lost as lost:
            found.append(lost)
        return await deliver(request, Reply(200, (("Content-Length", "0"),)))

    runner = web.ServerRunner(Doors(handler, access_log=None, lingering_time=0))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        for request in requests:
            writer.write(request)
            await reader.readuntil(b"\r\n\r\n")
        writer.close()
    finally:
        await runner.cleanup()
    return found


async def call(*headers: str, body: bytes = b"") -> tuple[Call, Patience]:
    (found,) = await calls(post(*headers, body=body))
    assert not isinstance(found, Lost)
    return found[0], found[1]


def post(*headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join(("POST /r/token/p/x HTTP/1.1", "Host: 127.0.0.1", *headers, "", "")).encode() + body


async def test_a_request_is_a_call_to_where_it_is_meant_to_go() -> None:
    found, _ = await call("X-One: 1", "Connection: x-two", "X-Two: 2", "Content-Length: 3", body=b"abc")
    assert (found.method, found.url, found.body, found.upload) == ("POST", URL, b"abc", None)
    assert found.headers == (("Host", "up.example:8"), ("X-One", "1"), ("Content-Length", "3"))


async def test_a_body_that_is_still_being_made_is_passed_on_as_it_comes() -> None:
    found, _ = await call("Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n")
    assert (found.body, type(found.upload).__name__) == (b"", "Upload")
    found, _ = await call("Transfer-Encoding: chunked", "Content-Type: text/JSON", body=b"3\r\nabc\r\n0\r\n\r\n")
    assert (found.body, found.upload) == (b"abc", None)


async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked() -> None:
    found, _ = await call("Expect: 100-continue", "Content-Length: 3", body=b"abc")
    assert found.body == b"abc"


async def test_too_large_a_body_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "MAX_BODY_BYTES", 2)
    (found,) = await calls(post("Content-Length: 3", body=b"abc"))
    assert isinstance(found, Lost)
    assert found.status == 413


async def test_calls_of_one_connection_are_on_one_lane_and_its_address_is_asked_for_once() -> None:
    one, two = await calls(post("Content-Length: 0"), post("Content-Length: 0"))
    assert not isinstance(one, Lost)
    assert not isinstance(two, Lost)
    assert one[0].lane == two[0].lane == "1"
    assert one[2] is two[2]


async def test_the_shim_says_on_which_lane_a_call_is_made_and_nobody_else_hears_of_it() -> None:
    found, _ = await call("X-Flakestorm-Lane: 7-1.job2", "X-One: 1", "Content-Length: 0")
    assert found.lane == "1.job2"
    assert found.headers == (("Host", "up.example:8"), ("X-One", "1"), ("Content-Length", "0"))
    found, _ = await call("X-Flakestorm-Lane: 7-1.job2", "Transfer-Encoding: chunked", body=b"0\r\n\r\n")
    assert (found.lane, found.headers) == ("1.job2", (("Host", "up.example:8"),))


@pytest.mark.parametrize(
    ("header", "read_s"),
    [
        ("X-Flakestorm-Patience-Ms: 1500", 1.5),
        ("x-stainless-read-timeout: 600", 600.0),
        ("X-Stainless-Timeout: 7", 7.0),
        ("x-server-timeout: 2", 2.0),
        ("x-stainless-timeout: soon", None),
        ("x-stainless-timeout: -1", None),
        ("x-stainless-timeout: inf", None),
        ("x-other: 3", None),
    ],
)
async def test_a_client_says_how_long_it_waits(header: str, read_s: float | None) -> None:
    found, patience = await call(header, "Content-Length: 0")
    assert found.patience_s == patience.read_s == read_s
