"""The body of a reply that a tape gave, as the agent reads it: nothing is waited for, and nothing can break.

So it needs no `Exchange`, whose business is waiting, and no generators to pump it. It walks its taps as
`core.stream.watched` does, and by itself: that one sees to it that its source is closed, which costs every short body
that has none to close, and to yield from it costs every chunk (both measured).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterable
from contextlib import closing
from typing import cast

from flakestorm.core.call import Reply, Tap
from flakestorm.core.pipeline import Answered
from flakestorm.core.stream import Pieces, only_taps

__all__ = ["AsyncTold", "Told", "told"]


def told(flow: object) -> Reply | None:
    """The reply that a flow ends with at once, where all of its body is here and only watched; else None."""
    if type(flow) is not Answered:
        return None
    reply = flow.reply
    if type(reply.body) is not bytes and type(reply.body) is not Pieces:
        return None
    return reply if only_taps(reply.through) else None


class Told:
    """A body for a blocking client. Iterate it once; `close` it to leave early.

    Args:
        reply: as `told` gives it.
    """

    __slots__ = ("_reply",)

    def __init__(self, reply: Reply) -> None:
        self._reply: Reply | None = reply

    def __iter__(self) -> Generator[bytes, None, None]:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        body, taps = cast("bytes | Pieces", reply.body), cast("tuple[Tap, ...]", reply.through)
        try:
            for chunk in _chunks(body):
                for tap in taps:
                    tap.chunk(chunk)
                yield chunk
        except BaseException as error:  # the reader's leaving is one of them
            for tap in taps:
                tap.end(error)
            raise
        for tap in taps:
            tap.end(None)

    def close(self) -> None:
        """The agent reads no further."""
        reply, self._reply = self._reply, None
        if reply is not None:
            for tap in cast("tuple[Tap, ...]", reply.through):
                tap.end(GeneratorExit())


def _chunks(body: bytes | Pieces) -> Iterable[bytes]:
    if isinstance(body, bytes):
        return (body,) if body else ()
    return body


class AsyncTold:
    """As `Told`, for asyncio."""

    __slots__ = ("_told",)

    def __init__(self, reply: Reply) -> None:
        self._told = Told(reply)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with closing(iter(self._told)) as chunks:
            for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        """The agent reads no further."""
        self._told.close()
