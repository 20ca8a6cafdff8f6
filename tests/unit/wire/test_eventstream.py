import struct
import zlib

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.eventstream import messages


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
