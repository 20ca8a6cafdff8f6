"""Server-sent events, taken apart and put together without losing a byte.

Every provider streams its answers as SSE (https://html.spec.whatwg.org/multipage/server-sent-events.html). The parser
takes bytes in any chunking and gives events; each event keeps the exact bytes it came in (`raw`), comments and blank
lines included, so `b"".join(e.raw for e in events)` is the stream again and an event nobody changed goes on as it was.

A line may end in LF, CR or CRLF. A CR at the end of a chunk may be half of a CRLF; waiting for the other half would
hold back an event that is already whole. So a blank line counts as soon as its CR is there, and the LF of a CRLF that
follows an event opens the next event's `raw`. That is the same under every chunking, and costs no time.
"""

from __future__ import annotations

import re

from flakestorm.core.record import Record

__all__ = ["DONE", "MAX_EVENT_BYTES", "Event", "Parser", "encode", "events", "looks_like_sse"]

DONE = b"[DONE]"
"""The data of the event with which OpenAI-like streams end."""

MAX_EVENT_BYTES = 16 * 2**20
"""An event longer than this is not understood any more; its bytes, and all that follow, pass through opaque."""

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"[\r\n]")
_LINES = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_CR, _LF = 13, 10


class Event(Record, frozen=True):
    """One event of a stream.

    Args:
        raw: the exact bytes it came in, with the blank line that ends it.
        data: its data lines joined by LF; None when it has none (comments, stray blank lines, opaque bytes).
        name: what its `event:` field said, empty without one.
    """

    raw: bytes
    data: bytes | None = None
    name: str = ""

    def with_data(self, data: bytes) -> Event:
        """The same event saying something else: other fields, comments and line ends stay as they came."""
        lines: list[bytes] = []
        written = False
        for line in _LINES.findall(self.raw):
            text = line.rstrip(b"\r\n")
            bom, text = (_BOM, text[3:]) if text.startswith(_BOM) else (b"", text)
            if text != b"data" and not text.startswith(b"data:"):
                lines.append(line)
                continue
            if not written:
                end = line[len(bom) + len(text) :] or b"\n"
                lines.append(bom + b"".join(b"data: " + part + end for part in data.split(b"\n")))
                written = True
        raw = b"".join(lines) if written else encode(data, name=self.name)
        return Event(raw, data, self.name)


class Parser:
    """Bytes in, events out, incrementally.

    Call `feed` with every chunk and `end` once. `pending` holds the bytes of the event that is not whole yet.
    """

    __slots__ = ("_after_cr", "_buffer", "_data", "_first", "_line", "_name", "_opaque")

    def __init__(self) -> None:
        self._buffer = bytearray()  # from the start of the event that is being read
        self._line = 0  # where the line that is being read starts in it
        self._after_cr = False  # the byte before the buffer was a CR
        self._first = True  # no line has been read yet, so a byte order mark may come
        self._opaque = False
        self._data: list[bytes] = []
        self._name = ""

    @property
    def pending(self) -> bytes:
        """Bytes fed in that no event has carried out yet."""
        return bytes(self._buffer)

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete, in order."""
        if self._opaque:
            return [Event(chunk)] if chunk else []
        found: list[Event] = []
        buffer, start, base = self._buffer, 0, len(self._buffer)
        buffer += chunk
        for match in _LINE_END.finditer(chunk):
            at = base + match.start()
            cr_before = buffer[at - 1] == _CR if at else self._after_cr
            if buffer[at] == _LF and cr_before and self._line == at:
                self._line = at + 1  # the second half of a CRLF whose first half ended the line
                continue
            if at > self._line:
                self._field(bytes(buffer[self._line : at]))
            elif at + 1 - start > MAX_EVENT_BYTES:
                break
            else:
                found.append(self._event(bytes(buffer[start : at + 1])))
                start = at + 1
            self._line = at + 1
        if start:
            self._after_cr = buffer[start - 1] == _CR
            del buffer[:start]
            self._line -= start
        if len(buffer) > MAX_EVENT_BYTES:
            self._opaque = True
            found.append(Event(bytes(buffer)))
            buffer.clear()
        return found

    def take(self) -> bytes:
        """The LF of a CRLF whose CR has ended an event, if it is here and nothing more is; else nothing.

        It belongs to the next event's `raw`, and no longer does when it was taken. Who hands events on while they
        arrive takes it along: many clients do not believe in the event before they have seen it.
        """
        if not (self._after_cr and self._line == 1 and self._buffer == b"\n"):
            return b""
        self._buffer.clear()
        self._line, self._after_cr = 0, False
        return b"\n"

    def end(self) -> list[Event]:
        """What is left when the stream is over: an event without its closing blank line, or nothing.

        Browsers throw such an event away. Here it counts if its data is there, because the bytes pass on in any case.
        """
        if not self._buffer:
            return []
        if self._line < len(self._buffer):
            self._field(bytes(self._buffer[self._line :]))
        last = self._event(bytes(self._buffer))
        self._buffer.clear()
        self._line = 0
        return [last]

    def _field(self, line: bytes) -> None:
        if self._first:
            self._first, line = False, line.removeprefix(_BOM)
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")

    def _event(self, raw: bytes) -> Event:
        self._first = False
        event = Event(raw, b"\n".join(self._data) if self._data else None, self._name)
        self._data, self._name = [], ""
        return event


def events(body: bytes) -> list[Event]:
    """All events of a body that is here as a whole."""
    parser = Parser()
    return [*parser.feed(body), *parser.end()]


def encode(data: bytes, *, name: str = "") -> bytes:
    """One event as bytes, LF line ends, its blank line included. `data` may have several lines."""
    head = b"event: " + name.encode() + b"\n" if name else b""
    return head + b"".join(b"data: " + line + b"\n" for line in data.split(b"\n")) + b"\n"


def looks_like_sse(body: bytes, *, stream: bool) -> bool:
    """Whether to read a body as a stream of events.

    What was announced decides, unless the body plainly is the other thing: providers answer streamed requests with a
    plain JSON error, and some servers stream without saying so.
    """
    start = body[:64].removeprefix(_BOM).lstrip()
    if start.startswith((b"{", b"[")):
        return False
    return stream or start.startswith((b"data:", b"event:", b":"))
