"""The world's own body as the agent reads it, where nothing stands between but a tap that watches.

Nothing sleeps in it, and what breaks it breaks in the library's own words, so it needs no `Exchange`. A body that is
read to its end, as nearly all are, ends where it is read: a method for that costs every call. The two classes are
twins, as those in `core.stream` are, for one awaits what the other does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from flakestorm.core.call import Tap

__all__ = ["AsyncWatched", "Watched"]


class _Watched:
    """What both have.

    Args:
        body: can be iterated, and closed.
        tap: is told of each chunk before the agent is, and once of the end.
    """

    __slots__ = ("_body", "_tap")

    def __init__(self, body: Any, tap: Tap) -> None:
        self._body, self._tap = body, tap


class Watched(_Watched):
    """A body for a blocking client. Iterate it once; `close` it to leave early."""

    __slots__ = ()

    def __iter__(self) -> Iterator[bytes]:
        body = self._body
        if body is None:
            return
        tap = self._tap
        try:
            for chunk in body:
                tap.chunk(chunk)
                yield chunk
        except BaseException as error:  # the reader's leaving is one of them
            self._left(error)
            raise
        if self._body is not None:
            self._body = None
            try:
                tap.end(None)
            finally:
                body.close()

    def close(self) -> None:
        """The agent reads no further."""
        self._left(GeneratorExit())

    def _left(self, error: BaseException) -> None:
        body, self._body = self._body, None
        if body is not None:
            try:
                self._tap.end(error)
            finally:
                body.close()


class AsyncWatched(_Watched):
    """As `Watched`, for asyncio."""

    __slots__ = ()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = self._body
        if body is None:
            return
        tap = self._tap
        try:
            async for chunk in body:
                tap.chunk(chunk)
                yield chunk
        except BaseException as error:  # as in Watched; CancelledError included
            await self._left(error)
            raise
        if self._body is not None:
            self._body = None
            try:
                tap.end(None)
            finally:
                await body.aclose()

    async def aclose(self) -> None:
        """The agent reads no further."""
        await self._left(GeneratorExit())

    async def _left(self, error: BaseException) -> None:
        body, self._body = self._body, None
        if body is not None:
            try:
                self._tap.end(error)
            finally:
                await body.aclose()
