"""The seam in aiohttp: a client middleware, innermost, added to every request of every session.

`ClientSession._request` follows redirects itself, around its middlewares, so a middleware sees what a transport would:
each hop and each attempt, with the request finished (URL, headers, cookies, body). It hands the agent a
`ClientResponse` of the session's own class whose content pulls the pipeline's chunks as the agent reads, no sooner.
The live response stays behind it and is let go of when that content ends or is given up.

aiohttp decodes a body before anybody above it sees a byte. The upstream is asked not to compress; where it does all
the same, stages see the decoded body, and a reply that no stage has changed keeps the header that aiohttp leaves there.

Web sockets and connectors that lead to no network (Unix sockets, named pipes) are left alone.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import inspect
import os
from collections.abc import AsyncIterator, Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import aiohttp
from aiohttp.client_reqrep import ClientRequest, ClientResponse
from aiohttp.helpers import TimerNoop
from aiohttp.http_parser import DeflateBuffer
from aiohttp.payload import BytesPayload
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from flakestorm.boundary.patience import Patience
from flakestorm.boundary.seams.exchange import AsyncBody, AsyncExchange, AsyncLive, Moment, Spell
from flakestorm.boundary.seams.fields import phrase, raw_headers
from flakestorm.boundary.seams.patches import Patch
from flakestorm.boundary.session import Crossing, current, outside
from flakestorm.core.call import Call, Headers, Reply, header, without_headers
from flakestorm.errors import CallFailed, Misuse

__all__ = ["patches"]

_BUFFER_BYTES = 2**16
_RESPONSE_OPTIONS = frozenset(inspect.signature(ClientResponse).parameters)
_DECODED = frozenset(("gzip", "deflate", "br", "zstd"))

Handler = Callable[[ClientRequest], Any]


def patches(lib: ModuleType) -> list[Patch]:
    """What to change in aiohttp.

    Raises:
        Misuse: it is older than 3.12, which has no client middlewares.
    """
    if "middlewares" not in inspect.signature(aiohttp.ClientSession._request).parameters:
        raise Misuse(
            f"aiohttp {lib.__version__} is too old for its calls to be held; install aiohttp 3.12 or newer, "
            "or launch the agent as a process of its own (agent.type: command or http)"
        )
    return [Patch(aiohttp.ClientSession, "_request", _wrap)]


def _wrap(original: Callable[..., Any]) -> Callable[..., Any]:
    local = (aiohttp.UnixConnector, aiohttp.NamedPipeConnector)

    @functools.wraps(original)
    async def _request(self: aiohttp.ClientSession, method: str, str_or_url: Any, **kwargs: Any) -> Any:
        crossing = current()
        if crossing is None or isinstance(self.connector, local):
            return await original(self, method, str_or_url, **kwargs)
        theirs = kwargs.get("middlewares")
        if theirs is None:
            theirs = self._middlewares
        timeout = _timeout(self, kwargs)
        decodes = kwargs.get("auto_decompress")
        ours = _Middleware(crossing, timeout, decodes=self.auto_decompress if decodes is None else decodes)
        kwargs["middlewares"] = (*theirs, ours)
        return await original(self, method, str_or_url, **kwargs)

    return _request


def _timeout(session: aiohttp.ClientSession, kwargs: dict[str, Any]) -> aiohttp.ClientTimeout:
    given = kwargs.get("timeout", session.timeout)
    if isinstance(given, aiohttp.ClientTimeout):
        return given
    if given is None or isinstance(given, (int, float)):
        return aiohttp.ClientTimeout(total=given)
    return session.timeout  # aiohttp's own mark for "not given"


class _Middleware:
    """Crosses every request of one `ClientSession._request`."""

    def __init__(self, crossing: Crossing, timeout: aiohttp.ClientTimeout, *, decodes: bool) -> None:
        self.crossing, self.timeout, self.decodes = crossing, timeout, decodes
        self.patience = Patience(crossing.clock, timeout.sock_read or None, total_s=timeout.total or None)

    async def __call__(self, request: ClientRequest, handler: Handler) -> ClientResponse:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._websocket(request, handler)
        self.patience.restart()
        call = await self._call(request)

        async def send(asked: Call) -> Reply:
            await _prepare(request, call, asked)
            with outside():
                response = await handler(request)
            return self._reply(response)

        exchange = AsyncExchange(send, self._spell(request), lambda: self.patience)
        reply = await exchange.cross(self.crossing.pipeline(call))
        return _response(self, request, reply, AsyncBody(reply, exchange))

    async def _websocket(self, request: ClientRequest, handler: Handler) -> ClientResponse:
        """The handshake crosses; what follows passes unseen, but the tape shows that there was a connection."""
        made: list[ClientResponse] = []

        async def send(_: Call) -> Reply:
            with outside():
                made.append(await handler(request))
            return Reply(made[-1].status, tuple(made[-1].headers.items()), reason=made[-1].reason or "")

        exchange = AsyncExchange(send, self._spell(request), lambda: self.patience)
        reply = await exchange.cross(self.crossing.pipeline(await self._call(request)))
        body = AsyncBody(reply, exchange)
        if not made or made[-1].status != reply.status:
            return _response(self, request, reply, body)
        async for _ in body:  # there is none; reading to its end completes the exchange
            pass
        return made[-1]

    async def _call(self, request: ClientRequest) -> Call:
        held = isinstance(request.body, BytesPayload)
        body = await request.body.as_bytes() if isinstance(request.body, BytesPayload) else b""
        limits = [s for s in (self.timeout.sock_read, self.timeout.total) if s]
        return Call(
            request.method,
            str(request.url),
            tuple(request.headers.items()),
            body,
            None if held or not request.body else request.body,
            lane=self.crossing.lane("aiohttp"),
            patience_s=min(limits) if limits else None,
        )

    def _reply(self, response: ClientResponse) -> Reply:
        async def release() -> None:
            response.release()  # closes the connection if bytes are still coming

        headers: Headers = tuple(response.headers.items())
        if self.decodes and (header(headers, "content-encoding") or "").lower() in _DECODED:
            headers = without_headers(headers, "content-encoding", "content-length")
        live = AsyncLive(_pieces(response), release, response)
        live.reply = Reply(response.status, headers, live, reason=response.reason or "")
        return live.reply

    def _spell(self, request: ClientRequest) -> Spell:
        def spell(failed: CallFailed, moment: Moment) -> BaseException:
            if failed.how == "timeout":
                if self.patience.spent or self.patience.read_s is None:
                    return TimeoutError()
                return aiohttp.SocketTimeoutError("Timeout on reading data from socket")
            if failed.how == "refused" and moment == "call":
                why = f"Connect call failed ({request.host!r}, {request.port})"
                return aiohttp.ClientConnectorError(
                    request.connection_key, ConnectionRefusedError(errno.ECONNREFUSED, why)
                )
            error = ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            if moment == "call":
                return aiohttp.ClientOSError(*error.args)
            return aiohttp.ClientPayloadError(f"Response payload is not completed: {error!r}")

        return spell


async def _prepare(request: ClientRequest, made: Call, asked: Call) -> None:
    """Make the request say what `asked` says, where it was understood as `made`."""
    if asked.headers is not made.headers:
        request.headers.clear()
        request.headers.extend(asked.headers)
    request.headers["Accept-Encoding"] = "identity"  # what is recorded can be read, and cut anywhere
    request.method = asked.method
    if asked.url != made.url:
        request.url = URL(asked.url, encoded=True)
        request.headers["Host"] = request.url.authority
    if asked.body != made.body or asked.upload is not made.upload:
        await request.update_body(asked.body)


async def _pieces(response: ClientResponse) -> AsyncIterator[bytes]:
    content = response.content
    while not content.at_eof():
        piece, _ = await content.readchunk()
        if piece:
            yield piece


class _Content(aiohttp.StreamReader):
    """The content of a crossed response: fed by the reader itself, whenever its buffer is empty."""

    __slots__ = ("_body", "_chunked", "_feeds", "_given_up", "_patience", "_reading")

    def __init__(self, body: AsyncBody, patience: Patience, *, chunked: bool, encoding: str) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(_Wire(loop), _BUFFER_BYTES, loop=loop)  # type: ignore[arg-type]
        self._body, self._patience, self._chunked = body, patience, chunked
        self._feeds: Any = DeflateBuffer(self, encoding) if encoding else None
        self._reading: asyncio.Task[Any] | None = None
        self._given_up = False

    async def _wait(self, func_name: str) -> None:
        """aiohttp's readers call this when there is nothing to read; it returns when there is, or at the end."""
        if self._reading is not None:
            raise RuntimeError(f"{func_name}() called while another coroutine is already waiting for incoming data")
        self._reading = asyncio.current_task()
        try:
            async with asyncio.timeout(self._patience.total_left_s):
                chunk = await anext(self._body, None)
        except asyncio.CancelledError:
            if not self._given_up or self._exception is None:
                raise
            self._reading.uncancel()  # type: ignore[union-attr]  # aiohttp runs in tasks only
            raise self._exception from None
        except BaseException as error:
            await self._body.aclose()
            super().set_exception(error)
            raise
        finally:
            self._reading = None
        self._feed(chunk)

    def _feed(self, chunk: bytes | None) -> None:
        into = self._feeds or self
        if chunk is None:
            into.feed_eof()
            return
        if self._chunked:
            self.begin_http_chunk_receiving()
        more = into.feed_data(chunk, len(chunk))
        while more:  # a decoder gives out a limited amount at a time
            more = into.feed_data(b"", 0)
        if self._chunked:
            self.end_http_chunk_receiving()

    async def wait_eof(self) -> None:
        while not self._eof:
            await self._wait("wait_eof")

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """aiohttp's way of saying that the response was closed or released."""
        super().set_exception(exc, *cause)
        if self._reading is not None:  # by another task, while one is reading
            self._given_up = True
            self._reading.cancel()
        elif not self._eof:
            _run_now(self._body.aclose())


class _Wire:
    """What a `StreamReader` asks of the connection it believes it reads from; pulling needs no flow control."""

    connected = True

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def pause_reading(self) -> None:
        """Nothing is read that was not asked for."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        """As above."""


def _run_now(work: Any) -> None:
    """Run a coroutine that has nothing to wait for; one that has is cut short at that point, closing what it held."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()


def _response(crosser: _Middleware, request: ClientRequest, reply: Reply, body: AsyncBody) -> ClientResponse:
    live = reply.body if isinstance(reply.body, AsyncLive) else None
    heard: Any = live.response if live is not None and live.same_head(reply) else None
    options = {
        "writer": None,
        "continue100": None,
        "timer": TimerNoop(),
        "request_info": request.request_info,
        "traces": request._traces,
        "loop": request.loop,
        "session": request._session,
        "stream_writer": SimpleNamespace(output_size=0),
    }
    response = request.response_class(
        request.method,
        request.original_url,
        **{name: value for name, value in options.items() if name in _RESPONSE_OPTIONS},  # type: ignore[arg-type]
    )
    headers = heard.headers if heard else CIMultiDictProxy(CIMultiDict(reply.headers))
    encoding = "" if live is not None or not crosser.decodes else headers.get("Content-Encoding", "").lower()
    chunked = "chunked" in headers.get("Transfer-Encoding", "").lower()
    content = _Content(body, crosser.patience, chunked=chunked, encoding=encoding if encoding in _DECODED else "")
    response.version = live.response.version if live is not None else aiohttp.HttpVersion11
    response.status, response.content = reply.status, content
    response.reason = reply.reason or phrase(reply.status)
    response._headers = headers
    response._raw_headers = heard.raw_headers if heard else tuple(raw_headers(reply.headers))
    response._raw_cookie_headers = tuple(headers.getall("Set-Cookie", ())) or None
    response._closed = False
    content.on_eof(response._response_eof)
    return response
