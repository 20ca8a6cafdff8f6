"""The whole body of a reply that no world gave, as the agent reads it: nothing is waited for, and nothing can break.

So it needs no `Exchange`, whose business is waiting, and no generators to pump it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import cast

from flakestorm.core.call import Reply, Tap
from flakestorm.core.pipeline import Answered

__all__ = ["AsyncTold", "Told", "told"]


def told(flow: object) -> Reply | None:
    """The reply that a flow ends with at once, where its body is whole and only watched; else None."""
    if type(flow) is not Answered:
        return None
    reply = flow.reply
    if type(reply.body) is not bytes:
        return None
    for transducer in reply.through:
        if not isinstance(transducer, Tap):
            return None
    return reply


class Told:
    """A body for a blocking client. Iterate it once; `close` it to leave early.

    Args:
        reply: as `told` gives it.
    """

    __slots__ = ("_reply",)

    def __init__(self, reply: Reply) -> None:
        self._reply: Reply | None = reply

    def __iter__(self) -> Iterator[bytes]:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        body, taps = cast(bytes, reply.body), cast("tuple[Tap, ...]", reply.through)
        try:
            if body:
                for tap in taps:
                    tap.chunk(body)
                yield body
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


class AsyncTold:
    """As `Told`, for asyncio."""

    __slots__ = ("_told",)

    def __init__(self, reply: Reply) -> None:
        self._told = Told(reply)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._told:
            yield chunk

    async def aclose(self) -> None:
        """The agent reads no further."""
        self._told.close()
