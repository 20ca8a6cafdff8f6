import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.eventstream import MEDIA_TYPE, Messages, encode, eventstream_framing, messages
from flakestorm.wire.frames import frames
from flakestorm.wire.sse import Event
from wire_support import chunked


def header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + b"\7" + struct.pack(">H", len(value)) + value.encode()


def message(payload: bytes, headers: bytes) -> bytes:
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    head = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return head + struct.pack(">I", zlib.crc32(head))


ONE = message(b'{"a":1}', header(":event-type", "messageStart") + header(":content-type", "application/json"))
OTHER = message(b"{}", b"\4flag\0" + b"\4when\x08" + bytes(8) + header(":exception-type", "throttlingException"))


def test_every_message_says_what_it_is() -> None:
    assert list(messages(ONE + OTHER)) == [("messageStart", b'{"a":1}'), ("throttlingException", b"{}")]


def test_a_message_without_a_name_has_none() -> None:
    assert list(messages(message(b"x", b""))) == [("", b"x")]
    assert list(messages(message(b"x", b"\4what\x63"))) == [("", b"x")]


@given(st.integers(0, len(ONE + OTHER) - 1))
def test_reading_stops_where_the_stream_breaks_off(at: int) -> None:
    assert len(list(messages((ONE + OTHER)[:at]))) == (at >= len(ONE))


@given(st.integers(0, len(ONE) - 1), st.integers(1, 255))
def test_reading_stops_at_damage(at: int, flipped: int) -> None:
    damaged = bytearray(ONE)
    damaged[at] ^= flipped
    assert list(messages(bytes(damaged) + OTHER)) == []


@given(st.binary())
def test_any_bytes_can_be_read(body: bytes) -> None:
    list(messages(body))


def taken(found: list[Event]) -> tuple[list[Event], bytes]:
    """The messages, and what passes unread behind them: that has no pieces of its own."""
    return [frame for frame in found if frame.data is not None], b"".join(f.raw for f in found if f.data is None)


@given(
    st.lists(st.sampled_from([ONE, OTHER]), max_size=4),
    st.binary(max_size=30),
    st.lists(st.integers(1, 99), min_size=1),
)
def test_a_stream_is_taken_apart_as_it_arrives(parts: list[bytes], tail: bytes, sizes: list[int]) -> None:
    body = b"".join(parts) + tail
    framer = Messages()
    found = [frame for chunk in chunked(body, *sizes) for frame in framer.feed(chunk)] + framer.end()
    assert b"".join(frame.raw for frame in found) == body
    assert taken(found) == taken(frames(Messages(), body))
    said = [(frame.name, frame.data) for frame in found[: len(parts)]]
    assert said == [("messageStart", b'{"a":1}') if part is ONE else ("throttlingException", b"{}") for part in parts]


def test_a_message_is_handed_on_with_its_last_byte() -> None:
    framer = Messages()
    assert (framer.feed(ONE[:-1]), framer.pending) == ([], ONE[:-1])
    assert [frame.raw for frame in framer.feed(ONE[-1:] + b"\0")] == [ONE]
    assert framer.pending == b"\0"


@pytest.mark.parametrize("sizes", [(8, 9), (2**30, 0), (20, 2**20)])
def test_after_a_length_that_cannot_be_all_bytes_pass_unread(sizes: tuple[int, int]) -> None:
    framer = Messages()
    damaged = struct.pack(">III", *sizes, 0) + b"rest"
    assert [(frame.raw, frame.data) for frame in framer.feed(damaged)] == [(damaged, None)]
    assert [(frame.raw, frame.data) for frame in framer.feed(ONE)] == [(ONE, None)]


def test_what_is_encoded_can_be_read() -> None:
    made = encode(b'{"a":1}', {":event-type": "messageStart", ":content-type": "application/json"})
    assert made == ONE
    assert list(messages(encode(b"", {":exception-type": "é"}))) == [("é", b"")]


def test_only_what_is_announced_is_an_event_stream() -> None:
    assert isinstance(eventstream_framing(b"", MEDIA_TYPE), Messages)
    assert eventstream_framing(ONE, "application/octet-stream") is None
