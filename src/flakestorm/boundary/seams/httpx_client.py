"""The seam in httpx and httpx2: the transports that reach a network.

`HTTPTransport.handle_request` and `AsyncHTTPTransport.handle_async_request` are where a client, an SDK's own client or
a subclass of either hands a finished request over, once per attempt and per redirect hop. Transports that reach no
network (ASGI, WSGI, `MockTransport`), those of other libraries and Unix sockets are left alone.

The two packages have the same shape, so this module is told which one it serves and imports neither.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import importlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from flakestorm.boundary.seams.exchange import (
    AsyncBody,
    AsyncExchange,
    AsyncLive,
    Body,
    Exchange,
    Live,
    Moment,
    Spell,
    phrase,
    raw_headers,
    text_headers,
)
from flakestorm.boundary.seams.patches import Patch
from flakestorm.boundary.seams.patience import Patience
from flakestorm.boundary.session import Crossing, current, outside
from flakestorm.core.call import Call, Reply
from flakestorm.errors import CallFailed

__all__ = ["patches"]


def patches(lib: ModuleType) -> list[Patch]:
    """What to change in `httpx` or `httpx2`."""
    sync, async_ = lib.HTTPTransport, lib.AsyncHTTPTransport
    return [
        Patch(sync, "handle_request", functools.partial(_sync, lib)),
        Patch(async_, "handle_async_request", functools.partial(_async, lib)),
    ]


def _sync(lib: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    stream_class: Any = type("CrossedStream", (Body, lib.SyncByteStream), {})  # made once: a class costs 70 us
    spell = _spell(lib)

    @functools.wraps(original)
    def handle_request(self: Any, request: Any) -> Any:
        crossing = current()
        if crossing is None or _unix(self):
            return original(self, request)
        call = _call(lib, request, crossing)

        def send(asked: Call) -> Reply:
            outgoing = _outgoing(lib, request, call, asked)
            with outside():
                response = original(self, outgoing)
            stream = response.stream
            return _reply(response, Live(iter(stream), stream.close, response))

        exchange = Exchange(send, spell, Patience(call.patience_s))
        reply = exchange.cross(crossing.pipeline, call)
        return _response(lib, reply, stream_class(reply, exchange))

    return handle_request


def _async(lib: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    stream_class: Any = type("CrossedAsyncStream", (AsyncBody, lib.AsyncByteStream), {})
    spell = _spell(lib)

    @functools.wraps(original)
    async def handle_async_request(self: Any, request: Any) -> Any:
        crossing = current()
        if crossing is None or _unix(self):
            return await original(self, request)
        call = _call(lib, request, crossing)

        async def send(asked: Call) -> Reply:
            outgoing = _outgoing(lib, request, call, asked)
            with outside():
                response = await original(self, outgoing)
            stream = response.stream
            return _reply(response, AsyncLive(aiter(stream), stream.aclose, response))

        exchange = AsyncExchange(send, spell, Patience(call.patience_s, await_=_asleep))
        reply = await exchange.cross(crossing.pipeline, call)
        return _response(lib, reply, stream_class(reply, exchange))

    return handle_async_request


def _unix(transport: Any) -> bool:
    return getattr(getattr(transport, "_pool", None), "_uds", None) is not None


def _call(lib: Any, request: Any, crossing: Crossing) -> Call:
    try:
        body, upload = request.content, None
    except lib.RequestNotRead:  # a body that is still being produced
        body, upload = b"", request.stream
    return Call(
        request.method,
        str(request.url),
        text_headers(request.headers.raw),
        body,
        upload,
        lane=crossing.lane(),
        patience_s=request.extensions.get("timeout", {}).get("read"),
    )


def _outgoing(lib: Any, request: Any, made: Call, asked: Call) -> Any:
    """The request to send for `asked`, where the agent's `request` was understood as `made`."""
    if asked is made or (asked.headers is made.headers and _same_request(made, asked)):
        copied = object.__new__(type(request))  # what copy.copy would do, had httpx not taught it to drop the stream
        vars(copied).update(vars(request))
        copied.headers = _identity(request.headers)
        return copied
    url, stream = request.url, request.stream
    headers = _replaced(raw_headers(asked.headers), b"Accept-Encoding", b"identity")
    if asked.body != made.body or asked.upload is not made.upload:
        stream = lib.ByteStream(asked.body)
        headers = _replaced(headers, b"Content-Length", b"%d" % len(asked.body), drop=b"transfer-encoding")
    if asked.url != made.url:
        url = lib.URL(asked.url)
        headers = _replaced(headers, b"Host", url.netloc)
    return lib.Request(asked.method, url, headers=headers, stream=stream, extensions=request.extensions)


def _identity(headers: Any) -> Any:
    """The headers, asking for no compression: what is recorded can be read, and cut anywhere."""
    fields = getattr(headers, "_list", None)
    if fields is None or not isinstance(fields, list):  # another make of the class: the public way, five times slower
        copied = headers.copy()
        copied["Accept-Encoding"] = "identity"
        return copied
    copied = object.__new__(type(headers))
    vars(copied).update(vars(headers))
    copied._list = [field for field in fields if field[1] != b"accept-encoding"]
    copied._list.append((b"Accept-Encoding", b"accept-encoding", b"identity"))
    return copied


def _same_request(made: Call, asked: Call) -> bool:
    return (asked.method, asked.url, asked.body) == (made.method, made.url, made.body) and asked.upload is made.upload


def _replaced(
    headers: list[tuple[bytes, bytes]], name: bytes, value: bytes, *, drop: bytes = b""
) -> list[tuple[bytes, bytes]]:
    """The headers with exactly one field of this name, where the first one was, and none called `drop`."""
    wanted, found = name.lower(), False
    result: list[tuple[bytes, bytes]] = []
    for field in headers:
        key = field[0].lower()
        if key == wanted:
            if not found:
                result.append((field[0], value))
            found = True
        elif key != drop:
            result.append(field)
    if not found:
        result.append((name, value))
    return result


def _reply(response: Any, live: Live | AsyncLive) -> Reply:
    reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
    live.reply = Reply(response.status_code, text_headers(response.headers.raw), live, reason=reason)
    return live.reply


def _response(lib: Any, reply: Reply, stream: Any) -> Any:
    """What the agent gets: the live response with the pipeline's stream, or one of its own where a stage changed it."""
    live = reply.body if isinstance(reply.body, (Live, AsyncLive)) else None
    if live is not None and live.same_head(reply):
        live.response.stream = stream
        return live.response
    extensions = {"http_version": b"HTTP/1.1"} if live is None else dict(live.response.extensions)
    extensions["reason_phrase"] = (reply.reason or phrase(reply.status)).encode("latin-1", "replace")
    return lib.Response(reply.status, headers=raw_headers(reply.headers), stream=stream, extensions=extensions)


def _spell(lib: Any) -> Spell:
    """As httpx says it itself; the client adds the request."""

    def spell(failed: CallFailed, moment: Moment) -> BaseException:
        if failed.how == "timeout":
            error: BaseException = lib.ReadTimeout("timed out")
        elif failed.how == "refused" and moment == "call":
            error = lib.ConnectError(f"[Errno {errno.ECONNREFUSED}] {os.strerror(errno.ECONNREFUSED)}")
        else:
            error = lib.ReadError(f"[Errno {errno.ECONNRESET}] {os.strerror(errno.ECONNRESET)}")
        return error

    return spell


async def _asleep(seconds: float) -> None:
    """httpx runs on asyncio and on trio, by way of anyio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        await importlib.import_module("anyio").sleep(seconds)
    else:
        await asyncio.sleep(seconds)
