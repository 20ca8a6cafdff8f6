"""Attacks on the gateway: pages in a browser, other users of this machine, and clients and upstreams that never end."""

from __future__ import annotations

import asyncio
import gzip
import resource
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from flakestorm.boundary import door
from flakestorm.boundary.door import Doors
from flakestorm.core.call import Reply
from flakestorm.core.ledger import Ledger
from flakestorm.tape.reader import Tape
from flakestorm.tape.room import CUT, ROOM_BYTES
from flakestorm.tape.writer import Recorder
from gateway_support import Held, held
from upstream import Canned, Upstream


async def said(gate: Held, request: bytes) -> bytes:
    async with gate.connection() as (reader, writer):
        writer.write(request)
        with suppress(ConnectionError):
            return await asyncio.wait_for(reader.read(), 20)
    return b""


def get(target: str, *headers: str) -> bytes:
    return "\r\n".join((f"GET {target} HTTP/1.1", "Connection: close", *headers, "", "")).encode()


async def test_it_listens_on_loopback_only(gate: Held) -> None:
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    mine = [fields[1] for fields in listening if fields[3] == "0A" and int(fields[1][-4:], 16) == gate.gateway.port]
    assert mine == [f"0100007F:{gate.gateway.port:04X}"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "[::1].evil.example"]
)
async def test_a_name_that_was_made_to_resolve_here_is_refused(gate: Held, up: Upstream, host: str) -> None:
    answer = await said(gate, get(gate.path("/ok"), f"Host: {host.format(port=gate.gateway.port)}"))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert up.count() == 0


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"])
async def test_a_page_of_somebody_else_is_refused_even_with_the_token(gate: Held, up: Upstream, origin: str) -> None:
    answer = await said(gate, get(gate.path("/ok"), "Host: 127.0.0.1", f"Origin: {origin}"))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert up.count() == 0


@pytest.mark.parametrize(
    "host", ["127.0.0.1:{port}", "localhost", "[::1]:9", "host.docker.internal:{port}", "gateway:80"]
)
async def test_names_of_this_machine_and_its_network_are_let_in(gate: Held, host: str) -> None:
    named = host.format(port=gate.gateway.port)
    answer = await said(gate, get(gate.path("/ok"), f"Host: {named}", "Origin: http://localhost:3000"))
    assert answer.endswith(b"fine")


async def test_without_the_token_nothing_is_forwarded(gate: Held, up: Upstream) -> None:
    token = gate.channel.token
    for wrong in ("", "x", token[:-1], f"{token}x", token.swapcase(), f"{token}%00", "%2e%2e"):
        for target in (f"/r/{wrong}/p/openai/ok", f"/r/{wrong}/u/http/127.0.0.1%3A{up.port}/ok"):
            assert (await said(gate, get(target, "Host: localhost"))).startswith((b"HTTP/1.1 403", b"HTTP/1.1 404"))
    assert (await said(gate, get(f"{up.url}/ok", "Host: localhost"))).startswith(b"HTTP/1.1 407 ")
    assert (await said(gate, b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).startswith(
        b"HTTP/1.1 407 "
    )
    assert up.count() == 0


async def test_a_head_that_never_ends_is_given_up(up: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flakestorm.boundary.gateway.Doors", partial(Doors, head_s=0.05))
    async with held(OPENAI_BASE_URL=up.url) as gate:
        assert (
            await said(gate, b"") == b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        assert (await said(gate, b"GET / HTTP/1.1\r\nX-Slow: ")).startswith(b"HTTP/1.1 408 ")
        assert (await said(gate, get(gate.path("/ok"), "Host: localhost"))).endswith(b"fine")


async def test_a_head_that_grows_for_ever_is_cut_off(gate: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "HEAD_BYTES", 64 * 1024)
    field = b"X-Field: " + b"x" * 8000 + b"\r\n"
    answer = await said(gate, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + field * 40)
    assert answer[:12] in (b"HTTP/1.1 431", b"")  # what was still on its way may reset the connection


@pytest.mark.parametrize("size", ["FFFFFFFFFFFFFFFF", "10000000000000000", "-1", "0x10", "7fffffffffffffff;x=y"])
async def test_impossible_chunk_sizes_harm_nobody(gate: Held, up: Upstream, size: str) -> None:
    head = get(gate.path("/ok"), "Host: localhost", "Transfer-Encoding: chunked", "Content-Type: application/json")
    async with gate.connection() as (reader, writer):
        writer.write(head.replace(b"GET", b"POST") + f"{size}\r\nabc\r\n0\r\n\r\n".encode())
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 20)
    assert answer[:12] in (b"", b"HTTP/1.1 400")
    assert up.count() == 0
    assert (await said(gate, get(gate.path("/ok"), "Host: localhost"))).endswith(b"fine")


@pytest.mark.parametrize(
    "framing", ["Content-Length: 3\r\nContent-Length: 4", "Content-Length: 3\r\nTransfer-Encoding: chunked"]
)
async def test_a_request_is_not_smuggled_behind_another(gate: Held, up: Upstream, framing: str) -> None:
    head = get(gate.path("/ok"), "Host: localhost", framing).replace(b"GET", b"POST")
    answer = await said(gate, head + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert b"fine" not in answer
    assert up.count() == 0


@pytest.mark.parametrize("field", ["Host: a\r\nHost: b", "Authorization : x", "Content-Length: +5", "X: \x01"])
async def test_a_request_that_is_no_http_is_refused_and_not_quoted(
    gate: Held, up: Upstream, caplog: pytest.LogCaptureFixture, field: str
) -> None:
    answer = await said(gate, get(gate.path("/ok"), "X-Api-Key: planted-key-0001", field))
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert up.count() == 0
    assert "refused (400)" in caplog.text
    assert "Traceback" not in caplog.text
    assert "planted" not in caplog.text
    assert field.partition(":")[2] not in caplog.text


async def test_a_bomb_reaches_the_agent_packed_and_is_not_unpacked(gate: Held, up: Upstream) -> None:
    bomb = gzip.compress(b"\0" * (200 << 20), 9)
    up.reply("/bomb", Canned((bomb,), 200, (("Content-Encoding", "gzip"), ("Content-Type", "application/json"))))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = await said(gate, get(gate.path("/bomb"), "Host: localhost"))
    assert answer.endswith(bomb)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_of_a_reply_that_never_ends_only_the_beginning_is_kept(tmp_path: Path) -> None:
    from flakestorm.core.call import Call
    from flakestorm.core.pipeline import chain, drive
    from flakestorm.core.site import Sites
    from flakestorm.core.stream import pump
    from flakestorm.wire.classify import classify

    tape = tmp_path / "a.tape"
    recorder = Recorder(tape, clock=lambda: 0.0, ledger=Ledger(), header={})
    chunk = b"x" * (1 << 20)
    crossing = chain(classify(tools=(), sites=Sites()), recorder.outer, recorder.inner)
    reply = drive(
        crossing(Call("GET", "http://h.example/")), lambda _: Reply(200, (), (chunk for _ in range(80))), _no_time
    )
    assert sum(map(len, pump(reply, _no_time))) == 80 << 20
    recorder.close()
    (exchange,) = Tape.open(tape)
    assert ROOM_BYTES * 0.9 < len(exchange.reply.body) <= ROOM_BYTES
    assert exchange.note == CUT


def _no_time(_: float) -> None:
    """Nothing waits."""


@pytest.mark.parametrize("evil", ["a\r\nX-Evil: 1", "a\n\nbody", "a\0b"])
async def test_a_header_from_a_fault_starts_no_line_of_its_own(up: Upstream, evil: str) -> None:
    def stage(call: object) -> object:
        return Reply(200, (("X-From", evil), (f"X-{evil}", "b"), ("Content-Length", "2")), b"ok", reason=evil)
        yield  # a stage is a generator

    async with held(stage, OPENAI_BASE_URL=up.url) as gate:  # type: ignore[arg-type]
        answer = await said(gate, get(gate.path("/ok"), "Host: localhost"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b"ok"
    assert not [line for line in head.split(b"\r\n") if line.startswith(b"X-Evil")]
    assert b"\n" not in head.replace(b"\r\n", b"")
    assert b"\0" not in head


async def test_other_machines_are_refused_by_the_system(gate: Held) -> None:
    """There is no listener on any other address of this machine."""
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in addresses:
        with pytest.raises(OSError, match=r"."):
            await asyncio.open_connection(address, gate.gateway.port)
