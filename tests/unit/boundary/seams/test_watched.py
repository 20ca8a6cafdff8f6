"""Bodies that are only watched: what the tap is told, and that every body is let go of once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from flakestorm.boundary.seams.watched import AsyncWatched, Watched
from taps_support import Noted


class Stream:
    """The world's own body, for blocking and for asyncio clients."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure, self.read, self.open = failure, 0, True

    def __iter__(self) -> Iterator[bytes]:
        for part in (b"a", b"b"):
            self.read += 1
            yield part
        if self.failure is not None:
            raise self.failure

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self:
            yield part

    def close(self) -> None:
        self.open = False

    async def aclose(self) -> None:
        self.open = False


class Reader:
    """Reads a watched body, of either kind, as clients do."""

    def __init__(self, asynchronous: bool, failure: Exception | None = None) -> None:
        self.tap, self.stream = Noted(), Stream(failure)
        self.body: Any = (AsyncWatched if asynchronous else Watched)(self.stream, self.tap)
        self.asynchronous = asynchronous

    async def take(self, most: int) -> list[bytes]:
        taken: list[bytes] = []
        if self.asynchronous:
            async for part in self.body:
                taken.append(part)
                if len(taken) == most:
                    break
        else:
            for part in self.body:
                taken.append(part)
                if len(taken) == most:
                    break
        return taken

    async def close(self) -> None:
        if self.asynchronous:
            await self.body.aclose()
        else:
            self.body.close()


@pytest.fixture(params=[False, True], ids=["blocking", "asyncio"])
def reader(request: pytest.FixtureRequest) -> Callable[..., Reader]:
    return partial(Reader, request.param)


async def test_a_watched_body_passes_and_ends_once(reader: Callable[..., Reader]) -> None:
    reading = reader()
    assert await reading.take(9) == [b"a", b"b"]
    assert not reading.stream.open
    await reading.close()
    assert await reading.take(9) == []
    assert reading.tap.seen == [b"a", b"b", None]


async def test_leaving_a_watched_body_early_is_noticed(reader: Callable[..., Reader]) -> None:
    reading = reader()
    assert await reading.take(1) == [b"a"]
    await reading.close()
    assert (reading.tap.seen, reading.stream.open, reading.stream.read) == ([b"a", "GeneratorExit"], False, 1)


async def test_a_watched_body_that_nobody_reads_is_let_go_of_unread(reader: Callable[..., Reader]) -> None:
    reading = reader()
    await reading.close()
    await reading.close()
    assert (reading.tap.seen, reading.stream.open, reading.stream.read) == (["GeneratorExit"], False, 0)
    assert await reading.take(9) == []


async def test_what_breaks_a_watched_body_keeps_its_identity(reader: Callable[..., Reader]) -> None:
    failure = ConnectionResetError("gone")
    reading = reader(failure)
    with pytest.raises(ConnectionResetError) as caught:
        await reading.take(9)
    assert caught.value is failure
    assert (reading.tap.seen, reading.stream.open) == ([b"a", b"b", "ConnectionResetError"], False)


async def test_a_reader_that_is_given_up_leaves_the_body_to_be_closed_once(reader: Callable[..., Reader]) -> None:
    reading = reader()
    assert await reading.take(1) == [b"a"]
    await reading.close()
    await reading.close()
    assert await reading.take(9) == []
    assert reading.tap.seen == [b"a", "GeneratorExit"]
