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
from types import ModuleType
from typing import Any

from flakestorm.boundary.patience import Patience
from flakestorm.boundary.seams.exchange import (
    AsyncBody,
    AsyncExchange,
    AsyncLive,
    Body,
    Exchange,
    Live,
    Moment,
    Spell,
)
from flakestorm.boundary.seams.fields import Fields, phrase, raw_headers, text_headers
from flakestorm.boundary.seams.patches import Patch
from flakestorm.boundary.seams.told import AsyncTold, Told, told
from flakestorm.boundary.seams.watched import AsyncWatched, Watched
from flakestorm.boundary.session import Crossing, current, outside, step_in, step_out
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import Watching
from flakestorm.errors import CallFailed

__all__ = ["patches"]

_PLACES = 256  # kept in mind per run
_ACCEPTS = b"accept-encoding"
_IDENTITY = (b"Accept-Encoding", _ACCEPTS, b"identity")  # what is recorded can be read, and cut anywhere
# What the classes are known to hold.
_REQUEST = {"method", "url", "headers", "extensions", "stream", "_content"}
_HEADERS = {"_list", "_encoding"}


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
    told_class: Any = type("ToldStream", (Told, lib.SyncByteStream), {})
    spell, outgoing = _spell(lib), _outgoing(lib)

    @functools.wraps(original)
    def handle_request(self: Any, request: Any) -> Any:
        crossing = current()
        if crossing is None or getattr(getattr(self, "_pool", None), "_uds", None) is not None:  # a Unix socket
            return original(self, request)
        call, place, at = _call(lib, request, crossing)
        flow = crossing.pipeline(call)
        if isinstance(flow, Watching):  # nothing stands between: the agent gets the world's own response
            clock, inside = crossing.clock, step_out(None)
            clock.begin()
            try:
                response = original(self, outgoing(request, call, flow.call, at))
            except BaseException as error:
                flow.failed(error)
                raise
            finally:
                clock.end()
                step_in(inside)
            reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
            _, headers, _ = place.said.known(_fields(response.headers))
            response.stream = watched_class(response.stream, flow.watched(response.status_code, headers, reason))
            return response
        if (answer := told(flow)) is not None:
            return _response(lib, answer, told_class(answer))

        def send(asked: Call) -> Reply:
            sent = outgoing(request, call, asked, at)
            with outside():
                response = original(self, sent)
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
    told_class: Any = type("ToldAsyncStream", (AsyncTold, lib.AsyncByteStream), {})
    spell, outgoing = _spell(lib), _outgoing(lib)

    @functools.wraps(original)
    async def handle_async_request(self: Any, request: Any) -> Any:
        crossing = current()
        if crossing is None or getattr(getattr(self, "_pool", None), "_uds", None) is not None:  # a Unix socket
            return await original(self, request)
        call, place, at = _call(lib, request, crossing)
        flow = crossing.pipeline(call)
        if isinstance(flow, Watching):  # as in handle_request
            clock, inside = crossing.clock, step_out(None)
            clock.begin()
            try:
                response = await original(self, outgoing(request, call, flow.call, at))
            except BaseException as error:
                flow.failed(error)
                raise
            finally:
                clock.end()
                step_in(inside)
            reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
            _, headers, _ = place.said.known(_fields(response.headers))
            response.stream = watched_class(response.stream, flow.watched(response.status_code, headers, reason))
            return response
        if (answer := told(flow)) is not None:
            return _response(lib, answer, told_class(answer))

        async def send(asked: Call) -> Reply:
            sent = outgoing(request, call, asked, at)
            with outside():
                response = await original(self, sent)
            stream = response.stream
            live = AsyncLive(aiter(stream), stream.aclose, response)
            live.reply = _reply(response, live)
            return live.reply

        exchange = AsyncExchange(send, spell, functools.partial(Patience, crossing.clock, call.patience_s))
        reply = await exchange.cross(flow)
        return _response(lib, reply, stream_class(reply, exchange))

    return handle_async_request


class _Place:
    """An address that the agent calls, and the header fields that went there and came back last."""

    __slots__ = ("address", "asked", "said")

    def __init__(self, address: str) -> None:
        sent = address.partition("#")[0]  # Mistral's SDK streams from `.../chat/completions#stream`; that stays here
        self.address, self.asked, self.said = sent, Fields(_ACCEPTS), Fields()


def _place(url: Any, crossing: Crossing) -> _Place:
    """What is kept in mind of a URL, by the parts that its class holds: putting them together takes a dozen steps."""
    parts, places = getattr(url, "_uri_reference", None) or str(url), crossing.places
    place = places.get(parts)
    if place is None:
        if len(places) >= _PLACES:
            places.clear()
        place = places[parts] = _Place(str(url))
    return place


def _call(lib: Any, request: Any, crossing: Crossing) -> tuple[Call, _Place, int]:
    """The request as a call, what is kept in mind of its address, and where among its header fields stands which
    encodings it accepts: see `Fields.known`."""
    place = _place(request.url, crossing)
    _, headers, at = place.asked.known(_fields(request.headers))
    try:
        body, upload = request.content, None
    except lib.RequestNotRead:  # a body that is still being produced
        body, upload = b"", request.stream
    call = Call(
        request.method,
        place.address,
        headers,
        body,
        upload,
        lane=crossing.lane(lib.__name__),
        patience_s=request.extensions.get("timeout", {}).get("read"),
    )
    return call, place, at


def _outgoing(lib: Any) -> Callable[[Any, Call, Call, int], Any]:
    """Makes the request to send for `asked`, where the agent's `request` was understood as `made`, and says `at` this
    place among its header fields which encodings it accepts."""
    plain = {*vars(lib.Request("GET", "http://localhost"))} == _REQUEST and {*vars(lib.Headers())} == _HEADERS
    request_class, headers_class, new = lib.Request, lib.Headers, object.__new__

    def outgoing(request: Any, made: Call, asked: Call, at: int) -> Any:
        if not (
            asked.headers is made.headers
            and (asked.body is made.body or asked.body == made.body)
            and asked.upload is made.upload
            and asked.url == made.url
            and asked.method == made.method
        ):
            return _changed(lib, request, made, asked)
        headers = request.headers
        if not (plain and made.upload is None and type(request) is request_class and type(headers) is headers_class):
            copied = new(type(request))  # what copy.copy would do, had httpx not taught it to drop the stream
            copied.__dict__ = {**vars(request), "headers": _identity(headers)}
            return copied
        fields = headers._list.copy()
        if at >= 0:
            fields[at] = _IDENTITY
        else:
            fields = [*(field for field in fields if field[1] != _ACCEPTS), _IDENTITY]
        # One by one, in the order of the class: asked for all at once (`vars`), an object loses its quick form.
        ours = new(headers_class)
        ours._list, ours._encoding = fields, headers._encoding
        sent = new(request_class)
        sent.method, sent.url, sent.headers = request.method, request.url, ours
        sent.extensions, sent.stream, sent._content = request.extensions, request.stream, made.body
        return sent

    return outgoing


def _changed(lib: Any, request: Any, made: Call, asked: Call) -> Any:
    """A request that a stage wants otherwise."""
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


def _identity(headers: Any) -> Any:
    """The headers, asking for no compression: what is recorded can be read, and cut anywhere."""
    copied = headers.copy()
    copied["Accept-Encoding"] = "identity"
    return copied


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
