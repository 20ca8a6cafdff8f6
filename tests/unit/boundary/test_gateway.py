from __future__ import annotations

import asyncio
import base64
import json

import httpx
import pytest

from flakestorm.boundary import upload
from flakestorm.boundary.gateway import Gateway
from flakestorm.boundary.session import Crossing
from flakestorm.core.call import PULL, Call, Chunks, Reply, Sleep, Tap, header
from flakestorm.core.pipeline import Flow, chain
from flakestorm.errors import CallFailed, Misuse
from gateway_support import Held, Watch, held
from upstream import HANG_UP, Canned, Gate, Request, Upstream, document, redirect, text


def lines(method: str, target: str, *headers: str, body: bytes = b"", version: str = "1.1") -> bytes:
    """A request as curl would write it; the connection is to be closed after the reply."""
    length = [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join((f"{method} {target} HTTP/{version}", "Host: h", *headers, *length, "", "")).encode() + body


async def talk(gate: Held, request: bytes) -> tuple[str, bytes]:
    """Send it on a connection of its own and read to the end: the head, and what follows it."""
    async with gate.connection() as (reader, writer):
        writer.write(request)
        data = await reader.read()
    head, _, body = data.partition(b"\r\n\r\n")
    return head.decode(), body


async def ask(gate: Held, method: str, rest: str, *headers: str, body: bytes = b"") -> tuple[str, bytes]:
    return await talk(gate, lines(method, gate.path(rest), "Connection: close", *headers, body=body))


async def test_a_request_crosses_and_its_reply_comes_back_as_it_is(gate: Held, up: Upstream) -> None:
    up.reply("/v1/x", Canned((b"hey",), 299, (("X-B", "2"), ("x-a", "1"), ("X-B", "3"), ("Content-Type", "a/b"))))

    head, body = await ask(gate, "POST", "/v1/x?q=%2F", "X-One: 1", "x-two: 2", body=b"hi")

    status, *fields = head.split("\r\n")
    assert status.startswith("HTTP/1.1 299")
    interesting = [line for line in fields if not line.startswith(("Server", "Date"))]
    assert interesting == ["X-B: 2", "x-a: 1", "X-B: 3", "Content-Type: a/b", "Content-Length: 3", "Connection: close"]
    assert body == b"hey"
    (seen,) = gate.watch.seen
    assert (seen.call.method, seen.call.url, seen.call.body) == ("POST", f"{up.url}/v1/x?q=%2F", b"hi")
    host = ("Host", f"127.0.0.1:{up.port}")
    assert seen.call.headers == (host, ("X-One", "1"), ("x-two", "2"), ("Content-Length", "2"))
    assert (seen.body, seen.end) == (b"hey", "eof")


async def test_the_plain_http_proxy(gate: Held, up: Upstream) -> None:
    token = base64.b64encode(f"x:{gate.channel.token}".encode()).decode()
    request = lines(
        "GET", f"{up.url}/ok", f"Proxy-Authorization: Basic {token}", "Proxy-Connection: x", "Connection: close"
    )

    head, body = await talk(gate, request)

    assert (head.split("\r\n")[0], body) == ("HTTP/1.1 200 OK", b"fine")
    assert gate.watch.urls == [f"{up.url}/ok"]
    assert not [name for name in up.requests[0].headers if name.startswith("proxy")]


async def test_the_proxy_asks_for_the_token(gate: Held, up: Upstream) -> None:
    head, body = await talk(gate, lines("GET", f"{up.url}/ok", "Connection: close"))
    assert "407" in head.split("\r\n")[0]
    assert 'Proxy-Authenticate: Basic realm="flakestorm"' in head
    assert b"http://x:TOKEN@" in body
    assert up.count() == 0


async def test_an_unknown_token_is_forbidden(gate: Held, up: Upstream) -> None:
    said = "X-Flakestorm-Lane: 1-1.job1"
    head, body = await talk(gate, lines("GET", "/r/wrong/p/openai/ok", said, "Connection: close"))
    assert gate.watch.seen == []
    assert "403" in head.split("\r\n")[0]
    assert "unknown run token" in json.loads(body)["error"]["message"]
    gate.channel.close()
    assert "403" in (await ask(gate, "GET", "/ok"))[0].split("\r\n")[0]
    assert up.count() == 0


async def test_an_unknown_provider_is_named(gate: Held) -> None:
    path = gate.path("/ok").replace("/p/openai", "/p/nobody")
    head, body = await talk(gate, lines("GET", path, "Connection: close"))
    assert "404" in head.split("\r\n")[0]
    assert "'nobody'" in json.loads(body)["error"]["message"]


async def test_traffic_outside_a_run_passes_unrecorded(up: Upstream) -> None:
    async with held(bound=False, OPENAI_BASE_URL=up.url) as gate:
        assert (await ask(gate, "GET", "/ok"))[1] == b"fine"
        with gate.channel.bind(Crossing("r-1", chain(gate.watch))):
            assert (await ask(gate, "GET", "/ok"))[1] == b"fine"
        assert (await ask(gate, "GET", "/ok"))[1] == b"fine"
    assert (up.count(), len(gate.watch.seen)) == (3, 1)


async def test_fifty_parallel_requests_do_not_mix(up: Upstream) -> None:
    up.reply("/echo", lambda request: text(request.body))
    async with held(OPENAI_BASE_URL=up.url) as one, held(OPENAI_BASE_URL=up.url) as two:
        asked = [(gate, f"{name}-{n}".encode()) for n in range(25) for gate, name in ((one, "one"), (two, "two"))]
        replies = await asyncio.gather(*(ask(gate, "POST", "/echo", body=body) for gate, body in asked))
        assert [body for _, body in replies] == [body for _, body in asked]
        for gate, name in ((one, b"one"), (two, b"two")):
            assert {seen.call.body for seen in gate.watch.seen} == {b"%b-%d" % (name, n) for n in range(25)}
            assert all(seen.body == seen.call.body for seen in gate.watch.seen)
            assert sorted(int(seen.call.lane) for seen in gate.watch.seen) == list(range(1, 26))


async def test_calls_on_one_connection_share_a_lane(gate: Held) -> None:
    async with gate.connection() as (reader, writer):
        for _ in range(2):
            writer.write(lines("GET", gate.path("/ok")))
            await reader.readuntil(b"fine")
    await ask(gate, "GET", "/ok")
    assert [seen.call.lane for seen in gate.watch.seen] == ["1", "1", "2"]


async def test_a_client_that_leaves_mid_stream_ends_the_call(gate: Held, up: Upstream) -> None:
    shut = Gate()
    up.reply("/long", Canned((b"first", shut, b"second"), chunked=True))
    async with gate.connection() as (reader, writer):
        writer.write(lines("GET", gate.path("/long")))
        await reader.readuntil(b"first")
    assert await gate.watch.seen[0].over() == "client left"
    assert gate.watch.seen[0].body == b"first"
    shut.open()
    assert await asyncio.to_thread(up.wait_connections, 0)


async def test_a_client_that_leaves_ends_a_sleep(up: Upstream) -> None:
    ended = asyncio.Event()

    def slow(call: Call) -> Flow:
        try:
            yield Sleep(3600)
        finally:
            ended.set()
        return (yield call)  # type: ignore[return-value]

    arrived = asyncio.Event()

    def arrival(call: Call) -> Flow:
        arrived.set()
        return (yield call)  # type: ignore[return-value]

    async with held(arrival, slow, OPENAI_BASE_URL=up.url) as gate:
        async with gate.connection() as (_, writer):
            writer.write(lines("GET", gate.path("/ok")))
            await asyncio.wait_for(arrived.wait(), 20)
        await asyncio.wait_for(ended.wait(), 20)
    assert up.count() == 0


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_break_in_the_upstreams_reply_cuts_the_clients(gate: Held, up: Upstream, chunked: bool) -> None:
    up.reply("/half", Canned((b"first", HANG_UP, b"never"), chunked=chunked))
    head, body = await talk(gate, lines("GET", gate.path("/half")))
    assert "200" in head.split("\r\n")[0]
    assert body == (b"5\r\nfirst\r\n" if chunked else b"first")
    assert await gate.watch.seen[0].over() == "broken"
    assert isinstance(gate.watch.seen[0].error, CallFailed)


async def test_a_cut_by_a_stage_delivers_what_came_before(up: Upstream) -> None:
    def cut(call: Call) -> Flow:
        reply = yield call
        assert reply is not None

        def one() -> Chunks:
            yield (yield PULL) or b""
            raise CallFailed("reset", injected=True)

        return reply.pipe(one)

    shut = Gate()
    up.reply("/two", Canned((b"first", shut, b"second"), chunked=True))
    async with held(cut, OPENAI_BASE_URL=up.url) as gate:
        _, body = await talk(gate, lines("GET", gate.path("/two")))
    shut.open()
    assert body == b"5\r\nfirst\r\n"


class Note(Tap):
    """What a recorder does, in small: writes down what passes, and how it ends."""

    def __init__(self) -> None:
        self.seen: list[bytes | BaseException | None] = []
        self.over = asyncio.Event()

    def chunk(self, data: bytes) -> None:
        self.seen.append(data)

    def end(self, error: BaseException | None) -> None:
        self.seen.append(error)
        self.over.set()


@pytest.mark.parametrize("held_back", [True, False])
async def test_a_tap_sees_a_reply_pass_whether_it_is_here_or_still_to_come(up: Upstream, held_back: bool) -> None:
    note, shut = Note(), Gate()
    up.reply("/taps", Canned((shut, b"fine") if held_back else (b"fine",)))

    def tapped(call: Call) -> Flow:
        reply = yield call
        assert reply is not None
        shut.open()
        return reply.pipe(note)

    gateway = Gateway()
    await gateway.start()
    passage = gateway.admit()
    passage.upstreams["x"] = up.url
    try:
        with passage.bind(Crossing("r-1", tapped)):
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(lines("GET", f"/r/{passage.token}/p/x/taps", "Connection: close"))
            assert (await reader.read()).endswith(b"\r\n\r\nfine")
            writer.close()
    finally:
        await gateway.close()
    assert note.seen == [b"fine", None]


async def test_a_client_that_leaves_in_the_middle_of_a_reply_that_is_here(up: Upstream) -> None:
    note = Note()

    def large(_: Call) -> Flow:
        return Reply(200, body=b"x" * 50_000_000).pipe(note)
        yield

    async with held(large, OPENAI_BASE_URL=up.url) as gate:
        async with gate.connection() as (reader, writer):
            writer.write(lines("GET", gate.path("/ok")))
            await reader.readuntil(b"xxx")
        await asyncio.wait_for(note.over.wait(), 20)
    assert isinstance(note.seen[-1], GeneratorExit)


async def test_a_stream_is_delivered_as_it_arrives(gate: Held, up: Upstream) -> None:
    head, middle = Gate(), Gate()
    up.reply("/events", Canned((head, b"one", middle, b"two"), 200, (("Content-Type", "text/event-stream"),), True))
    async with gate.connection() as (reader, writer):
        writer.write(lines("GET", gate.path("/events"), "Connection: close"))
        await reader.readuntil(b"\r\n\r\n")
        head.open()
        await reader.readuntil(b"one\r\n")
        middle.open()
        assert (await reader.read()).endswith(b"two\r\n0\r\n\r\n")


async def test_an_upload_streams_too(gate: Held, up: Upstream) -> None:
    up.reply("/up", lambda request: text(request.body))
    async with gate.connection() as (reader, writer):
        writer.write(
            lines("POST", gate.path("/up"), "Transfer-Encoding: chunked", "Connection: close") + b"3\r\none\r\n"
        )
        await gate.watch.until(1)  # the call crosses while its body is still being produced
        assert gate.watch.seen[0].call.upload is not None
        writer.write(b"3\r\ntwo\r\n0\r\n\r\n")
        assert (await reader.read()).endswith(b"onetwo")
    assert bytes(gate.watch.seen[0].call.upload.seen) == b"onetwo"  # type: ignore[attr-defined]
    assert up.requests[0].headers["transfer-encoding"] == "chunked"


async def test_chunked_json_is_read_whole(gate: Held, up: Upstream) -> None:
    up.reply("/up", lambda request: text(request.body))
    request = lines(
        "POST", gate.path("/up"), "Content-Type: application/json", "Transfer-Encoding: chunked", "Connection: close"
    )
    _, body = await talk(gate, request + b'2\r\n{"\r\n4\r\na":1\r\n1\r\n}\r\n0\r\n\r\n')
    assert body == b'{"a":1}'
    assert gate.watch.seen[0].call.body == b'{"a":1}'
    assert up.requests[0].headers["content-length"] == "7"


CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.parametrize("framing", ["Content-Length: 17", CHUNKED, f"{CHUNKED}\r\nContent-Type: a/json"])
async def test_too_large_a_body_is_413(gate: Held, up: Upstream, framing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "MAX_BODY_BYTES", 16)
    body = b"x" * 17 if "Length" in framing else b"11\r\n" + b"x" * 17 + b"\r\n0\r\n\r\n"
    head, _ = await talk(gate, lines("POST", gate.path("/ok"), framing, "Connection: close") + body)
    assert "413" in head.split("\r\n")[0]


@pytest.mark.parametrize("framing", ["Content-Length: 3", "Transfer-Encoding: chunked"])
async def test_expect_continue(gate: Held, up: Upstream, framing: str) -> None:
    up.reply("/up", lambda request: text(request.body))
    async with gate.connection() as (reader, writer):
        writer.write(lines("POST", gate.path("/up"), "Expect: 100-continue", framing, "Connection: close"))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"abc" if "Length" in framing else b"3\r\nabc\r\n0\r\n\r\n")
        assert (await reader.read()).endswith(b"abc")
    assert "expect" not in up.requests[0].headers


async def test_head_204_and_304_have_no_body(gate: Held, up: Upstream) -> None:
    up.reply("/204", Canned((), 204))
    up.reply("/304", Canned((), 304, (("ETag", '"a"'),)))
    async with gate.connection() as (reader, writer):  # one connection: a stray byte would garble the next reply
        for method, path, status in (("HEAD", "/ok", 200), ("GET", "/204", 204), ("GET", "/304", 304)):
            writer.write(lines(method, gate.path(path)))
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            assert head.startswith(f"HTTP/1.1 {status} ")
            assert ("Content-Length: 4" in head) == (method == "HEAD")
            assert "chunked" not in head
        writer.write(lines("GET", gate.path("/ok"), "Connection: close"))
        assert (await reader.read()).endswith(b"\r\n\r\nfine")
    assert [await seen.over() for seen in gate.watch.seen] == ["eof"] * 4


async def test_an_http_1_0_client_gets_a_reply_it_can_read(gate: Held, up: Upstream) -> None:
    up.reply("/chunks", Canned((b"a", b"b"), chunked=True))
    head, body = await talk(gate, lines("GET", gate.path("/chunks"), version="1.0"))
    assert ("chunked" in head, body) == (False, b"ab")


async def test_websockets_are_refused_by_name(gate: Held, up: Upstream) -> None:
    head, body = await ask(gate, "GET", "/ok", "Upgrade: websocket", "Connection: Upgrade")
    assert "501" in head.split("\r\n")[0]
    assert b"websocket" in body
    assert up.count() == 0
    (seen,) = gate.watch.seen
    assert seen.reply is not None
    assert (seen.call.url, seen.reply.status, await seen.over()) == (f"{up.url}/ok", 501, "eof")


@pytest.mark.parametrize(("how", "status"), [("timeout", 504), ("refused", 502)])
async def test_a_call_that_a_stage_breaks(up: Upstream, how: str, status: int) -> None:
    def broken(_: Call) -> Flow:
        raise CallFailed(how, "on purpose", injected=True)  # type: ignore[arg-type]
        yield

    async with held(broken, OPENAI_BASE_URL=up.url) as gate:
        head, body = await ask(gate, "GET", "/ok")
    assert str(status) in head.split("\r\n")[0]
    assert f"x-flakestorm-failed: {how}" in head
    assert "on purpose" in json.loads(body)["error"]["message"]
    assert up.count() == 0


async def test_a_reset_before_the_reply_is_a_tcp_reset(up: Upstream) -> None:
    def broken(_: Call) -> Flow:
        raise CallFailed("reset", injected=True)
        yield

    async with held(broken, OPENAI_BASE_URL=up.url) as gate:
        with pytest.raises(ConnectionResetError):
            await ask(gate, "GET", "/ok")


async def test_an_upstream_that_is_not_there_is_named(gate: Held) -> None:
    async with held(OPENAI_BASE_URL="http://127.0.0.1:1") as lost:
        head, body = await ask(lost, "GET", "/ok")
    assert "502" in head.split("\r\n")[0]
    assert "x-flakestorm-failed: refused" in head
    assert "http://127.0.0.1:1 cannot be reached" in json.loads(body)["error"]["message"]
    assert isinstance(lost.watch.seen[0].error, CallFailed)


async def test_an_upstream_cannot_claim_to_be_the_gateway(gate: Held, up: Upstream) -> None:
    up.reply("/lie", Canned((b"x",), 200, (("X-Flakestorm-Failed", "timeout"),)))
    head, _ = await ask(gate, "GET", "/lie")
    assert "flakestorm" not in head.lower()


async def test_a_sleep_ends_with_the_clients_patience(up: Upstream) -> None:
    def slow(call: Call) -> Flow:
        assert call.patience_s == 0.02
        yield Sleep(3600)
        return (yield call)  # type: ignore[return-value]

    async with held(slow, OPENAI_BASE_URL=up.url) as gate:
        head, _ = await ask(gate, "GET", "/ok", "x-flakestorm-patience-ms: 20")
    assert "x-flakestorm-failed: timeout" in head
    assert up.count() == 0


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf", ""])
async def test_a_senseless_patience_is_none(gate: Held, value: str) -> None:
    await ask(gate, "GET", "/ok", f"x-flakestorm-patience-ms: {value}")
    assert gate.watch.seen[0].call.patience_s is None


@pytest.mark.parametrize(
    "said", ["x-stainless-read-timeout: 600.0", "X-Stainless-Timeout: 600", "X-Server-Timeout: 600"]
)
async def test_sdks_say_how_long_they_wait(up: Upstream, said: str) -> None:
    def slow(call: Call) -> Flow:
        assert call.patience_s == 600.0
        yield Sleep(3600)
        return (yield call)  # type: ignore[return-value]

    async with held(slow, OPENAI_BASE_URL=up.url) as gate:
        head, _ = await ask(gate, "GET", "/ok", said)
    assert "504" in head.split("\r\n")[0]
    assert up.count() == 0


async def test_a_client_that_cannot_be_told_leaves_by_itself(up: Upstream) -> None:
    left = asyncio.Event()

    def slow(call: Call) -> Flow:
        try:
            yield Sleep(3600)
        finally:
            left.set()
        return (yield call)  # type: ignore[return-value]

    async with held(slow, OPENAI_BASE_URL=up.url) as gate:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(gate, "GET", "/ok", "x-stainless-timeout: 0.05"), 0.05)
        await asyncio.wait_for(left.wait(), 10)
    assert up.count() == 0


async def test_a_stage_that_fails_is_said_and_not_blamed_on_the_world(
    up: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    def wrong(_: Call) -> Flow:
        raise ZeroDivisionError("oops")
        yield

    async with held(wrong, OPENAI_BASE_URL=up.url) as gate:
        head, body = await ask(gate, "GET", "/ok")
    assert "500" in head.split("\r\n")[0]
    assert "x-flakestorm-failed" not in head
    assert "ZeroDivisionError" in json.loads(body)["error"]["message"]
    assert "a stage failed" in caplog.text


async def test_a_reply_that_a_stage_put_aside_is_let_go(up: Upstream) -> None:
    shut = Gate()
    up.reply("/long", Canned((b"x", shut, b"y"), chunked=True))

    def lost(call: Call) -> Flow:
        yield call
        return Reply(503)

    async with held(lost, OPENAI_BASE_URL=up.url) as gate:
        assert "503" in (await ask(gate, "GET", "/long"))[0].split("\r\n")[0]
        shut.open()
        assert await asyncio.to_thread(up.wait_connections, 0)


@pytest.mark.parametrize("form", ["/elsewhere?a=1", "{url}/elsewhere?a=1"])
async def test_a_redirect_within_the_upstream_stays_on_the_gateway(gate: Held, up: Upstream, form: str) -> None:
    up.reply("/moved", redirect(form.format(url=up.url)))
    head, _ = await ask(gate, "GET", "/moved")
    assert f"Location: {gate.path('/elsewhere?a=1')}" in head
    assert gate.watch.seen[0].reply is not None
    assert header(gate.watch.seen[0].reply.headers, "location") == form.format(url=up.url)


async def test_a_redirect_to_another_host_is_left_as_it_is(gate: Held, up: Upstream) -> None:
    for to in ("https://other.example/x", f"{up.url}.evil.example/x", "//other.example/x"):
        up.reply("/moved", redirect(to))
        assert f"Location: {to}\r\n" in (await ask(gate, "GET", "/moved"))[0] + "\r\n"


async def test_the_gateways_own_calls_belong_to_no_run(up: Upstream) -> None:
    """Started from within a run, it must not send its upstream requests through that run's in-process seams."""
    from flakestorm.boundary.session import current

    seen: list[object] = []

    def stage(call: Call) -> Flow:
        seen.append(current())
        return (yield call)  # type: ignore[return-value]

    with Crossing("outer", chain()).active():
        async with held(stage, OPENAI_BASE_URL=up.url) as gate:
            await ask(gate, "GET", "/ok")
    assert seen == [None]


async def test_a_header_value_cannot_start_a_line_of_its_own(up: Upstream) -> None:
    def forged(_: Call) -> Flow:
        return Reply(200, (("X-A", "1\r\nX-Evil: 2"),), b"x", reason="O\nK")
        yield

    async with held(forged, OPENAI_BASE_URL=up.url) as gate:
        head, _ = await ask(gate, "GET", "/ok")
    assert not [line for line in head.split("\n") if line.startswith("X-Evil")]


async def test_a_taken_port_is_said() -> None:
    one, two = Gateway(), Gateway()
    await one.start()
    try:
        with pytest.raises(Misuse, match=f"127.0.0.1:{one.port}"):
            await two.start(one.port)
    finally:
        await one.close()


async def test_close_breaks_what_is_open(up: Upstream) -> None:
    shut = Gate()
    up.reply("/long", Canned((b"first", shut), chunked=True))
    async with held(OPENAI_BASE_URL=up.url) as gate, gate.connection() as (reader, writer):
        writer.write(lines("GET", gate.path("/long")))
        await reader.readuntil(b"first")
        await gate.gateway.close()
        assert b"0\r\n\r\n" not in await reader.read()
    assert await gate.watch.seen[0].over() == "client left"
    shut.open()


async def test_echoes_of_any_request_body(gate: Held, up: Upstream) -> None:
    def echo(request: Request) -> Canned:
        return document({"length": len(request.body)})

    up.reply("/echo", echo)
    for size in (0, 1, 70_000, 3_000_000):
        _, body = await ask(gate, "POST", "/echo", body=b"z" * size)
        assert json.loads(body) == {"length": size}


async def test_a_lent_port_is_accepted_on_elsewhere_until_it_is_resumed(up: Upstream) -> None:
    up.reply("/ok", text("fine"))
    async with held(OPENAI_BASE_URL=up.url) as here:
        url = f"{here.channel.env['OPENAI_BASE_URL']}/ok"
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(url)).text == "fine"  # and the connection stays open
            other, watch = Gateway(), Watch()
            await other.start(listener=await here.gateway.lend())
            passage = other.admit(here.channel.token)
            passage.upstreams = here.channel.passage.upstreams
            with passage.bind(Crossing("r-2", chain(watch))):
                assert (await client.get(url)).text == "fine"
            await other.close()
            await here.gateway.resume()
            assert (await client.get(url)).text == "fine"
    assert (len(here.watch.seen), len(watch.seen)) == (2, 1)


async def test_a_gateway_that_does_not_stand_has_nothing_to_lend() -> None:
    with pytest.raises(Misuse, match="start"):
        await Gateway().lend()
