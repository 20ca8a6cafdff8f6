"""Refusing HTTP/2 in its own language: a GOAWAY that asks for HTTP/1.1 and carries the reason, which its clients show.

Clients that speak it from the first byte (gRPC, `curl --http2-prior-knowledge`), and those that were offered HTTP/1.1
for their TLS and take no notice, begin with a fixed preface. It is all that is understood of HTTP/2 here.
"""

from __future__ import annotations

import struct

__all__ = ["PREFACE", "refusal"]

PREFACE = b"PRI * HTTP/2.0\r\n"
"""How a connection begins (RFC 9113, section 3.4), and no HTTP/1.1 request."""

_HTTP_1_1_REQUIRED = 0xD


def refusal(reason: str) -> bytes:
    """What to answer before the connection is closed."""
    return _frame(0x4, b"") + _frame(0x7, struct.pack(">II", 0, _HTTP_1_1_REQUIRED) + reason.encode())


def _frame(kind: int, payload: bytes) -> bytes:
    """A frame on stream 0, without flags (RFC 9113, section 4.1)."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, 0, 0) + payload
