from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import PULL, Chunks, Reply
from flakestorm.core.stream import pump, read
from flakestorm.wire.frames import sse_framing
from flakestorm.wire.streaming import Frames, by_frame, first, media_type
from wire_support import chunked

SSE = (("content-type", "text/event-stream; charset=utf-8"),)
BODY = b": hello\n\ndata: 1\n\ndata: 2\r\n\r\n\ndata: 3\n\ndata: half"
BREAK = RuntimeError("the world broke")


def counted(seen: list[bytes | None]):  # type: ignore[no-untyped-def]
    """A stage that writes down what each frame says and lets it out."""

    def stage(frames: Frames) -> Chunks:
        while (frame := (yield from frames.next())) is not None:
            seen.append(frame.data)
            yield frame.raw

    return stage


def taking(events: int, told: list[bool]):  # type: ignore[no-untyped-def]
    def stage(frames: Frames) -> Chunks:
        told.append((yield from first(events, frames)))

    return stage


def test_a_media_type_is_told_without_its_parameters() -> None:
    assert media_type(Reply(headers=(("Content-Type", "Text/Event-Stream;charset=x"),))) == "text/event-stream"
    assert media_type(Reply()) == ""


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_a_stage_gets_every_frame_however_it_was_chunked(sizes: list[int]) -> None:
    seen: list[bytes | None] = []
    reply = by_frame(Reply(200, SSE, list(chunked(BODY, *sizes))), sse_framing, counted(seen))
    assert read(reply) == BODY
    assert [data for data in seen if data is not None] == [b"1", b"2", b"3", b"half"]


@pytest.mark.parametrize("body", [b"", b"{}", b'{"a": 1}  ', b"x"])
def test_what_is_no_stream_passes_as_it_is(body: bytes) -> None:
    seen: list[bytes | None] = []
    assert read(by_frame(Reply(200, (), list(chunked(body, 2))), sse_framing, counted(seen))) == body
    assert seen == []


def test_a_stream_that_was_not_announced_is_one_all_the_same() -> None:
    seen: list[bytes | None] = []
    assert read(by_frame(Reply(200, (), [b"data", b": 1\n\ndata: 2\n\n"]), sse_framing, counted(seen))) != b""
    assert seen == [b"1", b"2"]


def test_a_frame_is_there_as_soon_as_it_is_whole() -> None:
    asked: list[int] = []

    def source() -> Iterator[bytes]:
        for at, chunk in enumerate([b"data: 1\r\n\r\n", b"data: 2\n\n", b"data: 3\n\n"]):
            asked.append(at)
            yield chunk

    out = pump(by_frame(Reply(200, SSE, source()), sse_framing, counted([])), lambda _: None)
    assert [(piece, len(asked)) for piece in out] == [
        (b"data: 1\r\n\r\n", 1),  # both halves of the CRLF
        (b"data: 2\n\n", 2),
        (b"data: 3\n\n", 3),
    ]


def test_what_came_before_a_break_goes_out_before_it() -> None:
    def source() -> Iterator[bytes]:
        yield b"data: 1\n\nda"
        raise BREAK

    seen: list[bytes | None] = []
    came: list[bytes] = []
    with pytest.raises(RuntimeError, match="the world broke"):
        came.extend(pump(by_frame(Reply(200, SSE, source()), sse_framing, counted(seen)), lambda _: None))
    assert (b"".join(came), seen) == (b"data: 1\n\nda", [b"1", None])


def test_a_break_before_the_first_frame_is_passed_on() -> None:
    def source() -> Iterator[bytes]:
        yield b"da"
        raise BREAK

    came: list[bytes] = []
    with pytest.raises(RuntimeError):
        came.extend(pump(by_frame(Reply(200, (), source()), sse_framing, counted([])), lambda _: None))
    assert came == [b"da"]


@given(st.integers(0, 6), st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_the_first_events_are_let_out_and_it_is_told_whether_more_come(events: int, sizes: list[int]) -> None:
    told: list[bool] = []
    came = read(by_frame(Reply(200, SSE, list(chunked(BODY, *sizes))), sse_framing, taking(events, told)))
    parts = [b"", b": hello\n\ndata: 1\n\n", b"data: 2\r\n\r\n", b"\ndata: 3\n\n", b"data: half"]
    assert came == b"".join(parts[: events + 1])
    assert told == [events < 4]


def test_a_break_while_more_was_waited_for_is_passed_on() -> None:
    def source() -> Iterator[bytes]:
        yield b"data: 1\n\n"
        raise BREAK

    with pytest.raises(RuntimeError):
        read(by_frame(Reply(200, SSE, source()), sse_framing, taking(1, [])))


def test_what_a_stage_does_not_take_is_not_asked_for() -> None:
    pulled: list[bytes] = []

    def watch() -> Chunks:
        while (chunk := (yield PULL)) is not None:
            pulled.append(chunk)
            yield chunk

    reply = Reply(200, SSE, [b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"]).pipe(watch)
    read(by_frame(reply, sse_framing, taking(1, [])))
    assert pulled == [b"data: 1\n\n", b"data: 2\n\n"]
