"""Requests that a mutation has changed, put on the wire as it wants: in odd frames, slowly, or many at once.

The bytes are written by hand: no client would write much of what is sent here. Every copy has a connection of its own,
and all of them stand open, each short of its last piece, before any is completed: so they overlap whatever else is
under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from urllib.parse import urlsplit

from flakestorm.agents.client import Response, Talk, connected, head_of, target_of
from flakestorm.agents.request import Request
from flakestorm.mutations.outgoing import Delivery

__all__ = ["deliver", "spelled"]

OVERLAP_S = 0.05
"""How long all copies but their last bytes are at the agent before the first is completed."""


async def deliver(request: Request, how: Delivery, *, limit_bytes: int) -> list[Response]:
    """Send it, and wait for the replies. Cancelling this closes the connections at once.

    Args:
        request, how: what is sent, and how.
        limit_bytes: how much of a reply's body is wanted.

    Raises:
        ExchangeFailed: one of the copies got no whole reply.
        ValueError: the URL is none.
    """
    parts = urlsplit(request.url)
    pieces = _pieces(spelled(request, how), how)
    lines: list[tuple[asyncio.Transport, Talk]] = []
    try:
        while len(lines) < how.copies:
            lines.append(await connected(parts, request.method, limit_bytes))
        for transport, _ in lines:
            transport.write(pieces[0])
        for piece in pieces[1:]:
            await _pause([talk for _, talk in lines], how.pause_s or OVERLAP_S)
            for transport, talk in lines:
                if not talk.reply.done():
                    transport.write(piece)
        return [await talk.reply for _, talk in lines]
    finally:
        for transport, talk in lines:
            transport.abort()
            talk.reply.cancel()
            if talk.reply.done() and not talk.reply.cancelled():
                talk.reply.exception()  # that of a second copy has been seen by nobody


def spelled(request: Request, how: Delivery) -> bytes:
    """The request, byte by byte.

    Raises:
        ValueError: the URL is none.
    """
    parts = urlsplit(request.url)
    lines = [f"{request.method} {target_of(parts, request.params)} HTTP/{how.version}"]
    lines += [f"{name}: {_flat(value)}" for name, value in head_of(parts, request.headers)]
    if how.chunk_bytes:
        lines.append("Transfer-Encoding: chunked")
        lines += [f"Trailer: {name}" for name, _ in how.trailers]
    elif request.body or how.length is not None or request.method not in ("GET", "HEAD"):
        lines.append(f"Content-Length: {len(request.body) if how.length is None else how.length}")
    lines += ["Connection: close", "", ""]
    body = b"".join(_chunks(request.body, how)) if how.chunk_bytes else request.body
    return "\r\n".join(lines).encode("utf-8", "replace") + body


def _chunks(body: bytes, how: Delivery) -> Iterator[bytes]:
    for at in range(0, len(body), how.chunk_bytes):
        chunk = body[at : at + how.chunk_bytes]
        yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
    yield b"0\r\n"
    for name, value in how.trailers:
        yield f"{name}: {_flat(value)}\r\n".encode()
    yield b"\r\n"


def _pieces(message: bytes, how: Delivery) -> list[bytes]:
    """The message in so many pieces: the head, then the body, so that an agent has begun when it must wait.

    Where copies must overlap, it is in two at least, the last of them one byte.
    """
    if how.pieces == 1:
        return [message[:-1], message[-1:]] if how.copies > 1 else [message]
    head = message.index(b"\r\n\r\n") + 4
    first = [message[:head]] if head < len(message) else []
    rest = message[head:] or message
    size = -(-len(rest) // (how.pieces - len(first)))
    return [*first, *(rest[at : at + size] for at in range(0, len(rest), size))]


async def _pause(talks: list[Talk], seconds: float) -> None:
    """Wait; not longer than until every copy has its reply."""
    await asyncio.wait([talk.reply for talk in talks], timeout=seconds)


def _flat(value: str) -> str:
    return " ".join(value.splitlines())
