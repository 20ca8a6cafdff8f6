"""One connection to an upstream, without a network; with one, it is tested in test_live.py."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.boundary import asking
from flakestorm.boundary.asking import Answer, Asking, Garbled

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\nX-Trailer: 1\r\n\r\n"


@dataclass
class Wires:
    """A transport that keeps what is done to it."""

    written: list[bytes] = field(default_factory=list)
    closed: bool = False
    paused: int = 0

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused += 1

    def resume_reading(self) -> None:
        self.paused -= 1


@dataclass
class Asked:
    """A connection, and what became of it."""

    wires: Wires
    connection: Asking
    free: list[Asking]
    lost: list[Exception | None]

    async def ask(self, *came: bytes, head: bool = False) -> Answer:
        """Ask; the upstream then says this."""
        asking = asyncio.create_task(self.connection.ask(b"?", head=head))
        await asyncio.sleep(0)
        for data in came:
            if not self.wires.closed:
                self.connection.data_received(data)
        return await asyncio.wait_for(asking, 20)


def asked(early: bytes = b"") -> Asked:
    wires, free, lost = Wires(), list[Asking](), list[Exception | None]()
    return Asked(wires, Asking(cast(Any, wires), wires.close, free.append, lost.append, early), free, lost)


async def read(answer: Answer) -> bytes:
    parts = []
    while part := await answer.readany():
        parts.append(part)
    return b"".join(parts)


async def test_a_reply_is_read_and_the_connection_is_free_again() -> None:
    it = asked()
    for number in (1, 2):
        answer = await it.ask(OK)
        assert (answer.status, answer.reason, answer.fields) == (200, b"OK", [(b"Content-Length", b"2")])
        assert answer.whole() == await read(answer) == b"ok"
        assert len(it.free) == number
    assert (it.wires.written, it.wires.closed) == ([b"?", b"?"], False)


@settings(deadline=None)
@given(st.sampled_from([OK, CHUNKED]), st.integers(1), st.integers(1))
async def test_in_however_many_pieces_it_comes(data: bytes, one: int, two: int) -> None:
    first, second = sorted((one % len(data), two % len(data)))
    it = asked()
    answer = await it.ask(*filter(None, (data[:first], data[first:second], data[second:])))
    assert await read(answer) == b"ok"
    assert len(answer.fields) == 1  # a trailer is none
    assert (len(it.free), it.wires.closed) == (1, False)


@pytest.mark.parametrize(
    "sloppy",
    [
        b"HTTP/1.1 200 OK\nContent-Length: 2 \n\nok",
        b"HTTP/1.1 200 OK\r\nX-A: \x01\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\nok\r\n0\r\n\r\n",
    ],
)
async def test_what_common_clients_put_up_with_is_put_up_with(sloppy: bytes) -> None:
    answer = await asked().ask(sloppy)
    assert answer.whole() == b"ok"
    assert not [value for _, value in answer.fields if value.endswith(b" ")]


@pytest.mark.parametrize("status", [204, 304])
async def test_a_reply_that_has_no_body_does_not_wait_for_one(status: int) -> None:
    it = asked()
    answer = await it.ask(b"HTTP/1.1 %d X\r\nContent-Length: 5\r\n\r\n" % status if status == 304 else
                          b"HTTP/1.1 204 X\r\n\r\n")  # fmt: skip
    assert (answer.status, answer.whole(), len(it.free)) == (status, b"", 1)


@pytest.mark.parametrize(("length", "kept"), [(b"Content-Length: 5\r\n", True), (b"", False)])
async def test_a_reply_to_head_ends_with_its_head(length: bytes, kept: bool) -> None:
    it = asked()
    answer = await it.ask(b"HTTP/1.1 200 OK\r\n%b\r\n" % length, head=True)
    assert (answer.whole(), len(it.free) == 1, it.wires.closed) == (b"", kept, not kept)
    if kept:
        assert (await it.ask(OK)).whole() == b"ok"


@pytest.mark.parametrize(
    ("said", "head"),
    [
        (OK + OK, False),
        (OK + b"x", False),
        (OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), False),
        (OK.replace(b"1.1", b"1.0"), False),
        (OK, True),
        (b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nxyz", False),
        (b"HTTP/1.1 101 Go\r\n\r\n", False),
    ],
)
async def test_a_connection_with_more_on_it_or_that_is_given_up_is_not_used_again(said: bytes, head: bool) -> None:
    it = asked()
    answer = await it.ask(said, head=head)
    assert answer.whole() == (b"" if head or answer.status == 101 else b"ok")
    assert (it.free, it.wires.closed, it.connection.open) == ([], True, False)


async def test_what_nobody_asked_for_ends_the_connection() -> None:
    it = asked()
    await it.ask(OK)
    it.connection.data_received(OK)
    assert (it.wires.closed, it.connection.open) == (True, False)


async def test_what_was_said_before_anybody_asked_is_the_answer() -> None:
    it = asked(early=OK)
    assert (await it.ask()).whole() == b"ok"


async def test_interim_replies_are_passed_over_but_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    hints = b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n"
    answer = await asked().ask(hints, hints + OK)
    assert (answer.status, answer.reason, len(answer.fields), answer.whole()) == (200, b"OK", 1, b"ok")
    monkeypatch.setattr(asking, "HEAD_BYTES", 200)
    it = asked()
    with pytest.raises(Garbled, match="longer than"):
        await it.ask(*[hints] * 20)
    assert it.wires.closed


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-x\r\n",
        b"\0\0\x12\4\0\0\0",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: \0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_said_so(said: bytes) -> None:
    it = asked()
    with pytest.raises(Garbled, match=r"."):
        await it.ask(said)
    assert it.wires.closed


async def test_broken_framing_comes_after_what_was_right() -> None:
    it = asked()
    answer = await it.ask(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", b"zz\r\n")
    assert answer.whole() is None
    assert await answer.readany() == b"ok"
    with pytest.raises(Garbled):
        await answer.readany()


@pytest.mark.parametrize(
    ("head", "whole"),
    [
        (b"", True),
        (b"Transfer-Encoding: gzip\r\n", True),
        (b"Content-Length: 3\r\n", False),
        (b"Transfer-Encoding: gzip, Chunked\r\n", False),
    ],
)
@pytest.mark.parametrize("error", [None, OSError("it broke")])
async def test_the_end_of_a_connection_is_that_of_a_body_only_where_nothing_else_is(
    head: bytes, whole: bool, error: OSError | None
) -> None:
    it = asked()
    begun = b"2\r\nok\r\n" if b"hunked" in head else b"ok"
    answer = await it.ask(b"HTTP/1.1 200 OK\r\n%b\r\n%b" % (head, begun))
    assert answer.whole() is None
    it.connection.connection_lost(error)
    assert it.lost == [error]
    assert await answer.readany() == b"ok"
    if whole and error is None:
        assert await answer.readany() == b""
    else:
        with pytest.raises(OSError, match="it broke" if error else "it hung up"):
            await answer.readany()


@pytest.mark.parametrize("came", [b"", b"HTTP/1.1 200"])
async def test_no_head_is_no_reply(came: bytes) -> None:
    it = asked()
    asking = asyncio.create_task(it.connection.ask(b"?", head=False))
    await asyncio.sleep(0)
    if came:
        it.connection.data_received(came)
    it.connection.connection_lost(None)
    with pytest.raises(ConnectionResetError, match="it hung up"):
        await asking


async def test_an_upstream_waits_for_whoever_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "HELD_BYTES", 10)
    it = asked()
    answer = await it.ask(b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n" + b"x" * 20)
    it.connection.data_received(b"x" * 10)
    assert it.wires.paused == 1
    assert await answer.readany() == b"x" * 30
    assert it.wires.paused == 0
    it.connection.data_received(b"x" * 10)
    assert (await answer.readany(), await answer.readany(), len(it.free)) == (b"x" * 10, b"", 1)


async def test_a_body_that_ended_while_its_reader_was_away_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "HELD_BYTES", 10)
    it = asked()
    answer = await it.ask(b"HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n" + b"x" * 20)
    it.connection.data_received(b"x" * 5)  # was under way when reading was paused
    assert (it.wires.paused, len(it.free)) == (0, 1)
    assert await it.ask(OK) is not answer
    assert await read(answer) == b"x" * 25


async def test_leaving_early_drops_the_connection() -> None:
    it = asked()
    answer = await it.ask(OK[:-1])
    answer.close()
    assert (it.wires.closed, await answer.readany()) == (True, b"")
    it.connection.connection_lost(None)
    assert it.lost == [None]
    whole = await (again := asked()).ask(OK)
    whole.close()
    assert not again.wires.closed


async def test_giving_up_drops_the_connection() -> None:
    it = asked()
    asking = asyncio.create_task(it.connection.ask(b"?", head=False))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert it.wires.closed
