from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from flakestorm.boundary.live import Live, LiveBody, end_to_end
from flakestorm.core.call import Call, Reply, header
from flakestorm.errors import CallFailed
from upstream import HANG_UP, RESET, Canned, Gate, Upstream, document, redirect, text


@pytest.fixture
async def live() -> AsyncIterator[Live]:
    it = Live()
    yield it
    await it.close()


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


async def whole(reply: Reply) -> bytes:
    assert isinstance(reply.body, LiveBody)
    return b"".join([chunk async for chunk in reply.body])


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


@pytest.mark.parametrize("url", ["http://no-such-host.invalid/", "http://127.0.0.1:99999/"])
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


def test_hop_by_hop_fields_do_not_cross() -> None:
    raw = (
        (b"X-Named", b"gone"), (b"Connection", b"x-named, keep-alive"), (b"TE", b"trailers"), (b"Keep-Alive", b"5"),
        (b"Proxy-Authorization", b"Basic eA=="), (b"x-flakestorm-patience-ms", b"5"), (b"Host", b"gw"),
        (b"X-Kept", b"1"), (b"x-kept", b"2"), (b"X-Latin", b"\xe9"), (b"X-Utf", "é".encode()),
    )  # fmt: skip
    kept = (("Host", "up"), ("X-Kept", "1"), ("x-kept", "2"), ("X-Latin", "é"), ("X-Utf", "é"))
    assert end_to_end(raw, host="up") == kept
    assert end_to_end(((b"Host", b"gw"),)) == (("Host", "gw"),)
