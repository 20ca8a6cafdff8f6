import asyncio

import pytest

from agents_support import talking
from flakestorm.agents.client import ExchangeFailed
from flakestorm.agents.delivery import deliver, spelled
from flakestorm.agents.request import Request
from flakestorm.mutations.outgoing import Delivery

REPLY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def request(url: str = "http://agent/ask?a=1", **more: object) -> Request:
    return Request("POST", url, (("q", "x y"),), (("Content-Type", "application/json"),), b'{"a": 1}', **more)  # type: ignore[arg-type]


def test_the_plain_way_is_a_length_and_a_close() -> None:
    head, _, body = spelled(request(), Delivery()).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /ask?a=1&q=x+y HTTP/1.1"
    assert {"Host: agent", "Content-Type: application/json", "Content-Length: 8", "Connection: close"} <= {*lines}
    assert body == b'{"a": 1}'


def test_chunks_are_of_the_size_and_trailers_come_last() -> None:
    head, _, body = spelled(request(), Delivery(chunk_bytes=5, trailers=(("X-T", "1"),))).partition(b"\r\n\r\n")
    assert body == b'5\r\n{"a":\r\n3\r\n 1}\r\n0\r\nX-T: 1\r\n\r\n'
    assert b"Transfer-Encoding: chunked" in head
    assert b"Trailer: X-T" in head
    assert b"Content-Length" not in head


def test_version_and_length_may_be_wrong_and_lines_are_never_broken() -> None:
    odd = Request("POST", "http://agent/", (), (("X", "a\r\nInjected: yes"),), b"body")
    said = spelled(odd, Delivery(version="9.9", length=-4))
    assert b"POST / HTTP/9.9\r\n" in said
    assert b"Content-Length: -4\r\n" in said
    assert b"X: a Injected: yes\r\n" in said


async def test_copies_overlap_and_each_has_its_reply() -> None:
    open_now = 0
    most = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await reader.readuntil(b'{"a": 1}')
        writer.write(REPLY)
        await writer.drain()
        open_now -= 1

    async with talking(script) as url:
        found = await deliver(request(url), Delivery(copies=5), limit_bytes=100)
    assert [response.body for response in found] == [b"ok"] * 5
    assert most == 5


async def test_pieces_come_one_by_one_with_the_pause_between() -> None:
    arrived: list[float] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got = b""
        while not got.endswith(b"}"):
            got += await reader.read(65536)
            arrived.append(asyncio.get_running_loop().time())
        writer.write(REPLY)
        await writer.drain()

    async with talking(script) as url:
        (response,) = await deliver(request(url), Delivery(pieces=3, pause_s=0.02), limit_bytes=100)
    assert response.status == 200
    assert len(arrived) == 3


async def test_an_early_reply_ends_the_waiting() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(REPLY)
        await writer.drain()

    async with talking(script) as url, asyncio.timeout(10):
        (response,) = await deliver(request(url), Delivery(pieces=2, pause_s=60.0), limit_bytes=100)
    assert response.body == b"ok"


async def test_one_copy_without_a_reply_is_a_failure() -> None:
    served = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        served += 1
        mine = served
        await reader.readuntil(b'{"a": 1}')
        if mine != 2:
            writer.write(REPLY)
            await writer.drain()

    async with talking(script) as url:
        with pytest.raises(ExchangeFailed):
            await deliver(request(url), Delivery(copies=3), limit_bytes=100)


async def test_a_reply_to_head_has_no_body() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n")
        await writer.drain()

    async with talking(script) as url, asyncio.timeout(10):
        (response,) = await deliver(Request("HEAD", url), Delivery(), limit_bytes=100)
    assert response.body == b""
