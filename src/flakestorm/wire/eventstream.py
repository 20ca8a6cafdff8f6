"""Amazon's binary event stream, for reading: https://smithy.io/2.0/aws/amazon-eventstream.html.

A message is its length and the length of its headers (four bytes each, big-endian), a checksum of those eight bytes,
the headers, a payload, and a checksum of it all. Headers name the event (`:event-type`) or the error
(`:exception-type`, `:error-code`). Reading stops at the first message that is damaged or not whole.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

__all__ = ["messages"]

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
