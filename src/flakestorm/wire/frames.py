"""The other ways in which providers stream: a JSON document per line, and one long JSON array.

Ollama sends its answer as lines of JSON; Gemini, when nobody asks it for events, as the elements of an array that
begins with the first word and is closed after the last. Both are taken apart like a stream of events (`sse`): every
frame keeps the exact bytes it came in, separators included, so that the frames joined are the stream again, and a
frame whose document changes keeps everything around it.

`Pieces` takes nothing apart: of a stream that cannot be read (compressed in a way that is not undone here) every chunk
counts as a frame.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from flakestorm.wire.sse import MAX_EVENT_BYTES, Event, Parser, looks_like_sse

__all__ = ["Elements", "Frame", "Framer", "Framing", "Lines", "Pieces", "frames", "sse_framing"]

_SIGNS = re.compile(rb'["\\{}\[\]]')
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_OPENING, _CLOSING = b"{[", b"}]"


class Frame(Event, frozen=True):
    """A frame of a stream that is not made of events: `data` is a part of `raw`, byte for byte."""

    def with_data(self, data: bytes) -> Frame:
        """The same frame saying something else; the separators around it stay as they came."""
        before, _, after = self.raw.rpartition(self.data or b"")
        return Frame(before + data + after, data)


class Framer(Protocol):
    """Bytes in, frames out, incrementally: `sse.Parser` and its like."""

    @property
    def pending(self) -> bytes:
        """Bytes fed in that no frame has carried out yet."""
        ...

    def feed(self, chunk: bytes) -> list[Event]:
        """The frames that these bytes complete, in order."""
        ...

    def end(self) -> list[Event]:
        """What is left when the stream is over."""
        ...


Framing = Callable[[bytes, str], Framer | None]
"""From a body's first bytes and its media type (lower case, without parameters) to what takes it apart.

None where the body is one document.
"""


def sse_framing(start: bytes, media_type: str) -> Framer | None:
    """The framing of most protocols: events or a document, whatever was announced."""
    return Parser() if looks_like_sse(start, stream=media_type == "text/event-stream") else None


def frames(framer: Framer, body: bytes) -> list[Event]:
    """All frames of a body that is here as a whole."""
    return [*framer.feed(body), *framer.end()]


class Pieces:
    """Every chunk is a frame."""

    __slots__ = ()
    pending = b""

    def feed(self, chunk: bytes) -> list[Event]:
        """The chunk."""
        return [Frame(chunk, chunk)] if chunk else []

    def end(self) -> list[Event]:
        """Nothing is left."""
        return []


class Lines:
    """A document per line (NDJSON, https://github.com/ndjson/ndjson-spec)."""

    __slots__ = ("_buffer", "_opaque")

    def __init__(self) -> None:
        self._buffer = b""
        self._opaque = False

    @property
    def pending(self) -> bytes:
        """The beginning of the line that is not whole yet."""
        return self._buffer

    def feed(self, chunk: bytes) -> list[Event]:
        """The lines that these bytes complete. After one longer than MAX_EVENT_BYTES all bytes pass unread."""
        if self._opaque:
            return [Frame(chunk)] if chunk else []
        *whole, self._buffer = (self._buffer + chunk).split(b"\n")
        found = [_line(line + b"\n") for line in whole]
        if len(self._buffer) > MAX_EVENT_BYTES:
            self._opaque = True
            found.append(Frame(self._buffer))
            self._buffer = b""
        return found

    def end(self) -> list[Event]:
        """A last line without its line end."""
        last, self._buffer = self._buffer, b""
        return [_line(last)] if last else []


def _line(raw: bytes) -> Event:
    return Frame(raw, raw.strip() or None)


class Elements:
    """The objects and arrays in one JSON array, each as soon as it is whole.

    What stands between them (brackets, commas, white space) is at the front of the frame that follows it, and in a
    frame without data at the end. So every frame but the first can be left out, and what remains is still an array.
    """

    __slots__ = ("_buffer", "_depth", "_escaped", "_in_string", "_opaque", "_start", "closed")

    def __init__(self) -> None:
        self._buffer = bytearray()  # from the end of the last element
        self._start = 0  # where in it the element that is being read begins
        self._depth = 0
        self._in_string = False
        self._escaped = -1  # position of a character that a backslash takes the meaning from
        self._opaque = False
        self.closed = False
        """Whether the bracket that closes the array has come."""

    @property
    def pending(self) -> bytes:
        """Bytes fed in that no frame has carried out yet."""
        return bytes(self._buffer)

    def feed(self, chunk: bytes) -> list[Event]:
        """The elements that these bytes complete. After one longer than MAX_EVENT_BYTES all bytes pass unread."""
        if self._opaque:
            return [Frame(chunk)] if chunk else []
        found: list[Event] = []
        buffer, base, done = self._buffer, len(self._buffer), 0
        buffer += chunk
        for match in _SIGNS.finditer(chunk):
            at = base + match.start()
            if self._closes(buffer[at], at):
                found.append(Frame(bytes(buffer[done : at + 1]), bytes(buffer[self._start : at + 1])))
                done = at + 1
        del buffer[:done]
        self._start -= done
        self._escaped -= done
        if len(buffer) > MAX_EVENT_BYTES:
            self._opaque = True
            found.append(Frame(bytes(buffer)))
            buffer.clear()
        return found

    def end(self) -> list[Event]:
        """The closing bracket, and whatever else is left."""
        last = bytes(self._buffer)
        self._buffer.clear()
        return [Frame(last)] if last else []

    def _closes(self, sign: int, at: int) -> bool:
        """Follow one sign; tells whether it is the last of an element."""
        if self._in_string:
            if at != self._escaped:
                if sign == _BACKSLASH:
                    self._escaped = at + 1
                self._in_string = sign != _QUOTE
        elif sign == _QUOTE:
            self._in_string = True
        elif sign in _OPENING:
            if self._depth == 1:
                self._start = at
            self._depth += 1
        elif sign in _CLOSING:
            self._depth -= 1
            self.closed = self.closed or self._depth == 0
            return self._depth == 1
        return False
