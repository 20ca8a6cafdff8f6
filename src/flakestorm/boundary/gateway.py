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
import hashlib
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from typing import cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from flakestorm.boundary.asked import Asked
from flakestorm.boundary.callers import foreign
from flakestorm.boundary.delivery import CLOSED, deliver, error_reply, relocated, reset
from flakestorm.boundary.door import Door, Doors
from flakestorm.boundary.incoming import call_of, patience_of, peer_of
from flakestorm.boundary.inside import Inside, spoken
from flakestorm.boundary.intercept import Interception
from flakestorm.boundary.live import Live, LiveBody
from flakestorm.boundary.mcp_door import serve
from flakestorm.boundary.mcp_servers import MCP_PLACE
from flakestorm.boundary.mcp_sse import Standing, Stream
from flakestorm.boundary.outward import Outward
from flakestorm.boundary.passage import Passage
from flakestorm.boundary.patience import Patience
from flakestorm.boundary.route import Lost, Route, locate, within
from flakestorm.boundary.tunnel import ESTABLISHED, Tunnel
from flakestorm.boundary.upload import Upload
from flakestorm.core.call import Call, Reply
from flakestorm.core.choices import entropy_token
from flakestorm.core.pipeline import Interceptor, adrive
from flakestorm.core.stream import apump
from flakestorm.errors import CallFailed, Misuse
from flakestorm.wire.mcp.protocol import OPEN

__all__ = ["FAILED", "Gateway"]

FAILED = "x-flakestorm-failed"
"""Reply header: how the call broke; only on replies of the gateway's own."""

NO_WEBSOCKETS = "websocket connections are not supported; only HTTP calls can be recorded and broken"

_BACKLOG = 1024
_STATUS = {"timeout": 504, "refused": 502}
_log = logging.getLogger("flakestorm.boundary")


class Gateway:
    """The loopback server. Use it inside one event loop: `start`, `admit` agents, `close`.

    Args:
        interception: reads what is inside CONNECT tunnels, and is closed with the gateway; without, they are opaque.
    """

    def __init__(self, *, interception: Interception | None = None) -> None:
        self.interception = interception
        self._passages: dict[bytes, Passage] = {}  # by `_key` of their tokens
        self._runner: web.ServerRunner | None = None
        self._listener: socket.socket | None = None
        self._site: web.SockSite | None = None
        self._lives: dict[Outward, Live] = {}
        self._inside: dict[object, Callable[[str, str], Route]] = {}  # what connections inside tunnels lead to
        self._own: frozenset[str] = frozenset()
        self.port = 0

    async def start(self, port: int = 0, *, listener: socket.socket | None = None) -> None:
        """Listen on 127.0.0.1.

        Args:
            port: 0 for any free one.
            listener: listen here instead; it is the gateway's from now on.

        Raises:
            Misuse: the port cannot be had.
        """
        self._listener = listener or _listen(port)
        self.port = int(self._listener.getsockname()[1])
        self._own = frozenset((f"127.0.0.1:{self.port}", f"localhost:{self.port}"))
        # In a context of its own: what the gateway sends is not a call of the run that happened to start it.
        await asyncio.create_task(self._start(), context=contextvars.Context())

    async def _start(self) -> None:
        server = Doors(
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
        self._runner = runner
        await self._accept(self._listener, runner)

    async def _accept(self, listener: socket.socket | None, runner: web.ServerRunner | None) -> None:
        if listener is not None and runner is not None:
            self._site = web.SockSite(runner, listener.dup(), backlog=_BACKLOG)
            await self._site.start()

    async def lend(self) -> socket.socket:
        """Stop accepting, and let go of every connection as soon as nothing is under way on it.

        Returns:
            The listening socket, for another process to accept on; until then, and until `resume`, connections wait.
        """
        if self._listener is None or self._site is None or self._runner is None or self._runner.server is None:
            raise Misuse("start() comes before lend()")
        await self._site.stop()
        for connection in self._runner.server.connections:
            cast(Door, connection).let_go()
        return self._listener.dup()

    async def resume(self) -> None:
        """Accept again."""
        await asyncio.create_task(self._accept(self._listener, self._runner), context=contextvars.Context())

    async def close(self) -> None:
        """Stop listening, break what is still open, drop all passages."""
        while self._passages:
            passage = self._passages.popitem()[1]
            if passage.dial is not None:
                passage.dial.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = self._site = None
        while self._lives:
            await self._lives.popitem()[1].close()
        if self.interception is not None:
            self.interception.close()
            self.interception = None

    def admit(self, token: str | None = None) -> Passage:
        """A passage for one agent instance; its `upstreams` are for the caller to fill in.

        Args:
            token: one that the agent has already; a fresh one by default.
        """
        passage = Passage(token or entropy_token())
        self._passages[_key(passage.token)] = passage
        return passage

    def dismiss(self, passage: Passage) -> None:
        """Its token is no longer served."""
        self._passages.pop(_key(passage.token), None)

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

    async def _handle(self, request: Asked) -> web.StreamResponse:
        target = request.raw_path
        try:
            inside = self._inside.get(request.protocol) if self._inside else None
            if inside is not None:
                route = inside(request.method, target)
            else:
                credentials, host = request.headers.get("proxy-authorization"), request.headers.get("host")
                route = locate(request.method, target, credentials, self._own, host)
            passage = self._passage(route)
            if route.way in ("base", "mcp"):
                _demand_local(request)
            if route.way == "tunnel":
                request = cast(web.BaseRequest, request)  # no CONNECT is plain
                if self.interception is not None and not route.own:
                    return await self._look_inside(request, route, passage, self.interception)
                return await self._tunnel(request, route, passage)
            if route.way == "mcp":
                return await serve(request, route.url, passage)
            return await self._cross(request, route, passage)
        except Lost as lost:
            extra = (("Proxy-Authenticate", 'Basic realm="flakestorm"'),) if lost.status == 407 else ()
            return await deliver(request, error_reply(lost.status, "flakestorm_gateway", lost.message, *extra))

    def _passage(self, route: Route) -> Passage:
        if route.own:
            return Passage("")
        passage = self._passages.get(_key(route.token))
        if passage is None:
            raise Lost(403, "unknown run token; the run it was made for has ended, or the URL was cut short")
        if route.way == "base" and route.provider not in passage.upstreams:
            known = ", ".join(sorted(passage.upstreams)) or "none"
            raise Lost(404, f"no upstream is known for provider {route.provider!r} (known: {known})")
        return passage

    async def _cross(self, request: Asked, route: Route, passage: Passage) -> web.StreamResponse:
        origin = passage.upstreams[route.provider] if route.way == "base" else ""
        path = route.url if not origin or route.url[:1] == "/" else f"/{route.url}"
        pipeline, patience, live = passage.pipeline, patience_of(request, passage.clock), self._live(passage.outward)
        call = await call_of(request, origin + path, passage, patience, route.way)
        if call.method == "POST" and (session := passage.sessions.get(call.url)) is not None:
            session.posted(call.body, call.headers)
            return await deliver(request, Reply(202, (("Content-Length", "0"),)))
        if route.provider.startswith(MCP_PLACE) and call.method == "GET":
            call = replace(call, kind="mcp", name="GET")
        bodies: list[LiveBody | Stream] = []

        websocket = request.headers.get("upgrade", "").lower() == "websocket"

        def place(url: str) -> str:
            return f"/r/{passage.token}/p/{route.provider}{url[len(origin) :]}" if url.startswith(origin) else url

        async def send(call: Call) -> Reply:
            if websocket:  # refused in the world's place, so that the tape shows what the agent tried
                return error_reply(501, "flakestorm_gateway", NO_WEBSOCKETS)
            if call.method == OPEN:
                asked = replace(call, method="GET", body=b"")
                standing = Stream(Standing(call.body), asked, live, passage, place if origin else str)
                bodies.append(standing)
                return Reply(200, (("content-type", "text/event-stream"),), standing)
            patience.clock.begin()
            try:
                reply = await live.send(call)
            finally:
                patience.clock.end()
            if not isinstance(reply.body, LiveBody):
                return reply
            bodies.append(reply.body)
            if call.method != "GET" or reply.status != 200 or not reply.streamed:
                return reply

            stream = Stream(reply.body, call, live, passage, place if origin else str)
            bodies.append(stream)
            return replace(reply, body=stream)

        passage.enter(call.method)
        try:
            reply = await self._ask(request, pipeline, call, send, patience)
            if isinstance(reply, web.StreamResponse):
                return reply
            if origin and reply.status in (201, 301, 302, 303, 307, 308):
                reply = relocated(reply, origin, f"/r/{passage.token}/p/{route.provider}")
            return await deliver(request, reply, patience)
        finally:
            passage.leave(call.method)
            for body in bodies:  # also those that a stage has put aside
                body.close()

    async def _ask(
        self,
        request: Asked,
        pipeline: Interceptor,
        call: Call,
        send: Callable[[Call], Awaitable[Reply]],
        patience: Patience,
    ) -> Reply | web.StreamResponse:
        """The pipeline's reply, or what was already done with the connection instead."""
        try:
            return await adrive(pipeline(call), send, patience.asleep)
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

    def _live(self, outward: Outward) -> Live:
        if self._runner is None:
            raise Lost(503, "it is shutting down")
        live = self._lives.get(outward)
        if live is None:
            live = self._lives[outward] = Live(outward)
        return live

    async def _tunnel(
        self, request: web.BaseRequest, route: Route, passage: Passage, *, told: bool = False
    ) -> web.StreamResponse:
        """Carry bytes both ways. Where the client has been `told` already that its tunnel is open, and what it speaks
        is known to be neither TLS nor HTTP, a failure can only break the connection."""
        tunnel = Tunnel(request, passage.outward, told=told)
        url = route.url.replace("https:", "tcp:", 1) if told else route.url
        call = Call("CONNECT", url, lane=passage.lane(peer_of(request), route.way))
        patience = Patience(passage.clock, known=False)
        try:
            reply = await self._ask(request, passage.pipeline, call, tunnel.send, patience)
            if isinstance(reply, web.StreamResponse):
                return reply
            if reply.status != 200 or not tunnel.opened:
                return reset(request) if told else await deliver(request, reply, patience)
            async with aclosing(apump(reply, patience.asleep)) as chunks:
                async for _ in chunks:  # there is no body; reading to its end completes the exchange
                    pass
            await tunnel.carry()
            return CLOSED
        finally:
            tunnel.close()

    async def _look_inside(
        self, request: web.BaseRequest, route: Route, passage: Passage, interception: Interception
    ) -> web.StreamResponse:
        """Serve what the agent says inside its tunnel, or carry it through where it is neither TLS nor HTTP."""
        client, runner = request.transport, self._runner
        if client is None or runner is None or runner.server is None:
            return CLOSED
        host, pipeline, lane = route.url.partition("://")[2], passage.pipeline, passage.lane(peer_of(request))
        try:
            context = interception.context(host.rpartition(":")[0].strip("[]"))
        except ValueError:
            return await self._tunnel(request, route, passage)
        client.pause_reading()
        client.write(ESTABLISHED)
        speech = await spoken(client)
        if speech == "other":
            return await self._tunnel(request, route, passage, told=True)
        if speech == "nothing":
            return CLOSED
        passage.enter("TLS")
        handler: RequestHandler = runner.server()
        inside = Inside(handler, host)
        self._inside[handler] = partial(within, route.token, "https" if speech == "tls" else "http", host)
        try:
            trouble = await inside.open(client, context if speech == "tls" else None) or await inside.over()
            if trouble:
                await _say(pipeline, Call("TLS", route.url, lane=lane), trouble)
            return CLOSED
        finally:
            passage.leave("TLS")
            del self._inside[handler]
            inside.close()
            request.protocol.connection_lost(None)  # nobody else will tell it: the connection is not its own any more


def _demand_local(request: Asked) -> None:
    why = foreign(request.headers.get("host", ""), request.headers.get("origin"))
    if why:
        raise Lost(403, why)


def _key(token: str) -> bytes:
    """Passages are found by a hash of their tokens, so how long a search takes says nothing of how near a guess was."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


async def _say(pipeline: Interceptor, call: Call, trouble: str) -> None:
    """Put on the tape that a connection came to nothing before there was a call."""

    async def fail(_: Call) -> Reply:
        raise CallFailed("reset", trouble)

    with suppress(CallFailed):
        await adrive(pipeline(call), fail, asyncio.sleep)


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or error
        raise Misuse(f"the gateway cannot listen on 127.0.0.1:{port}: {said}; choose another port") from error
