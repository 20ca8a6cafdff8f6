"""The middle of a connection between an MCP client and its server: every message crosses the pipeline of its run.

The two ends speak JSON-RPC in lines and do not know of each other. A request of either becomes a `Call`; asking the
world is writing the line to the other end and waiting for the answer with its id. Progress that a request asked for is
part of its reply, which is then a stream of lines; what else an end announces is a call of its own that is answered by
202, as streamable HTTP would. So the client's `tools/call` and the server's `sampling/createMessage` are recorded and
broken by the same stages as anything else. A stage may also have the listener say something: what goes inward with the
speaker's own URL crosses as if the other end had said it (a replay, in which no server is at work, `tape/prompts.py`).

How a call that breaks looks to who made it: a time-out is the error -32001 of the SDKs, anything else -32000; on a pipe
there is no other way to say it, short of ending the session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress

from flakestorm.boundary.patience import Patience
from flakestorm.core.call import Call, Reply, header
from flakestorm.core.pipeline import Interceptor, adrive
from flakestorm.core.stream import apump
from flakestorm.errors import CallFailed
from flakestorm.wire.mcp.protocol import BATCH, LATER, Mcp, Message, key_of, messages, name_of, read
from flakestorm.wire.shape import dump, obj

__all__ = ["End", "Relay"]

Write = Callable[[bytes], Awaitable[None]]
"""Hands one line (without its end) to an end of the connection. It must be under way before the first `await`."""

_JSON = (("content-type", "application/json"),)
_LINES = (("content-type", "application/x-ndjson"),)
_TIMED_OUT, _CLOSED, _INTERNAL = -32001, -32000, -32603
_LAST_WORDS_S = 1.0  # how long answers that are due may take to be written when an end has gone
_log = logging.getLogger("flakestorm.boundary")


class _Waiting:
    """A request that an end was asked and has not answered: what comes of it, in lines."""

    def __init__(self, token: str) -> None:
        self.token, self.answered = token, False
        self._lines: asyncio.Queue[bytes | CallFailed] = asyncio.Queue()

    def put(self, line: bytes | CallFailed) -> None:
        self._lines.put_nowait(line)

    @property
    def over(self) -> bool:
        """Whether the answer has been taken, with all that came before it."""
        return self.answered and self._lines.empty()

    async def next(self) -> bytes:
        line = await self._lines.get()
        if isinstance(line, CallFailed):
            raise line
        return line

    async def lines(self, first: bytes) -> AsyncIterator[bytes]:
        yield first + b"\n"
        while not self.over:
            yield await self.next() + b"\n"


class End:
    """One end of the connection.

    Args:
        url: what a call to it has as its URL.
        write: hands it a line.
    """

    def __init__(self, url: str, write: Write) -> None:
        self.url, self.write = url, write
        self.waiting: dict[str, _Waiting] = {}
        self.progress: dict[str, _Waiting] = {}
        self.asking: dict[str, asyncio.Task[None]] = {}

    def settle(self, key: str) -> _Waiting | None:
        """The request with this id is not waiting any more."""
        waiting = self.waiting.pop(key, None)
        if waiting is not None and self.progress.get(waiting.token) is waiting:
            del self.progress[waiting.token]
        return waiting


class Relay:
    """One connection.

    Args:
        client, server: its ends.
        pipeline: gives the pipeline of the run that a message which arrives now belongs to.
        lane: gives the lane of such a message.
        patience: gives the patience of who sent it.
    """

    def __init__(
        self,
        client: End,
        server: End,
        *,
        pipeline: Callable[[], Interceptor],
        lane: Callable[[], str],
        patience: Callable[[], Patience],
    ) -> None:
        self._client, self._server, self._pipeline, self._lane = client, server, pipeline, lane
        self._patience = patience
        self._tasks: set[asyncio.Task[None]] = set()

    def from_client(self, line: bytes) -> None:
        """The client has said this."""
        self._heard(self._client, self._server, line)

    def from_server(self, line: bytes) -> None:
        """The server has said this."""
        self._heard(self._server, self._client, line)

    async def server_gone(self, how: str) -> None:
        """The server will say no more: what it has not answered fails, and who asked is told before this returns.

        Args:
            how: what became of it, to complete "the MCP server ...".
        """
        for key in list(self._server.waiting):
            if (waiting := self._server.settle(key)) is not None:
                waiting.put(CallFailed("reset", f"the MCP server {how}"))
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_WORDS_S)
        await self.close()

    async def close(self) -> None:
        """The connection is over; calls under way end as if their client had left. Returns when they have."""
        self.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop(self) -> None:
        """As `close`, without waiting for it."""
        for task in self._tasks:
            task.cancel()

    def _heard(self, speaker: End, listener: End, line: bytes) -> None:
        if not line.strip():
            return
        message = read(line)
        if message is not None and message.kind == "answer":
            waiting = speaker.settle(message.key)
            if waiting is not None:
                waiting.answered = True
                waiting.put(line)  # goes nowhere where the asker has left
                return
        elif message is not None and message.method == "notifications/progress":
            waiting = speaker.progress.get(key_of(message.params.get("progressToken")))
            if waiting is not None:
                waiting.put(line)
                return
        task = asyncio.get_running_loop().create_task(self._cross(speaker, listener, message, line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if message is None:
            return
        if message.kind == "request":
            speaker.asking[message.key] = task
        elif message.method == "notifications/cancelled":
            asked = speaker.asking.get(key_of(message.params.get("requestId")))
            if asked is not None:  # after the notification, which has been put in the queue before
                asyncio.get_running_loop().call_soon(asked.cancel)

    async def _cross(self, speaker: End, listener: End, message: Message | None, line: bytes) -> None:
        call = Call(
            "CALL",
            listener.url,
            _JSON,
            line,
            kind="mcp",
            name=BATCH if message is None else name_of(message),
            wire=Mcp.name,
            lane=self._lane(),
        )
        asked = message if message is not None and message.kind == "request" else None
        asleep = self._patience().asleep
        later: list[bytes] = []
        absent = End(listener.url, _unheard)  # who said it is not there to hear what comes of it

        async def send(call: Call) -> Reply:
            if call.url != speaker.url:
                return await _send(listener, call)
            if call.method == LATER:
                later.append(call.body)
            else:
                await self._cross(absent, speaker, read(call.body), call.body)
            return Reply(202)

        try:
            reply = await adrive(self._pipeline()(call), send, asleep)
            await _give(speaker, asked, reply, asleep)
            for said in later:
                await self._cross(absent, speaker, read(said), said)
        except CallFailed as failure:
            code = _TIMED_OUT if failure.how == "timeout" else _CLOSED
            await _refuse(speaker, asked, code, failure.detail or f"the call failed: {failure.how}")
        except ConnectionError:
            return  # this end has gone; nobody is left to tell
        except Exception as error:
            _log.exception("a stage failed on the MCP message %s", call.name)
            await _refuse(speaker, asked, _INTERNAL, f"a stage of the pipeline failed: {error!r}")
        finally:
            if asked is not None and speaker.asking.get(asked.key) is asyncio.current_task():
                del speaker.asking[asked.key]


async def _unheard(_: bytes) -> None:
    """Nobody is there."""


async def _send(listener: End, call: Call) -> Reply:
    """Ask the other end; returns when it has begun to answer."""
    message = read(call.body)
    line = call.body.replace(b"\n", b" ")  # within JSON, a line end is white space
    if message is None or message.kind != "request":
        await listener.write(line)
        return Reply(202)
    token = key_of(obj(message.params.get("_meta")).get("progressToken"))
    waiting = listener.waiting[message.key] = _Waiting(token)
    if token:
        listener.progress[token] = waiting
    await listener.write(line)
    first = await waiting.next()
    if waiting.over:
        return Reply(200, _JSON, first)
    return Reply(200, _LINES, waiting.lines(first))


async def _give(speaker: End, asked: Message | None, reply: Reply, asleep: Callable[[float], Awaitable[None]]) -> None:
    """Hand a reply to who asked, line by line as it arrives; always with an answer in the end."""
    stream = (header(reply.headers, "content-type") or "").startswith("application/x-ndjson")
    answered, rest = asked is None, b""
    async with aclosing(apump(reply, asleep)) as chunks:
        async for chunk in chunks:
            rest += chunk
            if not stream:
                continue
            *lines, rest = rest.split(b"\n")
            for line in filter(None, lines):
                answered = _answers(line) or answered
                await speaker.write(line)
    if asked is None:
        return
    for line in [rest] if stream or read(rest) is not None else [dump(document) for document in messages(rest)]:
        if _answers(line):
            answered = True
            await speaker.write(line.replace(b"\n", b" ").replace(b"\r", b" "))
    if not answered:
        text = rest[:2000].decode("utf-8", "replace").strip()
        await _refuse(speaker, asked, _INTERNAL, text or f"the server answered nothing (status {reply.status})")


def _answers(line: bytes) -> bool:
    message = read(line)
    return message is not None and message.kind == "answer"


async def _refuse(speaker: End, asked: Message | None, code: int, text: str) -> None:
    if asked is not None:
        error = {"code": code, "message": text}
        with suppress(ConnectionError):
            await speaker.write(dump({"jsonrpc": "2.0", "id": asked.document.get("id"), "error": error}))
