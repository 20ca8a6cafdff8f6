"""The gateway: where launched agents of any language cross the boundary.

A loopback server that agents reach by base-URL variables, by the shim, or as an HTTP proxy (see `route.py`). Each
request becomes a `Call`, runs through the pipeline of the run its token is bound to, and the reply is delivered chunk
by chunk as it arrives. It does no more than that: what is recorded, replayed or broken is the pipeline's business.

When a call breaks (`CallFailed`, by a fault or by the world) the agent's client must see it break. Before the head of
the reply has left: `timeout` is 504 and `refused` is 502, marked `x-flakestorm-failed`, which the shim turns into the
library's own exception; `reset` is a TCP reset. After that the connection is cut.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import aclosing, closing
from dataclasses import replace

from aiohttp import web

from flakestorm.boundary.delivery import CLOSED, Delivery, error_reply, reset
from flakestorm.boundary.live import Live, LiveBody, end_to_end
from flakestorm.boundary.mcp_door import serve
from flakestorm.boundary.mcp_servers import MCP_PLACE
from flakestorm.boundary.mcp_sse import Stream
from flakestorm.boundary.passage import Passage
from flakestorm.boundary.route import Lost, Route, locate
from flakestorm.boundary.tunnel import Tunnel
from flakestorm.boundary.upload import Upload
from flakestorm.core.call import Call, Reply, Tap, header, with_header
from flakestorm.core.choices import entropy_token
from flakestorm.core.pipeline import Interceptor, adrive
from flakestorm.core.stream import apump, pump
from flakestorm.errors import CallFailed, Misuse

__all__ = ["FAILED", "PATIENCE", "Gateway"]

FAILED = "x-flakestorm-failed"
"""Reply header: how the call broke; only on replies of the gateway's own."""

PATIENCE = "x-flakestorm-patience-ms"
"""Request header, set by the shim: how long the agent's client waits for bytes."""

_STATUS = {"timeout": 504, "refused": 502}
_log = logging.getLogger("flakestorm.boundary")


class Gateway:
    """The loopback server. Use it inside one event loop: `start`, `admit` agents, `close`."""

    def __init__(self) -> None:
        self._passages: dict[str, Passage] = {}
        self._runner: web.ServerRunner | None = None
        self._live: Live | None = None
        self._own: frozenset[str] = frozenset()
        self.port = 0

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1.

        Args:
            port: 0 for any free one.

        Raises:
            Misuse: the port cannot be had.
        """
        # In a context of its own: what the gateway sends is not a call of the run that happened to start it.
        await asyncio.create_task(self._start(port), context=contextvars.Context())

    async def _start(self, port: int) -> None:
        server = web.Server(
            self._handle,
            handler_cancellation=True,  # a client that leaves ends its call, its sleep and its upstream request
            auto_decompress=False,
            access_log=None,
            max_line_size=256 * 1024,
            max_field_size=256 * 1024,
            max_headers=2048,
            read_bufsize=256 * 1024,
        )
        runner = web.ServerRunner(server, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            raise Misuse(f"the gateway cannot listen on 127.0.0.1:{port}: {error}; choose another port") from error
        self._live, self._runner = Live(), runner
        self.port = int(runner.addresses[0][1])
        self._own = frozenset((f"127.0.0.1:{self.port}", f"localhost:{self.port}"))

    async def close(self) -> None:
        """Stop listening, break what is still open, drop all passages."""
        self._passages.clear()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._live is not None:
            await self._live.close()
            self._live = None

    def admit(self) -> Passage:
        """A passage for one agent instance; its `upstreams` are for the caller to fill in."""
        passage = Passage(entropy_token())
        self._passages[passage.token] = passage
        return passage

    def dismiss(self, passage: Passage) -> None:
        """Its token is no longer served."""
        self._passages.pop(passage.token, None)

    @property
    def passages(self) -> int:
        """How many tokens are being served."""
        return len(self._passages)

    def url(self, passage: Passage) -> str:
        """The root of everything this passage can reach: `http://127.0.0.1:PORT/r/TOKEN`."""
        return f"http://127.0.0.1:{self.port}/r/{passage.token}"

    def proxy(self, passage: Passage) -> str:
        """The URL for HTTP_PROXY and HTTPS_PROXY."""
        return f"http://x:{passage.token}@127.0.0.1:{self.port}"

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        target = request.raw_path
        try:
            route = locate(request.method, target, request.headers.get("Proxy-Authorization"), self._own)
            passage = self._passage(route)
            if request.headers.get("Upgrade", "").lower() == "websocket":
                raise Lost(501, "websocket connections are not supported; only HTTP calls can be recorded and broken")
            if route.way == "tunnel":
                return await self._tunnel(request, route, passage)
            if route.way == "mcp":
                return await serve(request, route.url, passage)
            return await self._cross(request, route, passage)
        except Lost as lost:
            extra = (("Proxy-Authenticate", 'Basic realm="flakestorm"'),) if lost.status == 407 else ()
            return await _deliver(request, error_reply(lost.status, "flakestorm_gateway", lost.message, *extra))

    def _passage(self, route: Route) -> Passage:
        if route.own:
            return Passage("")
        passage = self._passages.get(route.token)
        if passage is None:
            raise Lost(403, "unknown run token; the run it was made for has ended, or the URL was cut short")
        if route.way == "base" and route.provider not in passage.upstreams:
            known = ", ".join(sorted(passage.upstreams)) or "none"
            raise Lost(404, f"no upstream is known for provider {route.provider!r} (known: {known})")
        return passage

    async def _cross(self, request: web.BaseRequest, route: Route, passage: Passage) -> web.StreamResponse:
        origin = passage.upstreams[route.provider] if route.way == "base" else ""
        path = route.url if not origin or route.url[:1] == "/" else f"/{route.url}"
        pipeline, waiting, live = passage.pipeline, _Waiting(_patience_s(request)), self._live
        if live is None:
            raise Lost(503, "it is shutting down")
        call = await self._call(request, origin + path, passage, waiting)
        if call.method == "POST" and (session := passage.sessions.get(call.url)) is not None:
            session.posted(call.body, call.headers)
            return await _deliver(request, Reply(202, (("Content-Length", "0"),)))
        if route.provider.startswith(MCP_PLACE) and call.method == "GET":
            call = replace(call, kind="mcp", name="GET")
        bodies: list[LiveBody | Stream] = []

        def place(url: str) -> str:
            return f"/r/{passage.token}/p/{route.provider}{url[len(origin) :]}" if url.startswith(origin) else url

        async def send(call: Call) -> Reply:
            reply = await live.send(call)
            if not isinstance(reply.body, LiveBody):
                return reply
            bodies.append(reply.body)
            if call.method != "GET" or reply.status != 200 or not reply.streamed:
                return reply
            stream = Stream(reply.body, call, live, passage, place if origin else str)
            bodies.append(stream)
            return replace(reply, body=stream)

        try:
            reply = await self._ask(request, pipeline, call, send, waiting)
            if isinstance(reply, web.StreamResponse):
                return reply
            if origin and reply.status in (201, 301, 302, 303, 307, 308):
                reply = _relocate(reply, origin, f"/r/{passage.token}/p/{route.provider}")
            return await _deliver(request, reply)
        finally:
            for body in bodies:  # also those that a stage has put aside
                body.close()

    async def _ask(
        self,
        request: web.BaseRequest,
        pipeline: Interceptor,
        call: Call,
        send: Callable[[Call], Awaitable[Reply]],
        waiting: _Waiting,
    ) -> Reply | web.StreamResponse:
        """The pipeline's reply, or what was already done with the connection instead."""
        try:
            return await adrive(pipeline(call), send, waiting.sleep)
        except Exception as error:
            if isinstance(call.upload, Upload) and call.upload.lost is not None:
                raise call.upload.lost from error  # the client's own doing, whatever it looked like further in
            if not isinstance(error, CallFailed):
                _log.exception("a stage failed on %s %s", call.method, call.url)
                return error_reply(500, "flakestorm_error", f"a stage of the pipeline failed: {error!r}")
            if error.how == "reset":
                return reset(request)
            message = error.detail or f"the call to {call.url} failed: {error.how}"
            return error_reply(_STATUS[error.how], error.how, message, (FAILED, error.how))

    async def _call(self, request: web.BaseRequest, url: str, passage: Passage, waiting: _Waiting) -> Call:
        """The request as a call; its body is read here unless it is being produced while it is sent."""
        authority = url.partition("://")[2].partition("/")[0].partition("?")[0]
        body, upload = b"", None
        if request.body_exists:
            source = Upload(request)
            chunked = "chunked" in request.headers.get("Transfer-Encoding", "").lower()
            if chunked and "json" not in request.headers.get("Content-Type", "").lower():
                upload = source
            else:
                body = await source.whole()
                waiting.begin()
        return Call(
            method=request.method,
            url=url,
            headers=end_to_end(request.raw_headers, host=authority),
            body=body,
            upload=upload,
            lane=passage.lane(_peer(request)),
            patience_s=waiting.patience_s,
        )

    async def _tunnel(self, request: web.BaseRequest, route: Route, passage: Passage) -> web.StreamResponse:
        tunnel = Tunnel(request)
        call = Call("CONNECT", route.url, lane=passage.lane(_peer(request)))
        try:
            reply = await self._ask(request, passage.pipeline, call, tunnel.send, _Waiting(None))
            if isinstance(reply, web.StreamResponse):
                return reply
            if reply.status != 200 or not tunnel.opened:
                return await _deliver(request, reply)
            async with aclosing(apump(reply, asyncio.sleep)) as chunks:
                async for _ in chunks:  # there is no body; reading to its end completes the exchange
                    pass
            await tunnel.carry()
            return CLOSED
        finally:
            tunnel.close()


class _Waiting:
    """A client that waits: sleeps on its behalf, but not longer than it would."""

    __slots__ = ("_since", "patience_s")

    def __init__(self, patience_s: float | None) -> None:
        self.patience_s = patience_s
        self.begin()

    def begin(self) -> None:
        self._since = asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        if self.patience_s is not None:
            left = self.patience_s - (asyncio.get_running_loop().time() - self._since)
            if seconds >= left:
                await asyncio.sleep(max(left, 0.0))
                raise CallFailed("timeout", f"no reply within the client's {self.patience_s:g} s", injected=True)
        await asyncio.sleep(seconds)


async def _deliver(request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
    """Pump a reply to the client; a break in the middle cuts the connection."""
    delivery = Delivery(request, reply)
    try:
        if isinstance(reply.body, bytes) and all(isinstance(stage, Tap) for stage in reply.through):
            with closing(pump(reply, _awake)) as here:
                return await delivery.all(here)
        async with aclosing(apump(reply, asyncio.sleep)) as chunks:
            return await delivery.run(chunks)
    except CallFailed as failure:
        _log.debug("cut the reply to %s: %s", request.method, failure)
    except ConnectionError:
        return CLOSED
    except Exception:
        _log.exception("a transducer failed")
    return delivery.cut()


def _awake(_seconds: float) -> None:
    """How a tap sleeps: not at all."""


def _relocate(reply: Reply, origin: str, place: str) -> Reply:
    """Keep a redirect within the same upstream on the gateway. Others stay as they are: the client must see that the
    host changes, or it would send its credentials along."""
    location = header(reply.headers, "location") or ""
    if location.startswith("/") and not location.startswith("//"):
        return replace(reply, headers=with_header(reply.headers, "Location", place + location))
    if location == origin or location.startswith((f"{origin}/", f"{origin}?")):
        return replace(reply, headers=with_header(reply.headers, "Location", place + location[len(origin) :]))
    return reply


def _patience_s(request: web.BaseRequest) -> float | None:
    try:
        patience_s = float(request.headers[PATIENCE]) / 1000
    except (KeyError, ValueError):
        return None
    return patience_s if math.isfinite(patience_s) and patience_s > 0 else None


def _peer(request: web.BaseRequest) -> object:
    return request.transport.get_extra_info("peername") if request.transport is not None else None
