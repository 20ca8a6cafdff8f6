"""Streams: nothing is delayed, nothing is lost, failures and early leavers are seen by every stage."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import PULL, Chunks, Reply, Sleep, Tap, Transducer
from flakestorm.core.stream import apump, pump, read, whole
from flakestorm.errors import CallFailed, StageError


def no_sleep(seconds: float) -> None:
    raise AssertionError("nothing should sleep")


def tee(log: list[object]) -> Transducer:
    def watch() -> Chunks:
        try:
            while (chunk := (yield PULL)) is not None:
                log.append(chunk)
                yield chunk
            log.append("eof")
        except GeneratorExit:
            log.append("left")
            raise
        except Exception as error:
            log.append(f"broken: {error}")
            raise

    return watch


def double() -> Chunks:
    while (chunk := (yield PULL)) is not None:
        yield chunk
        yield chunk


def pairs() -> Chunks:
    while (first := (yield PULL)) is not None:
        second = yield PULL
        yield first + (second or b"")


def two_only() -> Chunks:
    for _ in range(2):
        chunk = yield PULL
        if chunk is None:
            return
        yield chunk


def with_tail() -> Chunks:
    while (chunk := (yield PULL)) is not None:
        yield chunk
    yield b"<tail>"


def naps() -> Chunks:
    while (chunk := (yield PULL)) is not None:
        yield Sleep(0.5)
        yield chunk


def breaks_after_one() -> Chunks:
    chunk = yield PULL
    if chunk is not None:
        yield chunk
    raise CallFailed("reset", injected=True)


def reply(*through: Transducer, body: object = b"") -> Reply:
    return Reply(body=body, through=through)  # type: ignore[arg-type]


def test_a_chunk_is_out_before_the_next_one_is_read() -> None:
    read_so_far: list[bytes] = []

    def source() -> Iterator[bytes]:
        for chunk in (b"1", b"2"):
            read_so_far.append(chunk)
            yield chunk

    chunks = pump(reply(tee([]), tee([]), body=source()), no_sleep)
    assert next(chunks) == b"1"
    assert read_so_far == [b"1"]
    assert list(chunks) == [b"2"]


def test_no_transducer_hands_chunks_through() -> None:
    assert list(pump(reply(body=[b"a", b"b"]), no_sleep)) == [b"a", b"b"]
    assert list(pump(reply(body=b"whole"), no_sleep)) == [b"whole"]
    assert list(pump(reply(body=b""), no_sleep)) == []


def test_innermost_first() -> None:
    inner: list[object] = []
    outer: list[object] = []
    assert b"".join(pump(reply(tee(inner), double, tee(outer), body=[b"a", b"b"]), no_sleep)) == b"aabb"
    assert inner == [b"a", b"b", "eof"]
    assert outer == [b"a", b"a", b"b", b"b", "eof"]


def test_a_stage_that_stops_early_ends_the_stream_for_those_outside_it() -> None:
    inner: list[object] = []
    outer: list[object] = []
    assert list(pump(reply(tee(inner), two_only, tee(outer), body=[b"1", b"2", b"3"]), no_sleep)) == [b"1", b"2"]
    assert inner == [b"1", b"2", "left"]
    assert outer == [b"1", b"2", "eof"]


def test_a_tail_is_emitted_after_the_end() -> None:
    assert list(pump(reply(with_tail, with_tail, body=[b"x"]), no_sleep)) == [b"x", b"<tail>", b"<tail>"]


def test_a_break_is_seen_outside_and_inside() -> None:
    inner: list[object] = []
    outer: list[object] = []
    chunks = pump(reply(tee(inner), breaks_after_one, tee(outer), body=[b"1", b"2"]), no_sleep)
    assert next(chunks) == b"1"
    with pytest.raises(CallFailed):
        next(chunks)
    assert inner == [b"1", "left"]
    assert outer == [b"1", "broken: reset"]


def test_a_failure_of_the_source_passes_every_stage() -> None:
    def source() -> Iterator[bytes]:
        yield b"1"
        raise ConnectionResetError("gone")

    inner: list[object] = []
    outer: list[object] = []
    chunks = pump(reply(tee(inner), tee(outer), body=source()), no_sleep)
    assert next(chunks) == b"1"
    with pytest.raises(ConnectionResetError, match="gone"):
        next(chunks)
    assert inner == outer == [b"1", "broken: gone"]


def test_a_stage_may_replace_a_broken_end() -> None:
    def source() -> Iterator[bytes]:
        yield b"1"
        raise ConnectionResetError

    def patch() -> Chunks:
        try:
            while (chunk := (yield PULL)) is not None:
                yield chunk
        except ConnectionResetError:
            yield b"<patched>"

    assert list(pump(reply(patch, tee([]), body=source()), no_sleep)) == [b"1", b"<patched>"]


def test_an_early_leaver_closes_stages_and_source() -> None:
    log: list[object] = []

    class Source:
        closed = False

        def __iter__(self) -> Iterator[bytes]:
            return iter([b"1", b"2"])

        def close(self) -> None:
            self.closed = True

    source = Source()
    chunks = pump(reply(tee(log), body=source), no_sleep)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert log == [b"1", "left"]
    assert source.closed


def test_whole_gathers_and_changes() -> None:
    assert list(pump(reply(whole(bytes.upper), body=[b"a", b"b"]), no_sleep)) == [b"AB"]
    assert read(reply(whole(bytes.upper), body=b"abc")) == b"ABC"


def test_a_transducer_that_breaks_the_rules_is_named() -> None:
    def wrong() -> Chunks:
        yield 7  # type: ignore[misc]

    with pytest.raises(StageError, match=r"test_stream\.py:\d+ \(.*wrong\): a transducer may yield PULL, bytes"):
        list(pump(reply(wrong), no_sleep))


def test_the_sync_driver_refuses_an_async_body() -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b""

    with pytest.raises(StageError, match="async body"):
        list(pump(reply(body=source()), no_sleep))


ALL = [tee([]), double, pairs, two_only, with_tail, naps, breaks_after_one, whole(bytes.swapcase)]


@given(st.lists(st.sampled_from(ALL), max_size=5), st.lists(st.binary(min_size=1, max_size=3), max_size=6))
def test_sync_and_async_pumps_agree(through: list[Transducer], body: list[bytes]) -> None:
    async def source() -> AsyncIterator[bytes]:
        for chunk in body:
            yield chunk

    def sync() -> tuple[list[object], str]:
        out: list[object] = []
        try:
            for chunk in pump(reply(*through, body=body), out.append):
                out.append(chunk)
        except CallFailed as error:
            return out, str(error)
        return out, ""

    async def other() -> tuple[list[object], str]:
        out: list[object] = []

        async def asleep(seconds: float) -> None:
            out.append(seconds)

        try:
            async for chunk in apump(reply(*through, body=source()), asleep):
                out.append(chunk)
        except CallFailed as error:
            return out, str(error)
        return out, ""

    assert sync() == asyncio.run(other())


@given(st.lists(st.binary(min_size=1, max_size=5), max_size=8), st.integers(0, 4))
def test_watching_changes_nothing(body: list[bytes], depth: int) -> None:
    logs: list[list[object]] = [[] for _ in range(depth)]
    assert list(pump(reply(*[tee(log) for log in logs], body=body), no_sleep)) == body
    assert all(log == [*body, "eof"] for log in logs)


class Watch(Tap):
    def __init__(self, log: list[object]) -> None:
        self.log = log

    def chunk(self, data: bytes) -> None:
        self.log.append(data)

    def end(self, error: BaseException | None) -> None:
        self.log.append("eof" if error is None else "left" if isinstance(error, GeneratorExit) else f"broken: {error}")


def _sources(kind: str):
    def broken() -> Iterator[bytes]:
        yield b"1"
        raise ConnectionResetError("gone")

    return broken() if kind == "broken" else [b"1", b"2"]


@pytest.mark.parametrize("kind", ["whole", "broken", "left"])
@pytest.mark.parametrize("others", [(), (double,), (naps, with_tail)])
def test_a_tap_sees_what_a_generator_in_its_place_would(kind, others) -> None:
    def run(watch: Transducer, log: list[object]) -> list[object]:
        chunks = pump(reply(*others, watch, body=_sources(kind)), lambda _: None)
        try:
            if kind == "left":
                next(chunks)
                chunks.close()
            else:
                list(chunks)
        except ConnectionResetError:
            pass
        return log

    seen: list[object] = []
    assert run(Watch(seen), seen) == run(tee(other := []), other)


def test_taps_alone_delay_nothing_and_close_the_source() -> None:
    log: list[object] = []

    class Source:
        closed = False

        def __iter__(self) -> Iterator[bytes]:
            yield b"1"
            assert log == [b"1"], "the first chunk had passed before the second was made"
            yield b"2"

        def close(self) -> None:
            self.closed = True

    source = Source()
    assert list(pump(reply(Watch(log), Watch([]), body=source), no_sleep)) == [b"1", b"2"]
    assert log == [b"1", b"2", "eof"]
    assert source.closed


async def test_taps_alone_in_asyncio() -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"1"
        raise ConnectionResetError("gone")

    log: list[object] = []
    with pytest.raises(ConnectionResetError):
        _ = [chunk async for chunk in apump(reply(Watch(log), body=source()), no_sleep)]  # type: ignore[arg-type]
    assert log == [b"1", "broken: gone"]


def test_a_body_too_long_to_be_held_passes_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flakestorm.core.stream.GATHERED_BYTES", 10)
    chunks = [b"0123", b"4567", b"89ab", b"cdef"]
    for body in (chunks, chunks[:2]):
        made = Reply(200, (), iter(body)).pipe(whole(lambda _: b"changed"))
        expected = body if len(body) > 2 else [b"changed"]
        assert list(pump(made, lambda _: None)) == expected
