"""The client flakestorm asks agents with."""

import asyncio
import gzip
import ssl
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from agents_support import serving, talking
from flakestorm.agents import client
from flakestorm.agents.client import ExchangeFailed, Response, exchange
from flakestorm.agents.ready import free_port
from flakestorm.version import __version__

LIMIT = 2**20


async def ask(url: str, method: str = "GET", **more: Any) -> Response:
    return await exchange(method, url, **{"limit_bytes": LIMIT, **more})


async def test_it_goes_straight_to_the_agent_and_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[web.BaseRequest] = []
    peers: set[object] = set()

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(request)
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        reply = web.Response()
        reply.set_cookie("a", "b")
        return reply

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with serving(handler) as url:
        for _ in range(2):
            assert (await ask(url)).status == 200
    assert [request.cookies for request in seen] == [{}, {}]
    assert seen[0].headers["User-Agent"] == f"flakestorm/{__version__}"
    assert len(peers) == 2, "a connection was kept alive"


async def test_what_is_sent() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        said = {name: request.headers.get(name) for name in ("Host", "X-Größe", "Authorization", "User-Agent", "X-A")}
        return web.json_response([request.method, request.raw_path, said, (await request.read()).decode()])

    async with serving(handler) as url:
        host = url.removeprefix("http://")
        reply = await ask(
            f"http://me:pass%3Aword@{host}/a b/ü?x=1&y=%20%zz#part",
            "POST",
            params=[("q", "a&b c")],
            headers=(("X-A", " padded "), ("user-agent", "mine"), ("Content-Length", "999")),
            body=b"hello",
        )
    assert reply.body.decode() == (
        f'["POST", "/a%20b/%C3%BC?x=1&y=%20%25zz&q=a%26b+c", {{"Host": "{host}", "X-Gr\\u00f6\\u00dfe": null, '
        '"Authorization": "Basic bWU6cGFzczp3b3Jk", "User-Agent": "mine", "X-A": "padded"}, "hello"]'
    )


async def test_a_method_is_one_word() -> None:
    with pytest.raises(ValueError, match="no method"):
        await ask("http://a/", "GET /b HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("ftp://a/", ()),
        ("http:///x", ()),
        ("http://a:99999/", ()),
        ("http://a/", (("a b", "c"),)),
        ("http://a/", (("", "c"),)),
        ("http://a/", (("X-Größe", "c"),)),
        ("http://a/", (("a", "b\r\nc: d"),)),
        ("http://a/", (("Host", "a"), ("host", "b"))),
    ],
)
async def test_what_cannot_be_sent_is_said(url: str, headers: Any) -> None:
    with pytest.raises(ValueError, match=r"HTTP URL|out of range|no name|control characters|more than one Host"):
        await ask(url, headers=headers)


def saying(*pieces: bytes, closing: bool = True) -> Any:
    """A server that reads a request's head and says these pieces, each on its way before the next is written."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if not closing:
            await reader.read()

    return script


@pytest.mark.parametrize(
    ("pieces", "body"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"he", b"llo"], b"hello"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", b"3\r\nllo\r\n0\r\n\r\n"], b"hello"),
        ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"], b"x"),
        ([b"HTTP/1.0 200 OK\r\n\r\nuntil ", b"the end"], b"until the end"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], b""),
        ([b"HTTP/1.1 200 OK\nContent-Length: 5\n\n", b"hello"], b"hello"),
        ([b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\n", b"HTTP/1.1 200\r\nX: a\r\n b\r\nContent-Length: 1\r\n\r\nx"], b"x"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1;e=1\r\nx\r\n0\r\nT: t\r\n\r\n"], b"x"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 500 Another\r\n\r\n"], b"x"),
    ],
)
async def test_replies_of_every_framing(pieces: list[bytes], body: bytes) -> None:
    async with talking(saying(*pieces)) as url:
        reply = await ask(url)
    assert (reply.body, reply.whole) == (body, True)


async def test_a_reply_that_is_whole_is_not_waited_for_any_longer() -> None:
    async with talking(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", closing=False)) as url:
        assert (await ask(url)).body == b"ok"


async def test_the_head_alone() -> None:
    async with talking(saying(b"HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\n", closing=False)) as url:
        reply = await ask(url, limit_bytes=0)
    assert (reply.status, reply.reason, reply.whole) == (503, "Busy", False)


async def test_a_reply_to_head_has_no_body_whatever_its_head_says() -> None:
    async with talking(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", closing=False)) as url:
        reply = await ask(url, "HEAD")
    assert (reply.body, reply.whole) == (b"", True)


async def test_names_are_small_and_values_without_what_stands_around_them() -> None:
    async with talking(saying("HTTP/1.1 200 Größe\r\nX-A:  é \t\r\nContent-Length: 0\r\n\r\n".encode())) as url:
        reply = await ask(url)
    assert (reply.reason, reply.headers) == ("Größe", (("x-a", "é"), ("content-length", "0")))


async def test_an_encoded_body_comes_as_it_is() -> None:
    packed = gzip.compress(b"hello")
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    async with talking(saying(head + packed)) as url:
        reply = await ask(url)
    assert (reply.body, dict(reply.headers)["content-encoding"]) == (packed, "gzip")


async def test_more_than_is_wanted_is_cut_off() -> None:
    async with talking(saying(b"HTTP/1.1 200 OK\r\n\r\n", *[b"x" * 1000] * 50, closing=False)) as url:
        reply = await ask(url, limit_bytes=3000)
    assert not reply.whole
    assert len(reply.body) > 3000


async def test_a_reply_before_the_request_was_read_counts() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await reader.read()

    async with talking(script) as url:
        assert (await ask(url, "POST", body=b"x" * 5_000_000)).status == 413


@pytest.mark.parametrize(
    ("said", "how"),
    [
        (b"", "dropped"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "broken"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx", "broken"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n", "broken"),
        (b"220 ready\r\n\r\n", "invalid"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000, "invalid"),
        (b"HTTP/1.1 103 Early\r\n\r\n" * 20_000, "invalid"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nT: " + b"x" * 300_000, "broken"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", "invalid"),
        (b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 1\r\n\r\nx", "invalid"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", "invalid"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "invalid"),
    ],
)
async def test_what_is_no_whole_reply(said: bytes, how: str) -> None:
    async with talking(saying(said)) as url:
        with pytest.raises(ExchangeFailed) as caught:
            await ask(url)
    assert (caught.value.how, bool(caught.value.detail)) == (how, True)


async def test_nobody_there() -> None:
    with pytest.raises(ExchangeFailed) as caught:
        await ask(f"http://127.0.0.1:{free_port()}/")
    assert caught.value.how == "refused"


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that nobody else vouches for, and its key."""
    certificate, key = tmp_path / "certificate", tmp_path / "key"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run([*made.split(), *files], check=True, capture_output=True)
    return certificate, key


async def test_https_needs_somebody_to_vouch_for_the_server(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(reader, writer)
        writer.close()

    async with await asyncio.start_server(script, "127.0.0.1", 0, ssl=tls) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        with pytest.raises(ExchangeFailed, match="certificate") as caught:
            await ask(url)
        assert caught.value.how == "refused"
        monkeypatch.setattr(client, "_trust", lambda: ssl.create_default_context(cafile=certificate[0]))
        assert (await ask(url)).body == b"ok"


async def test_cancelling_closes_the_connection() -> None:
    arrived, left = asyncio.Event(), asyncio.Event()

    async def script(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()
        left.set()

    async with talking(script) as url, asyncio.timeout(20):
        asking = asyncio.create_task(ask(url))
        await arrived.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await left.wait()


@given(
    body=st.binary(max_size=300),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    chunks=st.lists(st.integers(1, 60), min_size=1, max_size=8),
)
async def test_however_a_reply_is_cut_it_is_the_same(body: bytes, cuts: list[int], chunks: list[int]) -> None:
    framed = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    at = 0
    for size in chunks:
        piece = body[at : at + size]
        at += size
        framed += b"%x\r\n%s\r\n" % (len(piece), piece) if piece else b""
    rest = body[at:]
    framed += b"%x\r\n%s\r\n" % (len(rest), rest) if rest else b""
    framed += b"0\r\n\r\n"
    edges = [0, *sorted(min(cut, len(framed)) for cut in cuts), len(framed)]
    pieces = [framed[a:b] for a, b in pairwise(edges)]
    async with talking(saying(*pieces)) as url:
        assert (await ask(url)).body == body
