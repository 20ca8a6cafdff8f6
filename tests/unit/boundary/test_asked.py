from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.boundary import asked
from flakestorm.boundary.asked import PLAIN_BYTES, Asked, Reading, Whole

DOOR: Any = object()


def request(line: str, *fields: str, body: bytes = b"") -> bytes:
    return "\r\n".join((line, *fields, "", "")).encode("latin-1") + body


POST = request("POST /a%2f?b=%20&c HTTP/1.1", "Host: h", "X-A:  1 \t", "Content-Length: 5", body=b"hello")
PLAIN = [
    POST,
    request("GET / HTTP/1.1", "Host: h"),
    request("GET http://up.test/x HTTP/1.1", "Host: up.test", "Proxy-Authorization: Basic eA=="),
    request("DELETE /%C3%A9 HTTP/1.1", "hOsT: h", "X-Latin: \xe9", "X-Utf: \xc3\xa9", "X-Empty:"),
    request("GET / HTTP/1.1", "Host: h", "Connection: close"),
    request("GET / HTTP/1.0", "Host: h"),
    request("GET / HTTP/1.0", "Host: h", "Connection: keep-alive"),
    request("PUT / HTTP/1.1", "Host: h", "Content-Length: 0", "Content-Encoding: gzip"),
    request("PATCH / HTTP/1.1", "Host: h", "Content-Length: 3", "Content-Encoding: gzip", body=b"\0\1\2"),
]
ODD = [
    request("POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n"),
    request("POST / HTTP/1.1", "Host: h", "Content-Length: 3", "Expect: 100-continue", body=b"abc"),
    request("POST / HTTP/1.1", "Host: h", "Content-Length: 3", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    request("POST / HTTP/1.1", "Host: h", "Content-Length: 3", "Content-Length: 4", body=b"abc"),
    request("POST / HTTP/1.1", "Host: h", "Content-Length: 3", "Content-Length: 3", body=b"abc"),
    request("GET / HTTP/1.1", "Host: h", "Host: i"),
    request("GET / HTTP/1.1", "X-A: 1"),
    request("GET / HTTP/1.1", "Host: h", "Connection: upgrade", "Upgrade: websocket"),
    request("GET / HTTP/1.1", "Host: h", "Upgrade: h2c"),
    request("CONNECT h:443 HTTP/1.1", "Host: h:443"),
    request("GET / HTTP/2.0", "Host: h"),
    request("GET / HTTP/1.1", "Host : h"),
    request("GET / HTTP/1.1", "Host: h", " folded: 1"),
    request("GET /\xc3\xa9 HTTP/1.1", "Host: h"),
    request("NONSENSE"),
    POST + POST,
    POST + b"GET",
    b"\x16\x03\x01\0\0",
]


def read(*pieces: bytes) -> list[Whole | bytes | None]:
    """What is made of these pieces, up to where it is somebody else's to read."""
    reading, found = Reading(), list[Whole | bytes | None]()
    for piece in pieces:
        found.append(reading.read(piece, DOOR))
        if isinstance(found[-1], bytes):
            break
    return found


def split(data: bytes, at: int) -> tuple[bytes, bytes]:
    at %= len(data)
    return data[:at], data[at:]


def told(of: Asked) -> tuple[object, ...]:
    headers = sorted((name.lower(), value) for name, value in of.headers.items())
    return of.method, of.raw_path, tuple(of.version), headers, of.raw_headers, of.keep_alive, of.body_exists


async def by_aiohttp(data: bytes) -> tuple[tuple[object, ...], bytes]:
    """The same request as aiohttp's server sees it."""
    found: list[tuple[tuple[object, ...], bytes]] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        found.append((told(request), await request.read()))
        return web.Response(headers={"Connection": "close"})

    runner = web.ServerRunner(web.Server(handler, access_log=None, auto_decompress=False))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        writer.write(data)
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
    finally:
        await runner.cleanup()
    return found[0]


@pytest.mark.parametrize("data", PLAIN)
async def test_a_plain_request_is_what_aiohttp_would_have_made_of_it(data: bytes) -> None:
    (whole,) = read(data)
    assert isinstance(whole, Whole)
    assert (told(whole), whole.body) == await by_aiohttp(data)
    assert whole.protocol is DOOR


@given(st.sampled_from(PLAIN), st.integers(0), st.integers(0))
def test_in_however_many_pieces_it_comes(data: bytes, one: int, two: int) -> None:
    first, rest = split(data, one)
    second, third = split(rest, two)
    *before, whole = read(*filter(None, (first, second, third)))
    assert before == [None] * len(before)
    assert isinstance(whole, Whole)
    (at_once,) = read(data)
    assert isinstance(at_once, Whole)
    assert (told(whole), whole.body) == (told(at_once), at_once.body)


@given(st.sampled_from(ODD), st.integers(0))
def test_what_is_odd_is_given_back_as_it_came(data: bytes, at: int) -> None:
    first, rest = split(data, at)
    given_back, taken = b"", 0
    reading = Reading()
    for piece in filter(None, (first, rest)):
        came = reading.read(piece, DOOR)
        taken += len(piece)
        if isinstance(came, bytes):
            given_back = came
            break
        if isinstance(came, Whole):  # the first of two, where nothing of the second was there
            assert data in (POST + POST, POST + b"GET")
            assert piece == POST
            return
    if data == POST + b"GET" and not given_back:
        return
    assert given_back == data[:taken]


def test_requests_one_after_the_other() -> None:
    one, nothing, two = read(POST, PLAIN[1][:5], PLAIN[1][5:])
    assert isinstance(one, Whole)
    assert nothing is None
    assert isinstance(two, Whole)
    assert (one.method, one.body, two.method, two.body) == ("POST", b"hello", "GET", b"")


def test_a_body_is_waited_for_once_its_head_is_here() -> None:
    reading = Reading()
    assert reading.read(POST[:20], DOOR) is None
    assert not reading.headed
    assert reading.read(POST[20:-2], DOOR) is None
    assert reading.headed
    assert isinstance(reading.read(POST[-2:], DOOR), Whole)
    assert not reading.headed


def test_what_is_large_is_not_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    head = request("POST / HTTP/1.1", "Host: h", f"Content-Length: {PLAIN_BYTES}")
    *before, last = read(head, *[bytes(PLAIN_BYTES // 4)] * 4)
    assert before == [None] * 4
    assert last == head + bytes(PLAIN_BYTES)
    head = request("POST / HTTP/1.1", "Host: h", f"Content-Length: {PLAIN_BYTES + 1}")
    assert read(head) == [head]
    monkeypatch.setattr(asked, "_HEAD_BYTES", 20)
    assert read(POST[:30]) == [POST[:30]]
