"""Content encodings: what a reader or an editor of a compressed reply needs.

gzip, deflate and zstd are undone, whole or as the bytes arrive. Brotli is not; a reply in it cannot be read or edited
here and passes on as it is. (The gateway asks upstream for identity, so compressed replies come only from servers that
compress unasked, and from agents held in process.)
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from flakestorm.core.call import PULL, Chunks, Headers, Reply, header, without_headers
from flakestorm.errors import CallFailed

__all__ = ["MAX_DECODED_BYTES", "decode_body", "decoded", "why_packed"]

MAX_DECODED_BYTES = 64 * 2**20
"""A reply that unpacks to more than this is a decompression bomb, or nothing an agent could use."""

_PIECE_BYTES = 2**20
_STEP_BYTES = 2**16  # damage costs what follows it in the same step, so steps are small
_NAMES = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate", "zstd": "zstd"}
_WINDOW_LOG = 23  # 8 MB, as RFC 8878 has it for what comes over a network


def _coding(headers: Headers) -> str:
    """`identity`, `gzip`, `deflate`, `zstd`, or `unknown` for what cannot be undone here."""
    value = (header(headers, "content-encoding") or "identity").strip().lower()
    return "identity" if value in ("identity", "") else _NAMES.get(value, "unknown")


class _Inflate:
    """Unpacks gzip, deflate or zstd as it arrives. What cannot be unpacked, and all that follows it, is left out.

    `deflate` means zlib by the RFC and raw deflate with some servers; the first byte tells.
    """

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._unpack: Any = zlib.decompressobj(wbits=31) if coding == "gzip" else None
        self.total_bytes = 0
        self.over = False  # nothing more will come out: the end, or damage

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """What this chunk unpacks to, in pieces of at most `_PIECE_BYTES`."""
        for piece in self._zstd(chunk) if self._coding == "zstd" else self._zlib(chunk):
            self.total_bytes += len(piece)
            yield piece

    def _zstd(self, chunk: bytes) -> Iterator[bytes]:
        zstd = _library()
        while not self.over:
            if self._unpack is None:
                self._unpack = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})
            try:
                piece = self._unpack.decompress(chunk, max_length=_PIECE_BYTES)
            except zstd.ZstdError:
                self.over = True
                return
            if piece:
                yield piece
            chunk = b""
            if self._unpack.eof:  # another frame may follow
                chunk, self._unpack = self._unpack.unused_data, None
                if not chunk:
                    return
            elif self._unpack.needs_input:
                return

    def _zlib(self, chunk: bytes) -> Iterator[bytes]:
        while chunk and not self.over:
            if self._unpack is None:
                zlib_header = chunk[0] & 0x0F == 8 and chunk[0] >> 4 <= 7
                self._unpack = zlib.decompressobj(wbits=15 if zlib_header else -15)
            try:
                piece = self._unpack.decompress(chunk, _PIECE_BYTES)
            except zlib.error:
                self.over = True
                return
            chunk = self._unpack.unconsumed_tail
            if self._unpack.eof:
                chunk = self._unpack.unused_data
                if self._coding == "gzip":
                    self._unpack = zlib.decompressobj(wbits=31)  # another gzip member may follow
                else:
                    self.over = True
            if piece:
                yield piece


def _library() -> Any:
    """The module for zstd: the standard library's from Python 3.14 on, and the same as a package before."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def why_packed(body: bytes, headers: Headers) -> str | None:
    """Why nothing of a body can be unpacked, in words; None where it can, at least in part, or needs no unpacking."""
    coding = _coding(headers)
    if coding == "identity" or not body or (coding != "unknown" and decode_body(body, headers)):
        return None
    said = (header(headers, "content-encoding") or "")[:60]
    if coding == "unknown":
        return f"it comes with Content-Encoding {said!r}, which the request did not offer to take"
    return f"it comes with Content-Encoding {said!r} and cannot be unpacked: it is damaged, or was never packed"


def decode_body(body: bytes, headers: Headers) -> bytes:
    """The body without its content encoding, as far as it can be unpacked.

    A damaged body gives the part before the damage, an oversized one its first MAX_DECODED_BYTES or a little more, and
    one in an unknown encoding comes back unchanged.
    """
    coding = _coding(headers)
    if coding not in _NAMES.values():
        return body
    inflate, parts = _Inflate(coding), list[bytes]()
    for at in range(0, len(body), _STEP_BYTES):
        for piece in inflate.feed(body[at : at + _STEP_BYTES]):
            parts.append(piece)
            if inflate.total_bytes > MAX_DECODED_BYTES:
                return b"".join(parts)
    return b"".join(parts)


def decoded(reply: Reply) -> Reply | None:
    """The reply with its body unpacked while it arrives and no content-encoding header; None if that is not possible.

    A damaged body ends where the damage is. One that unpacks to more than MAX_DECODED_BYTES breaks the connection.
    """
    coding = _coding(reply.headers)
    if coding == "identity":
        return reply
    if coding == "unknown":
        return None

    def unpack() -> Chunks:
        inflate = _Inflate(coding)
        while (chunk := (yield PULL)) is not None:
            for at in range(0, len(chunk), _STEP_BYTES):
                for piece in inflate.feed(chunk[at : at + _STEP_BYTES]):
                    if inflate.total_bytes > MAX_DECODED_BYTES:
                        raise CallFailed("reset", f"the compressed reply unpacks to over {MAX_DECODED_BYTES} bytes")
                    yield piece

    headers = without_headers(reply.headers, "content-encoding", "content-length")
    return replace(reply, headers=headers).pipe(unpack)
