"""Streams of events, lines, elements and binary messages: no byte is lost and chunking changes nothing."""

from __future__ import annotations

from flakestorm.wire.eventstream import Messages, encode, messages
from flakestorm.wire.frames import Elements, Lines, frames
from flakestorm.wire.sse import Parser, events, looks_like_sse
from fuzz.material import Bytes

__all__ = ["check"]


def check(data: bytes) -> None:
    source = Bytes(data)
    kind, step = source.below(4), source.below(9)
    body = source.rest()
    make = (Parser, Lines, Elements, Messages)[kind]
    whole = frames(make(), body)
    assert b"".join(frame.raw for frame in whole) == body
    if step:
        framer, found = make(), []
        for at in range(0, len(body), step):
            found += framer.feed(body[at : at + step])
        found += framer.end()
        assert b"".join(frame.raw for frame in found) == body
        told = [[(frame.raw, frame.data) for frame in each if frame.data is not None] for each in (found, whole)]
        assert told[0] == told[1]  # what cannot be read passes in the chunks it came in
    looks_like_sse(body, stream=bool(step % 2))
    if kind == 0:
        for event in whole:
            if event.data is not None and b"\r" not in event.data and b"\0" not in event.data:
                again = events(event.with_data(event.data).raw)
                assert any(one.data == event.data for one in again)
    if kind == 3:
        list(messages(body))
        assert list(messages(encode(body, {":event-type": "e"}))) == [("e", body)]
