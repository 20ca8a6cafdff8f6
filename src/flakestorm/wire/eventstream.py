"""Amazon's binary event stream: https://smithy.io/2.0/aws/amazon-eventstream.html.

A message is its length and the length of its headers (four bytes each, big-endian), a checksum of those eight bytes,
the headers, a payload, and a checksum of it all. Headers name the event (`:event-type`) or the error
(`:exception-type`, `:error-code`). Reading stops at the first message that is damaged or not whole.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping

from flakestorm.wire.sse import MAX_EVENT_BYTES, Event

__all__ = ["MEDIA_TYPE", "Message", "Messages", "encode", "eventstream_framing", "messages"]

MEDIA_TYPE = "application/vnd.amazon.eventstream"

_PRELUDE = struct.Struct(">III")
_CHECKSUM = struct.Struct(">I")
_FIXED_BYTES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}  # header types; 6 and 7 state their length
_SAYS_WHAT = (":event-type", ":exception-type", ":error-code")


def messages(body: bytes) -> Iterator[tuple[str, bytes]]:
    """(what it is, its payload) of every whole message, in order."""
    at = 0
    while at + _PRELUDE.size <= len(body):
        total, headers_bytes, checksum = _PRELUDE.unpack_from(body, at)
        first = at + _PRELUDE.size
        last = at + total - _CHECKSUM.size
        if last + _CHECKSUM.size > len(body) or first + headers_bytes > last:
            return
        if checksum != zlib.crc32(body[at : at + 8]) or _CHECKSUM.unpack_from(body, last)[0] != zlib.crc32(
            body[at:last]
        ):
            return
        yield _what(body[first : first + headers_bytes]), body[first + headers_bytes : last]
        at += total


class Message(Event, frozen=True):
    """One message; its `name` says what it is, and `data` is its payload."""

    def with_data(self, data: bytes) -> Message:
        """The same message with another payload: its headers as they came, lengths and checksums true."""
        headers_bytes = _PRELUDE.unpack_from(self.raw)[1]
        fields = self.raw[_PRELUDE.size : _PRELUDE.size + headers_bytes]
        return Message(_framed(fields, data), data, self.name)


class Messages:
    """Takes a stream apart as it arrives; see `frames.Framer`. A message's `name` says what it is.

    A message is not checked here, so damage passes on as it came. After a length that no message has, or one of more
    than MAX_EVENT_BYTES, all bytes pass unread.
    """

    __slots__ = ("_opaque", "pending")

    def __init__(self) -> None:
        self.pending = b""
        """The beginning of the message that is not whole yet."""
        self._opaque = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The messages that these bytes complete."""
        found: list[Event] = []
        self.pending += chunk
        while not self._opaque and len(self.pending) >= _PRELUDE.size:
            total, headers_bytes, _ = _PRELUDE.unpack_from(self.pending)
            payload = _PRELUDE.size + headers_bytes, total - _CHECKSUM.size
            if payload[0] > payload[1] or total > MAX_EVENT_BYTES:
                self._opaque = True
            elif len(self.pending) < total:
                break
            else:
                raw, self.pending = self.pending[:total], self.pending[total:]
                found.append(Message(raw, raw[slice(*payload)], _what(raw[_PRELUDE.size : payload[0]])))
        return [*found, *self.end()] if self._opaque else found

    def end(self) -> list[Event]:
        """What is left when the stream is over."""
        left, self.pending = self.pending, b""
        return [Event(left)] if left else []


def eventstream_framing(_start: bytes, media_type: str) -> Messages | None:
    """Only what is announced as such is an event stream; see `frames.Framing`."""
    return Messages() if media_type == MEDIA_TYPE else None


def encode(payload: bytes, headers: Mapping[str, str]) -> bytes:
    """A message with these headers, all of them texts."""
    fields = b"".join(
        struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    return _framed(fields, payload)


def _framed(fields: bytes, payload: bytes) -> bytes:
    sizes = struct.pack(">II", _PRELUDE.size + len(fields) + len(payload) + _CHECKSUM.size, len(fields))
    message = sizes + _CHECKSUM.pack(zlib.crc32(sizes)) + fields + payload
    return message + _CHECKSUM.pack(zlib.crc32(message))


def _what(headers: bytes) -> str:
    """The value of the header that says what a message is; empty if there is none that can be read."""
    at = 0
    while at < len(headers):
        name_end = at + 1 + headers[at]
        name, kind = headers[at + 1 : name_end].decode("utf-8", "replace"), headers[name_end : name_end + 1]
        at = name_end + 1
        if kind in (b"\6", b"\7"):
            size, at = int.from_bytes(headers[at : at + 2], "big"), at + 2
        elif kind and kind[0] in _FIXED_BYTES:
            size = _FIXED_BYTES[kind[0]]
        else:
            return ""
        if name in _SAYS_WHAT:
            return headers[at : at + size].decode("utf-8", "replace")
        at += size
    return ""
