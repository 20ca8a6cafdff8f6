"""Streams: bodies that pass through transducers while they arrive, sans I/O.

A stage never reads a streamed body; it attaches a *transducer* (`Reply.pipe`), a generator that pulls chunks from
further in and emits chunks, sleeps, or breaks the connection::

    def cut_after(n: int) -> Transducer:
        def cut() -> Chunks:
            for _ in range(n):
                if (chunk := (yield PULL)) is None:
                    return
                yield chunk
            raise CallFailed("reset", injected=True)
        return cut

`pump` and `apump` are the drivers. A chunk is handed on before the next one is read, so time to first token does not
change; nothing is buffered here. When the reader leaves early every transducer is closed, outermost first, and then
the source, which is how a recorder learns that nobody listened to the end.

The machine is a loop over a stack of generators rather than nested generators: constant Python stack depth, about a
third of a microsecond per stage and chunk, and a failure in the source can be thrown through every stage in turn.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
)
from typing import Any, TypeGuard, cast

from flakestorm.core.call import PULL, Chunks, Pull, Reply, Sleep, Source, Tap, Transducer
from flakestorm.errors import StageError

__all__ = [
    "GATHERED_BYTES",
    "Pieces",
    "apump",
    "awatched",
    "flow_of",
    "gather",
    "only_taps",
    "passed",
    "pump",
    "read",
    "watched",
    "whole",
]

GATHERED_BYTES = 64 * 2**20
"""A body that is to be changed as a whole is held while it arrives; a longer one passes unchanged, as it comes."""


class Pieces:
    """The pieces of a body, as often as they are asked for."""

    __slots__ = ("_chunks",)

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)


def flow_of(through: tuple[Transducer, ...]) -> Chunks:
    """One transducer that is all of these, innermost first.

    It yields `PULL` when the source must be read, `Sleep`, and the bytes that come out at the outer end. An exception
    thrown in at a `PULL` passes through the transducers from the inside out; each may handle it or let it go.

    Raises:
        StageError: a transducer yielded something else.
    """
    gens = [make() for make in through]
    top = len(gens) - 1
    if top < 0:
        return _pass()
    return _machine(gens, top)


def _pass() -> Chunks:
    while (chunk := (yield PULL)) is not None:
        yield chunk


def _machine(gens: list[Chunks], top: int) -> Chunks:
    at, value, failure = top, cast("bytes | None", None), cast("BaseException | None", None)
    ended = -1  # generators up to and including this index are exhausted
    try:
        while True:
            try:
                want = gens[at].send(value) if failure is None else gens[at].throw(failure)
            except StopIteration:
                value = failure = None
                if at == top:
                    return
                ended = max(ended, at)
                at += 1  # tell the next stage outwards, waiting at its PULL, that this was the end
                continue
            except BaseException as error:
                if at == top:
                    raise
                ended, failure, value = max(ended, at), error, None
                at += 1
                continue
            value = failure = None
            if want is PULL:
                if at - 1 > ended:
                    at -= 1
                elif at == 0 and ended < 0:
                    try:
                        value = yield PULL
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        failure = error
                # else: what is further in has ended; the pull is answered with None
            elif isinstance(want, (bytes, bytearray, memoryview)):
                if at == top:
                    yield bytes(want) if not isinstance(want, bytes) else want
                else:
                    at += 1
                    value = bytes(want) if not isinstance(want, bytes) else want
            elif isinstance(want, Sleep):
                yield want
            else:
                code = cast(Any, gens[at]).gi_code
                raise StageError(
                    f"{code.co_filename}:{cast(Any, gens[at]).gi_frame.f_lineno} ({code.co_qualname}): a transducer "
                    f"may yield PULL, bytes or a Sleep, but yielded {want!r}"
                )
    finally:
        for gen in reversed(gens):
            gen.close()


# Those for asyncio are twins on purpose, as in `pipeline`: an asynchronous generator that a blocking reader steps would
# also report to the event loop of its thread, which would close it in its own time.


def pump(reply: Reply, sleep: Callable[[float], None]) -> Generator[bytes, None, None]:
    """The reply's body as the agent gets it, for a blocking reader. Close the generator to leave early."""
    return watched(reply) if only_taps(reply.through) else _pumped(reply, sleep)


def only_taps(through: tuple[Transducer, ...]) -> TypeGuard[tuple[Tap, ...]]:
    """Whether a body with these transducers passes as it is, and at once."""
    return not through or all(isinstance(transducer, Tap) for transducer in through)


def watched(reply: Reply) -> Generator[bytes, None, None]:
    """As `pump`, for a reply all of whose transducers are taps: nothing sleeps."""
    body, taps = reply.body, cast("tuple[Tap, ...]", reply.through)
    source = iter(_sync(body))
    try:
        for chunk in source:
            for tap in taps:
                tap.chunk(chunk)
            yield chunk
    except BaseException as error:  # the reader's leaving is one of them
        for tap in taps:
            tap.end(error)
        raise
    else:
        for tap in taps:
            tap.end(None)
    finally:
        close = getattr(body, "close", None) or getattr(source, "close", None)
        if close is not None:
            close()


def _pumped(reply: Reply, sleep: Callable[[float], None]) -> Generator[bytes, None, None]:
    source = iter(_sync(reply.body))
    flow = flow_of(reply.through)
    value: bytes | None = None
    failure: BaseException | None = None
    try:
        while True:
            try:
                want = flow.send(value) if failure is None else flow.throw(failure)
            except StopIteration:
                return
            value = failure = None
            if isinstance(want, bytes):
                yield want
            elif isinstance(want, Sleep):
                sleep(want.seconds)
            else:
                try:
                    value = next(source, None)
                except BaseException as error:  # a break in the world's stream passes through every stage
                    failure = error
    finally:
        try:
            flow.close()
        finally:
            close = getattr(reply.body, "close", None) or getattr(source, "close", None)
            if close is not None:
                close()


def apump(reply: Reply, sleep: Callable[[float], Awaitable[None]]) -> AsyncGenerator[bytes, None]:
    """As `pump`, for an asyncio reader. Use `contextlib.aclosing` where the reader may leave early."""
    return awatched(reply) if only_taps(reply.through) else _apumped(reply, sleep)


async def awatched(reply: Reply) -> AsyncGenerator[bytes, None]:
    """As `watched`, for an asyncio reader."""
    body, taps = reply.body, cast("tuple[Tap, ...]", reply.through)
    source = aiter(_async(body))
    try:
        async for chunk in source:
            for tap in taps:
                tap.chunk(chunk)
            yield chunk
    except BaseException as error:  # as in watched; CancelledError included
        for tap in taps:
            tap.end(error)
        raise
    else:
        for tap in taps:
            tap.end(None)
    finally:
        close = getattr(body, "aclose", None) or getattr(source, "aclose", None)
        if close is not None:
            await close()


async def _apumped(reply: Reply, sleep: Callable[[float], Awaitable[None]]) -> AsyncGenerator[bytes, None]:
    source = aiter(_async(reply.body))
    flow = flow_of(reply.through)
    value: bytes | None = None
    failure: BaseException | None = None
    try:
        while True:
            try:
                want = flow.send(value) if failure is None else flow.throw(failure)
            except StopIteration:
                return
            value = failure = None
            if isinstance(want, bytes):
                yield want
            elif isinstance(want, Sleep):
                await sleep(want.seconds)
            else:
                try:
                    value = await anext(source, None)
                except BaseException as error:  # as in pump; CancelledError included
                    failure = error
    finally:
        try:
            flow.close()
        finally:
            close = getattr(reply.body, "aclose", None) or getattr(source, "aclose", None)
            if close is not None:
                await close()


def gather(parts: list[bytes]) -> Generator[Pull, bytes | None, bool]:
    """Inside a transducer, `whole = yield from gather(parts)`: pull the body up to its end, or to `GATHERED_BYTES`.

    Args:
        parts: is given the chunks, also where the source breaks in the middle.

    Returns:
        Whether that is all; of a longer body the rest is still to be pulled (`passed`).
    """
    size = sum(map(len, parts))
    while size <= GATHERED_BYTES:
        if (chunk := (yield PULL)) is None:
            return True
        size += len(chunk)
        parts.append(chunk)
    return False


def passed(parts: Iterable[bytes]) -> Chunks:
    """Inside a transducer, `yield from passed(parts)`: emit what was gathered, and the rest as it comes."""
    yield from parts
    yield from _pass()


def whole(change: Callable[[bytes], bytes], start: bytes = b"") -> Transducer:
    """A transducer that gathers the whole body and emits `change(body)` at its end, if that is anything.

    A body that breaks off goes out as far as it came, and one of more than `GATHERED_BYTES` passes as it is.

    Args:
        change: makes a body of a body.
        start: what of the body was pulled already.
    """

    def gathered() -> Chunks:
        parts = [start] if start else []
        try:
            complete = yield from gather(parts)
        except Exception:
            yield b"".join(parts)
            raise
        if not complete:
            yield from passed(parts)
        elif changed := change(b"".join(parts)):
            yield changed

    return gathered


def read(reply: Reply) -> bytes:
    """The whole body of a reply whose source is sync or already here; sleeps are skipped. For tests and tools."""
    return b"".join(pump(reply, lambda _: None))


def _sync(body: bytes | Source) -> Iterable[bytes]:
    if isinstance(body, bytes):
        return (body,) if body else ()
    if hasattr(body, "__iter__"):  # asking the abstract class costs four times as much
        return cast("Iterable[bytes]", body)
    raise StageError(f"the sync driver cannot read an async body: {body!r}")


async def _one(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body


async def _lift(body: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in body:
        yield chunk


def _async(body: bytes | Source) -> AsyncIterable[bytes]:
    if isinstance(body, bytes):
        return _one(body)
    return cast("AsyncIterable[bytes]", body) if hasattr(body, "__aiter__") else _lift(body)
