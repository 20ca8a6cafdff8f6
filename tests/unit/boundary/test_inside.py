"""What an agent sends inside a tunnel, seen from both ends: by real TLS clients, and on the run's pipeline."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from flakestorm.boundary import inside
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import Flow
from flakestorm.errors import CallFailed
from gateway_support import Held, held
from tls_support import Private
from upstream import HANG_UP, Canned, Gate, Upstream, document, sse, text


@pytest.fixture
def private(tmp_path: Path) -> Private:
    return Private(tmp_path)


@pytest.fixture
def up(private: Private) -> Iterator[Upstream]:
    with Upstream(tls=private.server()) as upstream:
        upstream.reply("/ok", text("fine"))
        yield upstream


@pytest.fixture
async def gate(private: Private) -> AsyncIterator[Held]:
    async with held(intercept=True, SSL_CERT_FILE=private.file) as it:
        yield it


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def tunnel(gate: Held, authority: str) -> AsyncIterator[Ends]:
    """An open tunnel, nothing said in it yet."""
    token = base64.b64encode(f"x:{gate.channel.token}".encode()).decode()
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.gateway.port)
    try:
        writer.write(
            f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nProxy-Authorization: Basic {token}\r\n\r\n".encode()
        )
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection established\r\n\r\n"
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


def trusting(gate: Held) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=gate.channel.env["SSL_CERT_FILE"])


@asynccontextmanager
async def secure(gate: Held, up: Upstream, context: ssl.SSLContext | None = None) -> AsyncIterator[Ends]:
    async with tunnel(gate, f"127.0.0.1:{up.port}") as (reader, writer):
        await writer.start_tls(context or trusting(gate), server_hostname="127.0.0.1")
        yield reader, writer


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: whatever", *headers, "", "")).encode()


async def reply(reader: asyncio.StreamReader, length: int) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    return head.partition("\r\n")[0], await reader.readexactly(length)


async def test_requests_in_tls_cross_like_any_others(gate: Held, up: Upstream) -> None:
    async with secure(gate, up) as (reader, writer):
        for n in range(2):
            writer.write(get(f"/ok?n={n}&q=%2F", "X-A: 1"))
            assert await reply(reader, 4) == ("HTTP/1.1 200 OK", b"fine")
    assert gate.watch.urls == [f"{up.url}/ok?n={n}&q=%2F" for n in range(2)]
    assert {seen.call.lane for seen in gate.watch.seen} == {"1"}
    assert [request.headers["host"] for request in up.requests] == [f"127.0.0.1:{up.port}"] * 2


async def test_requests_in_the_clear_cross_too(gate: Held) -> None:
    with Upstream() as up:
        up.reply("/ok", text("fine"))
        async with tunnel(gate, f"127.0.0.1:{up.port}") as (reader, writer):
            writer.write(get("/ok"))
            assert await reply(reader, 4) == ("HTTP/1.1 200 OK", b"fine")
        assert gate.watch.urls == [f"{up.url}/ok"]


async def test_the_schemes_own_port_is_not_part_of_the_url() -> None:
    def answer(call: Call) -> Flow:
        urls.append(call.url)
        return Reply(200, (("Content-Length", "2"),), b"ok")
        yield

    urls: list[str] = []
    async with held(answer, intercept=True) as gate, tunnel(gate, "api.test:443") as (reader, writer):
        await writer.start_tls(trusting(gate), server_hostname="api.test")
        writer.write(get("/v1/x"))
        assert await reply(reader, 2) == ("HTTP/1.1 200 OK", b"ok")
    assert urls == ["https://api.test/v1/x"]


async def test_a_request_may_come_along_with_the_end_of_the_handshake(gate: Held, up: Upstream) -> None:
    from_gate, to_gate = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(gate).wrap_bio(from_gate, to_gate, server_hostname="127.0.0.1")
    async with tunnel(gate, f"127.0.0.1:{up.port}") as (reader, writer):
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(to_gate.read())
                from_gate.write(await reader.read(65536))
        client.write(get("/ok"))
        writer.write(to_gate.read())  # the last of the handshake, and the request
        data = b""
        while not data.endswith(b"fine"):
            from_gate.write(await reader.read(65536))
            with suppress(ssl.SSLWantReadError):
                while True:  # what came may be several records, and each read gives what is in one
                    data += client.read()
    assert data.startswith(b"HTTP/1.1 200 OK")


async def test_a_stream_is_delivered_as_it_arrives(gate: Held, up: Upstream) -> None:
    hold = Gate()
    up.reply("/stream", sse([{"n": 1}, {"n": 2}], gates={1: hold}))
    async with secure(gate, up) as (reader, writer):
        writer.write(get("/stream"))
        assert b'"n": 1' in await reader.readuntil(b'{"n": 1}')
        hold.open()
        assert b'"n": 2' in await reader.readuntil(b"0\r\n\r\n")
    assert gate.watch.seen[0].end == "eof"


@pytest.mark.parametrize("how", ["timeout", "refused"])
async def test_a_fault_breaks_the_call_and_nothing_gets_through(up: Upstream, private: Private, how: str) -> None:
    def broken(_: Call) -> Flow:
        raise CallFailed(how, injected=True)  # type: ignore[arg-type]
        yield

    async with (
        held(broken, intercept=True, SSL_CERT_FILE=private.file) as gate,
        secure(gate, up) as (reader, writer),
    ):
        writer.write(get("/ok"))
        status = (await reader.readline()).split()[1]
    assert status == {"timeout": b"504", "refused": b"502"}[how]
    assert up.count() == 0


async def test_a_reset_is_a_tcp_reset(up: Upstream, private: Private) -> None:
    def broken(_: Call) -> Flow:
        raise CallFailed("reset", injected=True)
        yield

    async with (
        held(broken, intercept=True, SSL_CERT_FILE=private.file) as gate,
        secure(gate, up) as (reader, writer),
    ):
        writer.write(get("/ok"))
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_a_break_in_the_middle_is_a_break_in_the_middle(gate: Held, up: Upstream) -> None:
    up.reply("/cut", Canned((b"some", HANG_UP), chunked=True))
    async with secure(gate, up) as (reader, writer):
        writer.write(get("/cut"))
        data = await reader.read()
    assert data.endswith(b"4\r\nsome\r\n")
    assert await gate.watch.seen[0].over() == "broken"


async def test_a_client_that_leaves_ends_its_call(gate: Held, up: Upstream) -> None:
    hold = Gate()
    up.reply("/stream", sse([{"n": 1}, {"n": 2}], gates={1: hold}))
    async with secure(gate, up) as (reader, writer):
        writer.write(get("/stream"))
        await reader.readuntil(b'{"n": 1}')
        writer.transport.abort()
        assert await gate.watch.seen[0].over() == "client left"
    hold.open()


async def test_a_certificate_that_nobody_vouches_for_is_never_accepted(up: Upstream) -> None:
    async with held(intercept=True, SSL_CERT_FILE="") as gate, secure(gate, up) as (reader, writer):
        writer.write(get("/ok"))
        status, _ = await reply(reader, 0)
        said = (await reader.read(1000)).decode()
    assert status == "HTTP/1.1 502 Bad Gateway"
    assert f"the certificate of {up.url} is not accepted: unable to get local issuer certificate" in said
    assert "SSL_CERT_FILE in agent.env" in said
    assert up.count() == 0


async def test_a_certificate_for_another_host_is_not_accepted(private: Private) -> None:
    with Upstream(tls=private.server("other.test")) as up:
        async with (
            held(intercept=True, SSL_CERT_FILE=private.file) as gate,
            secure(gate, up) as (reader, writer),
        ):
            writer.write(get("/ok"))
            await reply(reader, 0)
            assert "certificate is not valid for" in (await reader.read(1000)).decode()
        assert up.count() == 0


async def test_a_client_that_refuses_the_certificate_is_named(gate: Held, up: Upstream) -> None:
    async with tunnel(gate, f"127.0.0.1:{up.port}") as (_, writer):
        with pytest.raises(ssl.SSLCertVerificationError):
            await writer.start_tls(ssl.create_default_context(), server_hostname="127.0.0.1")
        await gate.watch.until(1)
    (seen,) = gate.watch.seen
    assert (seen.call.method, seen.call.url) == ("TLS", up.url)
    assert "interception certificate" in str(seen.error)  # asyncio's clients leave without an alert
    assert f"127.0.0.1:{up.port}" in str(seen.error)
    assert up.connections == 0


@pytest.mark.parametrize("how", ["after the handshake", "during the handshake"])
async def test_a_client_that_leaves_without_a_request_is_named(gate: Held, up: Upstream, how: str) -> None:
    """As pinning clients do, and Node, which looks at the certificate when the handshake is over."""
    async with tunnel(gate, f"127.0.0.1:{up.port}") as (_, writer):
        if how == "after the handshake":
            await writer.start_tls(trusting(gate), server_hostname="127.0.0.1")
        else:
            writer.write(b"\x16\x03\x01\x00\xc8\x01")  # the beginning of a handshake
        writer.close()
        await gate.watch.until(1)
    assert gate.watch.seen[0].call.method == "TLS"
    assert "refused the interception certificate" in str(gate.watch.seen[0].error)


async def test_http2_only_is_refused_in_both_languages(gate: Held, up: Upstream) -> None:
    async with secure(gate, up) as (reader, writer):
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        data = await reader.read()
    assert data[3:9] == b"\x04\0\0\0\0\0"  # SETTINGS, as every HTTP/2 server must begin
    assert data[9:].startswith(b"\0\0\x27\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0d")  # GOAWAY: HTTP_1_1_REQUIRED
    await gate.watch.until(1)
    assert "the agent speaks nothing but HTTP/2" in str(gate.watch.seen[0].error)


async def test_what_is_neither_is_carried_through_and_recorded(gate: Held) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read(100)).upper())
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        authority = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with tunnel(gate, authority) as (reader, writer):
            writer.write(b"\x00binary")
            assert await reader.read() == b"\x00BINARY"
    (seen,) = gate.watch.seen
    assert (seen.call.method, seen.call.url) == ("CONNECT", f"tcp://{authority}")


async def test_where_the_server_speaks_first_it_is_carried_through(gate: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 ready")
        writer.close()

    monkeypatch.setattr(inside, "_SILENCE_S", 0.01)
    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with tunnel(gate, f"127.0.0.1:{port}") as (reader, _):
            assert await reader.read() == b"220 ready"


async def test_an_opaque_tunnel_to_nowhere_breaks(gate: Held) -> None:
    async with tunnel(gate, "127.0.0.1:1") as (reader, writer):
        writer.write(b"\x00binary")
        with pytest.raises(ConnectionResetError):
            assert await reader.read() != b""
    assert isinstance(gate.watch.seen[0].error, CallFailed)


async def test_a_tunnel_within_a_tunnel_leads_nowhere(gate: Held, up: Upstream) -> None:
    async with secure(gate, up) as (reader, writer):
        writer.write(b"CONNECT other.test:443 HTTP/1.1\r\nHost: other.test\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
    assert up.count() == 0


async def test_the_token_ends_with_its_run(gate: Held, up: Upstream) -> None:
    async with secure(gate, up) as (reader, writer):
        gate.channel.close()
        writer.write(get("/ok"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 403 ")
    assert up.count() == 0


async def test_nothing_is_left_behind(gate: Held, up: Upstream) -> None:
    up.reply("/echo", lambda request: document({"n": request.query["n"]}))

    async def one(n: int) -> None:
        async with secure(gate, up) as (reader, writer):
            writer.write(get(f"/echo?n={n}", "Connection: close"))
            assert f'"{n}"'.encode() in await reader.read()

    await asyncio.gather(*map(one, range(20)))
    gateway = gate.gateway
    assert gateway._runner is not None
    assert gateway._runner.server is not None
    while gateway._runner.server.connections:  # noqa: ASYNC110 -- the last words may still be under way
        await asyncio.sleep(0)
    assert gateway._inside == {}
    assert len(gate.watch.seen) == 20
    assert [seen.end for seen in gate.watch.seen] == ["eof"] * 20


async def test_closing_the_gateway_breaks_what_is_open(private: Private, up: Upstream) -> None:
    async with held(intercept=True, SSL_CERT_FILE=private.file) as gate, secure(gate, up) as (reader, writer):
        writer.write(get("/ok"))
        await reply(reader, 4)
        await gate.gateway.close()
        with suppress(ConnectionError):
            assert await reader.read() == b""
