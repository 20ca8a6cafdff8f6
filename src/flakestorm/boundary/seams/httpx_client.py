"""The seam in httpx and httpx2: the transports that reach a network.

`HTTPTransport.handle_request` and `AsyncHTTPTransport.handle_async_request` are where a client, an SDK's own client or
a subclass of either hands a finished request over, once per attempt and per redirect hop. Transports that reach no
network (ASGI, WSGI, `MockTransport`), those of other libraries and Unix sockets are left alone.

The two packages have the same shape, so this module is told which one it serves and imports neither.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable
from operator import itemgetter
from types import ModuleType
from typing import Any

from flakestorm.boundary.patience import Patience
from flakestorm.boundary.seams.exchange import (
    AsyncBody,
    AsyncExchange,
    AsyncLive,
    AsyncWatched,
    Body,
    Exchange,
    Live,
    Moment,
    Spell,
    Watched,
    phrase,
    raw_headers,
    text_headers,
)
from flakestorm.boundary.seams.patches import Patch
from flakestorm.boundary.session import Crossing, current, outside, step_in, step_out
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import Watching
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
    watched_class: Any = type("WatchedStream", (Watched, lib.SyncByteStream), {})
    spell = _spell(lib)

    @functools.wraps(original)
    def handle_request(self: Any, request: Any) -> Any:
        crossing = current()
        if crossing is None or _unix(self):
            return original(self, request)
        call = _call(lib, request, crossing)
        flow = crossing.pipeline(call)
        if isinstance(flow, Watching):  # nothing stands between: the agent gets the world's own response
            inside = step_out(None)
            crossing.clock.begin()
            try:
                response = original(self, _outgoing(lib, request, call, flow.call))
            except BaseException as error:
                flow.failed(error)
                raise
            finally:
                crossing.clock.end()
                step_in(inside)
            response.stream = watched_class(flow.answered(_reply(response, response.stream)))
            return response

        def send(asked: Call) -> Reply:
            outgoing = _outgoing(lib, request, call, asked)
            with outside():
                response = original(self, outgoing)
            stream = response.stream
            live = Live(iter(stream), stream.close, response)
            live.reply = _reply(response, live)
            return live.reply

        exchange = Exchange(send, spell, functools.partial(Patience, crossing.clock, call.patience_s))
        reply = exchange.cross(flow)
        return _response(lib, reply, stream_class(reply, exchange))

    return handle_request


def _async(lib: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    stream_class: Any = type("CrossedAsyncStream", (AsyncBody, lib.AsyncByteStream), {})
    watched_class: Any = type("WatchedAsyncStream", (AsyncWatched, lib.AsyncByteStream), {})
    spell = _spell(lib)

    @functools.wraps(original)
    async def handle_async_request(self: Any, request: Any) -> Any:
        crossing = current()
        if crossing is None or _unix(self):
            return await original(self, request)
        call = _call(lib, request, crossing)
        flow = crossing.pipeline(call)
        if isinstance(flow, Watching):  # as in handle_request
            inside = step_out(None)
            crossing.clock.begin()
            try:
                response = await original(self, _outgoing(lib, request, call, flow.call))
            except BaseException as error:
                flow.failed(error)
                raise
            finally:
                crossing.clock.end()
                step_in(inside)
            response.stream = watched_class(flow.answered(_reply(response, response.stream)))
            return response

        async def send(asked: Call) -> Reply:
            outgoing = _outgoing(lib, request, call, asked)
            with outside():
                response = await original(self, outgoing)
            stream = response.stream
            live = AsyncLive(aiter(stream), stream.aclose, response)
            live.reply = _reply(response, live)
            return live.reply

        exchange = AsyncExchange(send, spell, functools.partial(Patience, crossing.clock, call.patience_s))
        reply = await exchange.cross(flow)
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
        _address(request.url),
        text_headers(_fields(request.headers)),
        body,
        upload,
        lane=crossing.lane(lib.__name__),
        patience_s=request.extensions.get("timeout", {}).get("read"),
    )


class _Addresses(dict[Any, str]):
    """URLs as text, by their parts. An agent asks few, and putting one together again takes a dozen steps. None is
    kept that may hold a secret."""

    def __missing__(self, parts: Any) -> str:
        text = str(parts)
        if "?" not in text and "@" not in text:
            if len(self) >= 256:
                self.clear()
            self[parts] = text
        return text


_addresses = _Addresses()


def _address(url: Any) -> str:
    """The URL as `str` gives it: the class puts together the parts it holds."""
    parts = getattr(url, "_uri_reference", None)
    return str(url) if parts is None else _addresses[parts]


def _outgoing(lib: Any, request: Any, made: Call, asked: Call) -> Any:
    """The request to send for `asked`, where the agent's `request` was understood as `made`."""
    if _same_request(made, asked):
        copied = object.__new__(type(request))  # what copy.copy would do, had httpx not taught it to drop the stream
        copied.__dict__ = {**vars(request), "headers": _identity(request.headers)}
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


def _fields(headers: Any) -> Any:
    """The header fields: first the name, last the value. The class's own list where it has one, else what it gives."""
    fields = getattr(headers, "_list", None)
    return fields if type(fields) is list else headers.raw


_IDENTITY = (b"Accept-Encoding", b"accept-encoding", b"identity")
_lower = itemgetter(1)


def _identity(headers: Any) -> Any:
    """The headers, asking for no compression: what is recorded can be read, and cut anywhere."""
    fields = getattr(headers, "_list", None)
    if type(fields) is not list:  # another make of the class: the public way, five times slower
        copied = headers.copy()
        copied["Accept-Encoding"] = "identity"
        return copied
    names = list(map(_lower, fields))
    if names.count(b"accept-encoding") == 1:
        fields = fields.copy()
        fields[names.index(b"accept-encoding")] = _IDENTITY
    else:
        fields = [*(field for field in fields if field[1] != b"accept-encoding"), _IDENTITY]
    copied = object.__new__(type(headers))
    copied.__dict__ = {**vars(headers), "_list": fields}
    return copied


def _same_request(made: Call, asked: Call) -> bool:
    return (
        (asked.body is made.body or asked.body == made.body)
        and asked.upload is made.upload
        and asked.url == made.url
        and asked.method == made.method
        and asked.headers is made.headers
    )


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


def _reply(response: Any, body: Any) -> Reply:
    reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
    return Reply(response.status_code, text_headers(_fields(response.headers)), body, (), reason)


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
