"""Compressed replies: whatever comes, in whatever pieces, decoding ends, is bounded, and gives bytes."""

from __future__ import annotations

import gzip
import zlib

from flakestorm.core.call import Reply
from flakestorm.core.stream import pump
from flakestorm.wire.encoding import MAX_DECODED_BYTES, decode_body, decoded
from fuzz.material import Bytes

__all__ = ["check"]

_NAMES = ("gzip", "x-gzip", "deflate", "identity", "br", "zstd", "gzip, gzip", "")


def check(data: bytes) -> None:
    source = Bytes(data)
    name, way, step = _NAMES[source.below(len(_NAMES))], source.below(4), source.byte()
    body = source.rest()
    if way == 1:
        body = gzip.compress(body, 1)[: len(body) + step]
    elif way == 2:
        body = zlib.compress(body, 1)[: len(body) + step]
    headers = (("content-encoding", name),)
    whole = decode_body(body, headers)
    assert len(whole) <= MAX_DECODED_BYTES + 2**20
    pieces = [body[at : at + step] for at in range(0, len(body), step)] if step else [body]
    reply = decoded(Reply(200, headers, pieces))
    if reply is not None and name not in ("identity", ""):
        streamed = b"".join(pump(reply, lambda _: None))
        assert whole.startswith(streamed) or streamed.startswith(whole)
