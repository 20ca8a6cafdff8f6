"""A stream taken frame by frame: what everything that touches streams does the same way.

What a body is, a stream or a document, is told by its first bytes, as `Wire.said` does: servers stream without saying
so, and answer with a document where a stream was announced. `opening` finds that out, for edits and for stages that
let the frames themselves be and change when they come, or how many (`by_frame`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator

from flakestorm.core.call import PULL, Chunks, Pull, Reply, header
from flakestorm.wire.frames import Framer, Framing
from flakestorm.wire.sse import Event, Parser

__all__ = ["WHOLE", "Frames", "by_frame", "counted", "first", "media_type", "opening"]

WHOLE = "the reply came whole, not as a stream"
"""Why what is done to streams was not done."""

_TELLING_BYTES = 16  # of an unannounced body, to tell whether it is a stream
_BLANK_BYTES = 64 * 1024  # of white space before anything else; who sends more says nothing


def media_type(reply: Reply) -> str:
    """What a reply says it is: lower case, without parameters; empty where it says nothing."""
    return (header(reply.headers, "content-type") or "").partition(";")[0].strip().lower()


def opening(
    framing: Framing, kind: str, *, announced: bool
) -> Generator[Pull | bytes, bytes | None, tuple[bytes, Framer | None]]:
    """Part of a transducer: pull until it is clear what the body is.

    Args:
        framing: of the wire.
        kind: the media type.
        announced: whether that is the one in which the wire streams; one byte is then enough.

    Returns:
        The bytes that have come, not fed to the framer yet; and the framer, None where the body is a document.
    """
    start = b""
    enough = 1 if announced else _TELLING_BYTES
    try:
        while len(start.strip()) < enough and len(start) < _BLANK_BYTES and (chunk := (yield PULL)) is not None:
            start += chunk
    except Exception:  # the world's reply broke before it said anything: so does this one
        if start:
            yield start
        raise
    return start, framing(start, kind)


class Frames:
    """The frames of one stream, as a stage of `by_frame` takes them; their `raw` joined are the stream again."""

    def __init__(self, framer: Framer, start: bytes) -> None:
        self._framer = framer
        self._ready = deque(framer.feed(start))
        self._over = False
        self._broken: Exception | None = None

    def next(self) -> Generator[Pull, bytes | None, Event | None]:
        """`frame = yield from frames.next()`: the next frame, None at the end.

        A frame comes as soon as it is whole. Where the world's stream breaks, what had come of the next one is a last
        frame, without data; then the break is raised.
        """
        while not self._ready:
            if self._broken is not None:
                raise self._broken
            if self._over:
                return None
            yield from self._pull()
        return self._whole(self._ready.popleft())

    def rest(self) -> Generator[Pull, bytes | None, bytes]:
        """`rest = yield from frames.rest()`: what comes after the frames taken so far, as far as it is here.

        It waits for something that is more than the end of a line, and gives that end alone if nothing more comes.
        """
        while True:
            here = b"".join(event.raw for event in self._ready) + self._framer.pending
            if here.strip() or self._over:
                return here
            if self._broken is not None:
                raise self._broken
            yield from self._pull()

    def _pull(self) -> Generator[Pull, bytes | None, None]:
        try:
            chunk = yield PULL
        except Exception as error:
            self._broken = error
            if left := self._framer.pending:
                self._ready.append(Event(left))
            return
        if chunk is None:
            self._over = True
            self._ready.extend(self._framer.end())
        else:
            self._ready.extend(self._framer.feed(chunk))

    def _whole(self, frame: Event) -> Event:
        """An event whose CRLF is here has both halves of it: many clients do not believe in it before the second."""
        if not self._ready and isinstance(self._framer, Parser) and frame.raw.endswith(b"\r"):
            return Event(frame.raw + self._framer.take(), frame.data, frame.name)
        return frame


def by_frame(
    reply: Reply, framing: Framing, stage: Callable[[Frames], Chunks], *, document: Callable[[], None] = lambda: None
) -> Reply:
    """The reply with its stream in the hands of a stage; what is no stream passes as it is.

    Args:
        reply: whole or streamed, its body in no content encoding.
        framing: how a stream is told from a document, and taken apart; `Wire.framing`.
        stage: a transducer that takes frames instead of pulling chunks. What it does not take is not asked for.
        document: called where the body turns out to be no stream.
    """
    kind, announced = media_type(reply), reply.streamed

    def staged() -> Chunks:
        start, framer = yield from opening(framing, kind, announced=announced)
        if framer is not None:
            yield from stage(Frames(framer, start))
            return
        document()
        if start:
            yield start
        while (chunk := (yield PULL)) is not None:
            yield chunk

    return reply.pipe(staged)


def first(events: int, frames: Frames) -> Generator[Pull | bytes, bytes | None, bool]:
    """Part of a stage: let out this many events, and all that is between them; tells whether more would come.

    A stream that has no more passes to its last byte.
    """
    ends_in_cr = False
    while events:
        frame = yield from frames.next()
        if frame is None:
            return False
        yield frame.raw
        ends_in_cr = frame.raw.endswith(b"\r")
        events -= frame.data is not None
    rest = yield from frames.rest()
    if not rest.strip():
        if rest:
            yield rest
        return False
    if ends_in_cr and rest.startswith(b"\n"):  # the other half of the last event's line end
        yield b"\n"
    return True


def counted(events: int) -> str:
    """So many events, in words: `1 event`, `3 events`."""
    return f"{events} event" if events == 1 else f"{events} events"
