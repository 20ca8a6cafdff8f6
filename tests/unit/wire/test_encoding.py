import gzip
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import Reply, header
from flakestorm.core.stream import read
from flakestorm.errors import CallFailed
from flakestorm.wire import encoding
from flakestorm.wire.encoding import decode_body, decoded, why_packed
from wire_support import chunked

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = b"the quick brown fox " * 50


def raw_deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(data) + squeeze.flush()


PACK = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress}


@pytest.mark.parametrize("coding", [*PACK, "GZIP", " gzip "])
def test_what_was_packed_is_unpacked_and_no_longer_said_to_be(coding: str) -> None:
    packed = PACK[coding.strip().lower()](TEXT)
    headers = (("Content-Encoding", coding), ("Content-Length", str(len(packed))), ("X-Other", "1"))
    reply = decoded(Reply(200, headers, packed, reason="OK"))
    assert reply is not None
    assert read(reply) == TEXT == decode_body(packed, headers)
    assert (reply.headers, reply.reason) == ((("X-Other", "1"),), "OK")


def test_raw_deflate_is_understood_too() -> None:
    assert decode_body(raw_deflate(TEXT), (("content-encoding", "deflate"),)) == TEXT


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_several_members_are_one_body(coding: str) -> None:
    packed = PACK[coding](b"one ") + PACK[coding](b"two")
    assert decode_body(packed, (("content-encoding", coding),)) == b"one two"


@given(st.binary(max_size=500), st.sampled_from(["gzip", "deflate", "zstd"]), st.lists(st.integers(1, 40), min_size=1))
def test_chunking_does_not_matter(data: bytes, coding: str, sizes: list[int]) -> None:
    reply = decoded(Reply(200, (("content-encoding", coding),), list(chunked(PACK[coding](data), *sizes))))
    assert reply is not None
    assert read(reply) == data


@pytest.mark.parametrize("coding", ["br", "gzip, br"])
def test_an_encoding_that_cannot_be_undone_is_left_alone(coding: str) -> None:
    assert decoded(Reply(200, (("content-encoding", coding),), b"?")) is None
    assert decode_body(b"?", (("content-encoding", coding),)) == b"?"


@pytest.mark.parametrize("headers", [(), (("content-encoding", "identity"),)])
def test_a_plain_reply_is_the_same_object(headers: tuple[tuple[str, str], ...]) -> None:
    reply = Reply(200, headers, TEXT)
    assert decoded(reply) is reply
    assert decode_body(TEXT, headers) is TEXT


@given(st.binary())
def test_damage_never_raises(data: bytes) -> None:
    for coding in ("gzip", "deflate", "zstd"):
        headers = (("content-encoding", coding),)
        reply = decoded(Reply(200, headers, data))
        assert reply is not None
        assert read(reply) == decode_body(data, headers)


def test_the_part_before_the_damage_is_kept() -> None:
    packed = gzip.compress(bytes(range(256)) * 4000, compresslevel=1)
    kept = decode_body(packed[: len(packed) // 2], (("content-encoding", "gzip"),))
    assert 0 < len(kept) < 256 * 4000


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_a_bomb_breaks_the_connection(coding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MAX_DECODED_BYTES", 3 * 2**20)
    bomb = PACK[coding](bytes(30 * 2**20))
    reply = decoded(Reply(200, (("content-encoding", coding),), bomb))
    assert reply is not None
    with pytest.raises(CallFailed, match="unpacks to over 3145728 bytes"):
        read(reply)
    assert len(decode_body(bomb, (("content-encoding", coding),))) <= 5 * 2**20


def test_a_window_that_only_a_bomb_needs_is_not_made() -> None:
    options = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.enable_long_distance_matching: 1}
    packed = zstd.compress(bytes(20_000_000), options=options)
    assert decode_body(packed, (("content-encoding", "zstd"),)) == b""


def test_the_header_is_what_it_was_for_a_reply_that_is_not_unpacked() -> None:
    reply = Reply(200, (("content-encoding", "br"),), b"?")
    assert decoded(reply) is None
    assert header(reply.headers, "content-encoding") == "br"


@pytest.mark.parametrize(
    ("coding", "body", "said"),
    [
        ("br", b"x", "Content-Encoding 'br', which the request did not offer to take"),
        ("br, gzip", b"x", "did not offer"),
        ("gzip", b"plain", "cannot be unpacked: it is damaged, or was never packed"),
        ("gzip", gzip.compress(b"x", mtime=0), None),
        ("gzip", gzip.compress(b"x" * 9999, mtime=0)[:-9], None),
        ("identity", b"x", None),
        ("br", b"", None),
    ],
)
def test_a_body_of_which_nothing_can_be_unpacked_says_why(coding: str, body: bytes, said: str | None) -> None:
    why = why_packed(body, (("Content-Encoding", coding),))
    assert why is None if said is None else said in str(why)
