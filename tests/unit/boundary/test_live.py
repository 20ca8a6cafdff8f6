from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flakestorm.boundary.live import Live, LiveBody
from flakestorm.boundary.outward import Outward, Proxies
from flakestorm.boundary.trust import Trust
from flakestorm.core.call import Call, Reply, header
from flakestorm.errors import CallFailed
from proxy_support import forward_proxy
from tls_support import Private
from upstream import HANG_UP, RESET, Canned, Gate, Upstream, document, redirect, text


@pytest.fixture
async def live() -> AsyncIterator[Live]:
    it = Live()
    yield it
    await it.close()


async def whole(reply: Reply) -> bytes:
    if isinstance(reply.body, bytes):
        return reply.body
    assert isinstance(reply.body, LiveBody)
    return b"".join([chunk async for chunk in reply.body])


@dataclass
class Wire:
    """A server that looks at bytes only: every request it got, by connection, and what it answers to each."""

    answers: list[bytes]
    url: str = ""
    got: list[list[bytes]] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine: list[bytes] = []
        self.got.append(mine)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                _, sized, length = head.lower().partition(b"content-length: ")
                mine.append(head + (await reader.readexactly(int(length.split(b"\r\n")[0])) if sized else b""))
                self.asked.set()
                if self.answers:
                    writer.write(self.answers.pop(0))
                    if not self.answers:
                        writer.write_eof()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
        finally:
            writer.close()


@asynccontextmanager
async def wire(*answers: bytes) -> AsyncIterator[Wire]:
    """Answers requests with these bytes, in order, and ends the connection after the last."""
    it = Wire(list(answers))
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    async with server:
        it.url = "http://{}:{}".format(*server.sockets[0].getsockname()[:2])
        yield it


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def test_a_request_is_written_in_the_calls_order_and_spelling(live: Live) -> None:
    async with wire(OK, OK) as up:
        fields = (
            ("X-A", "1"), ("hOsT", "h"), ("Accept-Encoding", "br"), ("content-LENGTH", "9"), ("X-a", "é"),
            ("Content-Length", "7"), ("Connection", "close"),
        )  # fmt: skip
        await live.send(Call("POST", f"{up.url}/a%2f/../b?c=%20#d", fields, b"hi"))
        await live.send(Call("GET", f"{up.url}?c"))
    said = "POST /a%2f/../b?c=%20 HTTP/1.1\r\nX-A: 1\r\nhOsT: h\r\ncontent-LENGTH: 2\r\nX-a: é\r\n"
    host = up.url.removeprefix("http://")
    again = f"GET /?c HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: identity\r\n\r\n"
    assert up.got == [[f"{said}Accept-Encoding: identity\r\n\r\nhi".encode(), again.encode()]]


@pytest.mark.parametrize(("method", "length"), [("POST", True), ("DELETE", True), ("GET", False), ("HEAD", False)])
async def test_an_empty_body_says_its_length_where_one_is_expected(live: Live, method: str, length: bool) -> None:
    async with wire(b"HTTP/1.1 204 No Content\r\n\r\n") as up:
        await live.send(Call(method, f"{up.url}/"))
    assert (b"Content-Length: 0\r\n" in up.got[0][0]) == length


@pytest.mark.parametrize("field", [("X-A", "1\r\nX-Evil: 2"), ("X-A\n", "1"), ("X-A", "\0"), ("X-A", "\r")])
async def test_a_header_field_cannot_start_a_line_of_its_own(live: Live, field: tuple[str, str]) -> None:
    async with wire(OK) as up:
        with pytest.raises(CallFailed, match="line break") as failed:
            await live.send(Call("GET", f"{up.url}/", (field,)))
        assert (failed.value.how, up.got) == ("refused", [])


async def test_a_reply_that_came_along_whole_is_bytes(live: Live) -> None:
    async with wire(OK) as up:
        reply = await live.send(Call("GET", f"{up.url}/"))
    assert (reply.status, reply.reason, reply.headers, reply.body) == (200, "OK", (("Content-Length", "2"),), b"ok")


async def test_a_reply_to_head_has_no_body_and_keeps_the_connection(live: Live) -> None:
    async with wire(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", OK) as up:
        reply = await live.send(Call("HEAD", f"{up.url}/"))
        assert (header(reply.headers, "content-length"), reply.body) == ("2", b"")
        assert await whole(await live.send(Call("GET", f"{up.url}/"))) == b"ok"
    assert [len(requests) for requests in up.got] == [2]


async def test_a_connection_that_the_upstream_gives_up_is_not_used_again(live: Live) -> None:
    async with wire(OK.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n"), OK) as up:
        for _ in range(2):
            assert await whole(await live.send(Call("GET", f"{up.url}/"))) == b"ok"
    assert [len(requests) for requests in up.got] == [1, 1]


async def test_a_body_without_a_length_ends_with_the_connection(live: Live) -> None:
    async with wire(b"HTTP/1.0 200 OK\r\n\r\nall of it") as up:
        assert await whole(await live.send(Call("GET", f"{up.url}/"))) == b"all of it"


async def test_interim_replies_are_passed_over(live: Live) -> None:
    async with wire(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK) as up:
        reply = await live.send(Call("GET", f"{up.url}/"))
        assert (reply.status, await whole(reply)) == (200, b"ok")


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"HTTP/"]
)
async def test_what_is_no_http_is_a_reset(live: Live, answer: bytes) -> None:
    async with wire(answer) as up:
        with pytest.raises(CallFailed, match=up.url) as failed:
            await live.send(Call("GET", f"{up.url}/"))
    assert failed.value.how == "reset"


async def test_an_upstream_of_http_2_only_is_named_as_such(live: Live) -> None:
    settings = b"\0\0\x12\4\0\0\0\0\0\0\3\0\0\0\x64\0\4\0\1\0\0\0\2\0\0\0\0"
    async with wire(settings) as up:
        with pytest.raises(CallFailed, match=r"did not answer in HTTP/1\.1, and HTTP/2 is not supported"):
            await live.send(Call("GET", f"{up.url}/"))


async def test_giving_up_while_waiting_drops_the_connection(live: Live) -> None:
    async with wire() as up:
        asking = asyncio.create_task(live.send(Call("GET", f"{up.url}/")))
        await asyncio.wait_for(up.asked.wait(), 20)
        asking.cancel()
        await asyncio.wait_for(up.left.wait(), 20)
        assert asking.cancelled()


async def test_more_upstreams_than_are_kept_in_mind(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flakestorm.boundary.live._ORIGINS", 1)
    async with wire(OK, OK) as one, wire(OK, OK) as two:
        for up in (one, two, one, two):
            assert await whole(await live.send(Call("GET", f"{up.url}/"))) == b"ok"
    assert [len(requests) for requests in (*one.got, *two.got)] == [2, 2]


async def test_the_request_goes_out_as_it_is(live: Live, up: Upstream) -> None:
    up.reply("/a", lambda request: document({"headers": request.headers, "query": request.query}))
    call = Call("POST", f"{up.url}/a?q=%2F", (("Host", "other.example"), ("X-A", "1"), ("Content-Length", "99")), b"hi")
    reply = await live.send(call)
    said = json.loads(await whole(reply))
    assert said["headers"] == {
        "host": "other.example", "x-a": "1", "content-length": "2", "accept-encoding": "identity",
    }  # fmt: skip
    assert up.requests[0].body == b"hi"
    assert header(reply.headers, "content-type") == "application/json"


async def test_redirects_are_not_followed_and_cookies_not_kept(live: Live, up: Upstream) -> None:
    moved = redirect("/b")
    up.reply("/a", Canned((), 302, (*moved.headers, ("Set-Cookie", "a=1"))))
    for _ in range(2):
        reply = await live.send(Call("GET", f"{up.url}/a"))
        assert (reply.status, header(reply.headers, "location")) == (302, "/b")
        assert await whole(reply) == b""
    assert up.count("/b") == 0
    assert "cookie" not in up.requests[1].headers


async def test_compressed_replies_pass_as_they_came(live: Live, up: Upstream) -> None:
    up.reply("/z", Canned((b"not really gzip",), 200, (("Content-Encoding", "gzip"),)))
    reply = await live.send(Call("GET", f"{up.url}/z"))
    assert header(reply.headers, "content-encoding") == "gzip"
    assert await whole(reply) == b"not really gzip"


async def test_a_streamed_upload_is_sent_in_chunks(live: Live, up: Upstream) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    up.reply("/up", text("ok"))
    await whole(await live.send(Call("POST", f"{up.url}/up", (("Content-Length", "6"),), upload=parts())))
    assert up.requests[0].body == b"onetwo"
    assert up.requests[0].headers["transfer-encoding"] == "chunked"
    assert "content-length" not in up.requests[0].headers


async def test_a_large_body_arrives_whole(live: Live, up: Upstream) -> None:
    up.reply("/up", text("ok"))
    body = bytes(range(256)) * 12_000
    await whole(await live.send(Call("POST", f"{up.url}/up", body=body)))
    assert up.requests[0].body == body


async def test_nobody_listening_is_refused_and_named(live: Live) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CallFailed, match=url) as failed:
            await live.send(Call("GET", f"{url}/x"))
    assert (failed.value.how, failed.value.injected) == ("refused", False)


@pytest.mark.parametrize(
    "url", ["http://no-such-host.invalid/", "http://127.0.0.1:99999/", "ftp://127.0.0.1/", "http:///x", "nowhere"]
)
async def test_an_impossible_host_is_refused(live: Live, url: str) -> None:
    with pytest.raises(CallFailed) as failed:
        await live.send(Call("GET", url))
    assert failed.value.how == "refused"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("sign", [HANG_UP, RESET])
async def test_a_broken_connection_is_a_reset_and_is_not_tried_again(
    live: Live, up: Upstream, method: str, sign: object
) -> None:
    up.reply("/ok", text("ok"))
    await whole(await live.send(Call("GET", f"{up.url}/ok")))  # leaves a pooled connection, which aiohttp would retry
    up.reply("/gone", Canned((sign,)))  # type: ignore[arg-type]
    with pytest.raises(CallFailed) as failed:
        await live.send(Call(method, f"{up.url}/gone"))
    assert failed.value.how == "reset"
    assert up.count("/gone") == 1


async def test_a_break_in_the_middle_is_a_reset_after_what_came(live: Live, up: Upstream) -> None:
    up.reply("/half", Canned((b"first", HANG_UP), chunked=True))
    reply = await live.send(Call("GET", f"{up.url}/half"))
    assert isinstance(reply.body, LiveBody)
    assert await anext(reply.body) == b"first"
    with pytest.raises(CallFailed) as failed:
        await anext(reply.body)
    assert failed.value.how == "reset"


async def test_closing_early_drops_the_connection(live: Live, up: Upstream) -> None:
    shut = Gate()
    up.reply("/long", Canned((b"first", shut, b"second"), chunked=True))
    reply = await live.send(Call("GET", f"{up.url}/long"))
    assert isinstance(reply.body, LiveBody)
    assert await anext(reply.body) == b"first"
    await reply.body.aclose()
    shut.open()
    assert await asyncio.to_thread(up.wait_connections, 0)


async def test_fields_whose_names_differ_in_case_only_all_arrive(live: Live) -> None:
    async with wire(OK, OK) as up:
        fields = (("X-A", "1"), ("x-a", "2"), ("X-a", "3"))
        for body in (b"", bytes(600_000)):  # either way of sending
            await live.send(Call("POST", f"{up.url}/", fields, body))
    for request in [request for connection in up.got for request in connection]:
        said = [line.partition(b": ") for line in request.partition(b"\r\n\r\n")[0].split(b"\r\n")]
        assert [value for name, _, value in said if name.lower() == b"x-a"] == [b"1", b"2", b"3"]


@asynccontextmanager
async def reaching(outward: Outward) -> AsyncIterator[Live]:
    live = Live(outward)
    try:
        yield live
    finally:
        await live.close()


@pytest.mark.parametrize("body", [b"hi", bytes(600_000)])
async def test_a_private_authority_is_honoured(tmp_path: Path, body: bytes) -> None:
    private = Private(tmp_path)
    with Upstream(tls=private.server()) as up:
        up.reply("/ok", text("fine"))
        call = Call("POST", f"{up.url}/ok", (), body)
        async with reaching(Outward(Trust((private.file,)))) as live:
            assert await whole(await live.send(call)) == b"fine"
        async with reaching(Outward()) as live:
            with pytest.raises(CallFailed, match="unable to get local issuer certificate") as failed:
                await live.send(call)
        assert failed.value.how == "refused"
        assert up.count() == 1


async def test_a_bundle_without_a_certificate_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "gone.pem")
    with Upstream(tls=Private(tmp_path).server()) as up:
        async with reaching(Outward(Trust((missing,)))) as live:
            with pytest.raises(CallFailed, match=r"No certificate was found in .*gone\.pem"):
                await live.send(Call("GET", up.url))


@pytest.mark.parametrize("body", [b"hi", bytes(600_000)])
async def test_plain_requests_go_through_the_proxy_whole(body: bytes) -> None:
    with Upstream() as up:
        up.reply("/ok", text("fine"))
        async with forward_proxy(up.port) as proxied:
            proxies = Proxies(http=proxied.url.replace("//", "//me:pw@"), exempt="direct.test")
            async with reaching(Outward(proxies=proxies)) as live:
                headers = (("Host", "api.test"), ("Proxy-Authorization", "of the gateway"))
                reply = await live.send(Call("POST", "http://api.test/ok?q=1", headers, body))
                assert await whole(reply) == b"fine"
                with pytest.raises(CallFailed, match=r"http://direct\.test:1 cannot be reached"):
                    await live.send(Call("GET", "http://direct.test:1/ok"))
        (head,) = proxied.heads
        assert head[0] == "POST http://api.test/ok?q=1 HTTP/1.1"
        assert [line for line in head if line.startswith("Proxy-Auth")] == ["Proxy-Authorization: Basic bWU6cHc="]
        assert up.requests[0].body == body


@pytest.mark.parametrize("body", [b"hi", bytes(600_000)])
async def test_tls_goes_through_the_proxy_and_stays_tls(tmp_path: Path, body: bytes) -> None:
    private = Private(tmp_path)
    with Upstream(tls=private.server("api.test")) as up:
        up.reply("/ok", text("fine"))
        async with forward_proxy(up.port) as proxied:
            proxies = Proxies(https=proxied.url.replace("//", "//me:pw@"))
            async with reaching(Outward(Trust((private.file,)), proxies)) as live:
                for _ in range(2):
                    assert await whole(await live.send(Call("POST", "https://api.test/ok", (), body))) == b"fine"
        assert [head[0] for head in proxied.heads] == ["CONNECT api.test:443 HTTP/1.1"]  # one connection serves both
        assert "Proxy-Authorization: Basic bWU6cHc=" in proxied.heads[0]
        assert "proxy-authorization" not in up.requests[0].headers


async def test_a_proxy_that_says_no_is_quoted() -> None:
    async with (
        forward_proxy(1, answer="HTTP/1.1 407 Proxy Authentication Required") as proxied,
        reaching(Outward(proxies=Proxies(https=proxied.url))) as live,
    ):
        with pytest.raises(CallFailed, match="the proxy says 407") as failed:
            await live.send(Call("GET", "https://api.test/"))
    assert failed.value.how == "refused"


async def test_a_proxy_of_another_kind_is_said() -> None:
    async with reaching(Outward(proxies=Proxies(https="socks5://p:1"))) as live:
        with pytest.raises(CallFailed, match="only http:// and https:// proxies"):
            await live.send(Call("GET", "https://api.test/"))


async def test_loopback_is_reached_without_a_proxy() -> None:
    with Upstream() as up:
        up.reply("/ok", text("fine"))
        async with reaching(Outward(proxies=Proxies(http="http://127.0.0.1:1"))) as live:
            assert await whole(await live.send(Call("GET", f"{up.url}/ok"))) == b"fine"
