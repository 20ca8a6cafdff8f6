"""Replies that are there already: what taps are told, read once, left early or not at all."""

from __future__ import annotations

import pytest

from flakestorm.boundary.seams.told import AsyncTold, Told, told
from flakestorm.core.call import PULL, Call, Chunks, Reply
from flakestorm.core.pipeline import Answered, Flow, Passing
from flakestorm.core.stream import Pieces
from taps_support import Noted


def test_only_bodies_that_are_here_and_watched_are_told() -> None:
    def louder() -> Chunks:
        yield (yield PULL) or b""

    def flow() -> Flow:
        return Reply()
        yield

    said = Reply(200, (), b"said").pipe(Noted())
    assert told(Answered(said)) is said
    assert told(Answered(stream := Reply(200, (), Pieces([b"a", b"b"])))) is stream
    assert told(Answered(said.pipe(louder))) is None
    assert told(Answered(Reply(200, (), [b"a", b"b"]))) is None
    assert told(flow()) is None
    assert told(Passing(Call("GET", "http://x.test/"))) is None


@pytest.mark.parametrize("body", [b"said", b""])
def test_it_is_read_once_and_every_tap_is_told(body: bytes) -> None:
    taps = Noted(), Noted()
    read = Told(Reply(200, (), body, taps))
    assert list(read) == ([body] if body else [])
    read.close()
    assert list(read) == []
    assert [tap.seen for tap in taps] == [[*([body] if body else []), None]] * 2


def test_a_stream_is_read_piece_by_piece() -> None:
    tap = Noted()
    reading = iter(Told(Reply(200, (), Pieces([b"a", b"b", b"c"]), (tap,))))
    assert [next(reading), next(reading)] == [b"a", b"b"]
    assert tap.seen == [b"a", b"b"]
    reading.close()  # type: ignore[attr-defined]
    assert tap.seen == [b"a", b"b", "GeneratorExit"]


def test_who_leaves_early_or_reads_nothing_is_told_of() -> None:
    tap, other = Noted(), Noted()
    reading = iter(Told(Reply(200, (), b"said", (tap,))))
    assert next(reading) == b"said"
    reading.close()  # type: ignore[attr-defined]
    unread = Told(Reply(200, (), b"said", (other,)))
    unread.close()
    unread.close()
    assert (tap.seen, other.seen) == ([b"said", "GeneratorExit"], ["GeneratorExit"])


async def test_under_asyncio_too() -> None:
    tap, other = Noted(), Noted()
    read = AsyncTold(Reply(200, (), b"said", (tap,)))
    assert [chunk async for chunk in read] == [b"said"]
    await read.aclose()
    unread = AsyncTold(Reply(200, (), b"said", (other,)))
    await unread.aclose()
    assert [chunk async for chunk in unread] == []
    early = Noted()
    reading = aiter(AsyncTold(Reply(200, (), Pieces([b"a", b"b"]), (early,))))
    assert await anext(reading) == b"a"
    await reading.aclose()  # type: ignore[attr-defined]
    assert (tap.seen, other.seen, early.seen) == ([b"said", None], ["GeneratorExit"], [b"a", "GeneratorExit"])
