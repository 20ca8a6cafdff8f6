"""One call on its way through a run's pipeline and back, as every in-process seam needs it.

A seam knows its library: how to make a `Call` of a request, how to send one, and how to spell a failure. The rest is
here, once for blocking clients and once for asyncio: driving the pipeline, handing the reply's body on chunk by chunk,
letting the client's own time-out end a `Sleep` that outlasts it, and letting go of every live response however the
exchange ends.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, Literal, Self

from flakestorm.boundary.patience import Patience
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import Flow, adrive, drive
from flakestorm.core.stream import apump, flow_of, pump
from flakestorm.errors import CallFailed

__all__ = [
    "AsyncBody",
    "AsyncExchange",
    "AsyncLive",
    "Body",
    "Exchange",
    "Live",
    "Moment",
    "Spell",
]

Moment = Literal["call", "body"]
"""When something broke: before the agent had a reply, or while it read the body."""

Spell = Callable[[CallFailed, Moment], BaseException]
"""Says a failure as the client library itself would: the exception to raise in the agent."""


class Live:
    """The body of a live response: read once, let go of once.

    Args:
        chunks: the bytes as they arrive.
        release: lets go of the connection; called when the body has ended or nobody wants the rest.
        response: the library's own response, for the seam that made this.

    `reply` is what the seam made of it, before any stage saw it.
    """

    __slots__ = ("_chunks", "_open", "_release", "reply", "response")

    def __init__(self, chunks: Iterator[bytes], release: Callable[[], None], response: Any = None) -> None:
        self._chunks, self._release, self.response, self._open = chunks, release, response, True
        self.reply: Reply | None = None

    def same_head(self, reply: Reply) -> bool:
        """Whether no stage has changed the status line or the headers that came with this body."""
        return _same_head(self.reply, reply)

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        if self._open:
            self._open = False
            self.response = self.reply = None  # no cycles are left behind for the collector
            try:
                close = getattr(self._chunks, "close", None)
                if close is not None:
                    close()
            finally:
                self._release()

    def settle(self) -> None:
        """Read the rest into memory and let go of the connection, so that another request can use it."""
        parts: list[bytes] = []
        failure: BaseException | None = None
        try:
            parts.extend(self._chunks)
        except Exception as error:  # belongs to whoever reads this body, if anybody does
            failure = error
        kept = self.response, self.reply
        self.close()
        self.response, self.reply = kept
        self._chunks = _recall(parts, failure)


def _recall(parts: list[bytes], failure: BaseException | None) -> Iterator[bytes]:
    yield from parts
    if failure is not None:
        raise failure


class Body:
    """The reply's body as the agent reads it. Iterate it once; `close` it to leave early."""

    __slots__ = ("_exchange", "_open", "_pump", "_reply")

    def __init__(self, reply: Reply, exchange: Exchange) -> None:
        self._reply, self._exchange, self._open = reply, exchange, True
        self._pump: Generator[bytes, None, None] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        if not self._open:
            raise StopIteration
        exchange = self._exchange
        if self._pump is None:
            self._pump = pump(self._reply, exchange.patience.sleep)
        exchange.patience.restart()
        try:
            return next(self._pump)
        except CallFailed as failed:
            self.close()
            raise exchange.spell(failed, "body") from failed
        except BaseException:  # the end of the body is one of them
            self.close()
            raise

    def close(self) -> None:
        """The agent reads no further: every stage learns of it, and the live response is let go of."""
        if not self._open:
            return
        self._open = False
        try:
            if self._pump is not None:
                self._pump.close()
            else:
                _leave_unread(self._reply)
        finally:
            self._exchange.release()


class Exchange:
    """One call of a blocking client.

    Args:
        send: asks the world; its reply's body is a `Live`.
        spell: says a failure in the library's words.
        patience: makes the client's; asked for when something is to be waited for, which is seldom.
    """

    __slots__ = ("_lives", "_made", "_patience", "_send", "spell")

    def __init__(self, send: Callable[[Call], Reply], spell: Spell, patience: Callable[[], Patience]) -> None:
        self._send, self.spell, self._patience = send, spell, patience
        self._made: Patience | None = None
        self._lives: list[Live] = []

    @property
    def patience(self) -> Patience:
        """How long the client still waits."""
        if self._made is None:
            self._made = self._patience()
        return self._made

    def cross(self, flow: Flow | Call) -> Reply:
        """The reply the agent is to see; its body is read through a `Body`, which must be made of it and closed.

        Args:
            flow: what the pipeline made of the call.

        Raises:
            BaseException: what the world raised, unchanged, or `spell`'s exception for a `CallFailed`.
        """
        try:
            reply = drive(flow, self._ask, self._sleep)
        except CallFailed as failed:
            self.release()
            raise self.spell(failed, "call") from failed
        except BaseException:
            self.release()
            raise
        for live in self._lives:
            if live is not reply.body and isinstance(reply.body, (bytes, Live)):
                live.close()  # this answer reaches nobody
        return reply

    def _ask(self, call: Call) -> Reply:
        for earlier in self._lives:  # a stage asks more than once: do not hold two connections
            earlier.settle()
        clock = self.patience.clock
        clock.begin()
        try:
            reply = self._send(call)
        finally:
            clock.end()
        if isinstance(reply.body, Live):
            self._lives.append(reply.body)
        return reply

    def _sleep(self, seconds: float) -> None:
        self.patience.sleep(seconds)

    def release(self) -> None:
        """Let go of every live response."""
        while self._lives:
            self._lives.pop().close()


class AsyncLive:
    """As `Live`, for asyncio."""

    __slots__ = ("_chunks", "_open", "_release", "reply", "response")

    def __init__(
        self, chunks: AsyncIterator[bytes], release: Callable[[], Awaitable[None]], response: Any = None
    ) -> None:
        self._chunks, self._release, self.response, self._open = chunks, release, response, True
        self.reply: Reply | None = None

    def same_head(self, reply: Reply) -> bool:
        """Whether no stage has changed the status line or the headers that came with this body."""
        return _same_head(self.reply, reply)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        if self._open:
            self._open = False
            self.response = self.reply = None
            try:
                aclose = getattr(self._chunks, "aclose", None)
                if aclose is not None:
                    await aclose()
            finally:
                await self._release()

    async def settle(self) -> None:
        """Read the rest into memory and let go of the connection, so that another request can use it."""
        parts: list[bytes] = []
        failure: BaseException | None = None
        try:
            async for chunk in self._chunks:
                parts.append(chunk)  # noqa: PERF401 -- what was read before a failure is kept
        except Exception as error:  # belongs to whoever reads this body, if anybody does
            failure = error
        kept = self.response, self.reply
        await self.aclose()
        self.response, self.reply = kept
        self._chunks = _arecall(parts, failure)


async def _arecall(parts: list[bytes], failure: BaseException | None) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if failure is not None:
        raise failure


class AsyncBody:
    """As `Body`, for asyncio."""

    __slots__ = ("_exchange", "_open", "_pump", "_reply")

    def __init__(self, reply: Reply, exchange: AsyncExchange) -> None:
        self._reply, self._exchange, self._open = reply, exchange, True
        self._pump: AsyncGenerator[bytes, None] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if not self._open:
            raise StopAsyncIteration
        exchange = self._exchange
        if self._pump is None:
            self._pump = apump(self._reply, exchange.patience.asleep)
        exchange.patience.restart()
        try:
            return await anext(self._pump)
        except CallFailed as failed:
            await self.aclose()
            raise exchange.spell(failed, "body") from failed
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """The agent reads no further: every stage learns of it, and the live response is let go of."""
        if not self._open:
            return
        self._open = False
        try:
            if self._pump is not None:
                await self._pump.aclose()
            else:
                _leave_unread(self._reply)
        finally:
            await self._exchange.release()


class AsyncExchange:
    """One call of an asyncio client; otherwise as `Exchange`."""

    __slots__ = ("_lives", "_made", "_patience", "_send", "spell")

    def __init__(
        self, send: Callable[[Call], Awaitable[Reply]], spell: Spell, patience: Callable[[], Patience]
    ) -> None:
        self._send, self.spell, self._patience = send, spell, patience
        self._made: Patience | None = None
        self._lives: list[AsyncLive] = []

    @property
    def patience(self) -> Patience:
        """How long the client still waits."""
        if self._made is None:
            self._made = self._patience()
        return self._made

    async def cross(self, flow: Flow | Call) -> Reply:
        """The reply the agent is to see; its body is read through an `AsyncBody`, which must be made of it and closed.

        Args:
            flow: what the pipeline made of the call.

        Raises:
            BaseException: what the world raised, unchanged, or `spell`'s exception for a `CallFailed`.
        """
        try:
            reply = await adrive(flow, self._ask, self._sleep)
        except CallFailed as failed:
            await self.release()
            raise self.spell(failed, "call") from failed
        except BaseException:
            await self.release()
            raise
        for live in self._lives:
            if live is not reply.body and isinstance(reply.body, (bytes, AsyncLive)):
                await live.aclose()  # this answer reaches nobody
        return reply

    async def _ask(self, call: Call) -> Reply:
        for earlier in self._lives:  # a stage asks more than once: do not hold two connections
            await earlier.settle()
        clock = self.patience.clock
        clock.begin()
        try:
            reply = await self._send(call)
        finally:
            clock.end()
        if isinstance(reply.body, AsyncLive):
            self._lives.append(reply.body)
        return reply

    async def _sleep(self, seconds: float) -> None:
        await self.patience.asleep(seconds)

    async def release(self) -> None:
        """Let go of every live response."""
        while self._lives:
            await self._lives.pop().aclose()


def _same_head(came: Reply | None, reply: Reply) -> bool:
    return came is reply or (
        came is not None
        and came.headers is reply.headers
        and came.status == reply.status
        and came.reason == reply.reason
    )


def _leave_unread(reply: Reply) -> None:
    """Tell the stages that the agent never read a byte: a generator that was never started could not notice."""
    flow = flow_of(reply.through)
    try:
        next(flow, None)
    finally:
        flow.close()
