"""MCP's HTTP+SSE transport of 2024, which servers still speak: requests go out by POST, answers come by one long GET.

Neither is an exchange by itself, so the gateway holds the middle as it does for stdio: the stream's messages and those
that are posted meet in a `Relay`, whose client end is the stream the agent reads. A stream is known for one by its
first event, `endpoint`, which says where to post; any other stream passes untouched.

On a replay there is no such stream, so one that says nothing is held open in its place (`Standing`). A message that is
for the real server after all has the real stream opened first, and is posted where that says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self
from urllib.parse import urljoin

from flakestorm.boundary.live import Live, LiveBody
from flakestorm.boundary.mcp_relay import End, Relay
from flakestorm.boundary.passage import Passage
from flakestorm.boundary.patience import Patience
from flakestorm.core.call import Call, Headers, without_headers
from flakestorm.errors import CallFailed
from flakestorm.wire.sse import Event, Parser, encode

__all__ = ["Standing", "Stream"]

_ENDPOINT = b"event: endpoint"
_ACCEPTED = range(200, 300)


class Standing:
    """A source that begins as a recorded stream did, and then stays open in silence.

    Args:
        begins: its first event.
    """

    def __init__(self, begins: bytes) -> None:
        self._begins: bytes | None = begins
        self._over = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        begins, self._begins = self._begins, None
        if begins is None:
            await self._over.wait()
            raise StopAsyncIteration
        return begins

    def close(self) -> None:
        """It is over."""
        self._over.set()


class Stream:
    """The body of a GET's reply, a session's from its first event on.

    Args:
        source: the live body.
        call: the GET.
        live: asks the upstream.
        passage: of the agent; knows the session by where its requests are posted.
        place: where the agent finds an upstream URL, to be said in place of it.
    """

    def __init__(
        self, source: LiveBody | Standing, call: Call, live: Live, passage: Passage, place: Callable[[str], str]
    ) -> None:
        self._source, self._call, self._live, self._passage, self._place = source, call, live, passage, place
        self._ready: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self._start: bytes | None = b""  # what has come and does not tell yet; None once it is known what this is
        self._parser, self._goes_on = Parser(), False
        self._endpoint, self._headers = "", call.headers
        self._relay: Relay | None = None
        self._reading: asyncio.Task[None] | None = None
        self._joining: asyncio.Task[str] | None = None
        self._answering: asyncio.Task[None] | None = None

    def posted(self, body: bytes, headers: Headers) -> None:
        """The agent has posted this message."""
        self._headers = without_headers(headers, "content-length")
        if self._relay is not None:
            self._relay.from_client(body)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._start is not None:
            return await self._begin(self._start)
        if self._reading is None:
            return await anext(self._source)
        piece = await self._ready.get()
        if isinstance(piece, bytes):
            return piece
        if piece is None:
            raise StopAsyncIteration
        raise piece

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        """The agent reads no more, or the stream has ended; the session is over."""
        self._passage.sessions.pop(self._endpoint, None)
        for task in (self._reading, self._joining, self._answering):
            if task is not None:
                task.cancel()
        if self._relay is not None:
            self._relay.stop()
        self._source.close()

    async def _begin(self, start: bytes) -> bytes:
        """The first bytes to hand on: at once, unless they may be the beginning of a session."""
        while _ENDPOINT.startswith(start) or start.startswith(_ENDPOINT):
            try:
                chunk = await anext(self._source)
            except StopAsyncIteration:
                self._start = None
                if start:
                    return start
                raise
            start += chunk
            events = self._parser.feed(chunk)
            if events and start.startswith(_ENDPOINT):
                self._start = None
                self._pass(events)
                self._reading = asyncio.get_running_loop().create_task(self._read())
                return await anext(self)
            self._start = start
        self._start = None
        return start

    async def _read(self) -> None:
        try:
            async for chunk in self._source:
                self._pass(self._parser.feed(chunk))
            self._ready.put_nowait(self._parser.pending)
            if self._relay is not None:
                await self._relay.server_gone("has ended its stream")
            self._ready.put_nowait(None)
        except CallFailed as failure:
            self._ready.put_nowait(failure)

    def _pass(self, events: list[Event]) -> None:
        """Take in what has come, with the rest of a line end that is here already."""
        for event in events:
            self._goes_on = self._heard(event)
        rest = self._parser.take()
        if rest and self._goes_on:
            self._ready.put_nowait(rest)

    def _heard(self, event: Event) -> bool:
        """Whether the event goes on to the agent as a part of the stream, and not as a message to be relayed."""
        if self._relay is None and event.data is not None:
            self._open(urljoin(self._call.url, event.data.decode("utf-8", "replace")))
            self._ready.put_nowait(event.with_data(self._place(self._endpoint).encode()).raw)
        elif self._relay is not None and event.data and event.name in ("", "message"):
            self._relay.from_server(event.data)
            return False
        else:  # comments, and other signs of life
            self._ready.put_nowait(event.raw)
        return True

    def _open(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._passage.sessions[endpoint] = self
        self._relay = Relay(
            End(f"{endpoint}#client", self._to_client),
            End(endpoint, self._to_server),
            pipeline=lambda: self._passage.pipeline,
            lane=lambda: self._passage.lane(self, "base"),
            patience=lambda: Patience(self._passage.clock, known=False),
        )

    async def _to_client(self, line: bytes) -> None:
        self._ready.put_nowait(encode(line, name="message"))

    async def _to_server(self, line: bytes) -> None:
        endpoint = self._endpoint
        if isinstance(self._source, Standing):
            if self._joining is None:
                self._joining = asyncio.get_running_loop().create_task(self._join())
            endpoint = await asyncio.shield(self._joining)
        reply = await self._live.send(Call("POST", endpoint, self._headers, line))
        if isinstance(reply.body, LiveBody):
            async for _ in reply.body:  # "Accepted", and the connection is free again
                pass
        if reply.status not in _ACCEPTED:
            raise CallFailed("reset", f"the MCP server answered {reply.status} {reply.reason}".rstrip())

    async def _join(self) -> str:
        """Open the real stream; where it wants its messages posted."""
        reply = await self._live.send(self._call)
        if not isinstance(reply.body, LiveBody):
            raise CallFailed("reset", f"the MCP server answered {reply.status} and no stream")
        parser, found = Parser(), asyncio.get_running_loop().create_future()
        self._answering = asyncio.get_running_loop().create_task(self._hear(reply.body, parser, found))
        endpoint: str = await found
        return endpoint

    async def _hear(self, body: LiveBody, parser: Parser, found: asyncio.Future[str]) -> None:
        try:
            async for chunk in body:
                for event in parser.feed(chunk):
                    if not found.done():
                        found.set_result(urljoin(self._call.url, (event.data or b"").decode("utf-8", "replace")))
                    elif self._relay is not None and event.data and event.name in ("", "message"):
                        self._relay.from_server(event.data)
        finally:
            body.close()
            if not found.done():
                found.set_exception(CallFailed("reset", "the MCP server ended its stream before it had begun"))
