"""Requests and replies as the gateway reads them: in however many pieces they come, the same is read."""

from __future__ import annotations

from typing import Any, cast

from flakestorm.boundary.asked import Reading, Whole
from flakestorm.boundary.asking import Answer, Asking
from fuzz.material import Bytes

__all__ = ["check"]

_PARTS = (b"GET / HTTP/1.1", b"POST /x HTTP/1.1", b"HTTP/1.1 200 OK", b"HTTP/1.1 103 Early", b"HTTP/1.0 304 ", b"\r\n",
          b"\r\n", b"\r\n\r\n", b"\n", b"Host: h", b"Content-Length: 3", b"Content-Length: 0",
          b"Transfer-Encoding: chunked", b"Connection: close", b"Upgrade: x", b"Expect: 100-continue", b"X:  y \t",
          b"X:", b"abc", b"3\r\nabc\r\n", b"0\r\n\r\n", b"\0", b"\xe9", b" ", b"HTTP/1.1 101 Go")  # fmt: skip


class _Wires:
    """A transport that is only ever closed."""

    closed = False

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        """There is never so much."""


def check(data: bytes) -> None:
    source = Bytes(data)
    step, head = source.below(9) + 1, source.below(4) == 0
    if source.below(2):
        said = source.rest()
    else:
        said = b"".join(_PARTS[source.below(len(_PARTS))] for _ in range(source.below(24)))
    assert _answered(said, len(said) or 1, head) == _answered(said, step, head)
    _asked(said, len(said) or 1)
    _asked(said, step)


def _answered(said: bytes, step: int, head: bool) -> tuple[object, ...]:
    """What is read of a reply that comes in pieces of this size."""
    wires = _Wires()
    connection = Asking(cast(Any, wires), wires.close, lambda _: None, lambda _: None)
    answer = connection._answer = Answer(connection, bodiless=head)
    for at in range(0, len(said), step):
        if not wires.closed:
            connection.data_received(said[at : at + step])
    assert answer.headed or not answer.held
    fields = tuple(answer.fields) if answer.headed else ()  # what is not a whole head is nobody's
    return answer.headed, answer.status, fields, answer.ended, type(answer.error), b"".join(answer.held)


def _asked(said: bytes, step: int) -> None:
    """Requests that come in pieces of this size: every byte is in one that was read, or given back."""
    reading, taken, done = Reading(), 0, 0
    for at in range(0, len(said), step):
        piece = said[at : at + step]
        taken += len(piece)
        came = reading.read(piece, None)
        if isinstance(came, bytes):
            assert came == said[done:taken]
            return
        if isinstance(came, Whole):
            done = taken
            assert len(came.body) == int(came.headers.get("content-length", 0))
            assert not {"transfer-encoding", "expect", "upgrade"} & set(came.headers)
