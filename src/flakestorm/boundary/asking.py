"""One connection to an upstream, asked one request after the other.

Bytes are read by httptools (llhttp, the parser of Node). What stands around it is here because every call pays for it:
a request is written in one segment, a reply that came along with its head wakes its caller once, and one that did not
is handed on as it comes, while the upstream is made to wait where nobody reads.

Connecting is not done here (`live.py`): whoever has a transport gives it away with `asyncio.Transport.set_protocol`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

__all__ = ["HEAD_BYTES", "HELD_BYTES", "Answer", "Asking", "Garbled"]

HEAD_BYTES = 1024 * 1024
"""How long the head of a reply may be, with all interim replies before it."""

HELD_BYTES = 512 * 1024
"""How much of a body is held before the upstream is made to wait."""


class Garbled(Exception):
    """What came is not HTTP/1.1."""


class Answer:
    """One reply: its head, and its body as it arrives.

    Attributes:
        status, reason, fields: of its head; `fields` in wire order.
        headed, ended: whether its head is here, and whether nothing more of it will come.
        error: why nothing more will, where that is not its end.
    """

    __slots__ = (
        "_connection",
        "_waiter",
        "bodiless",
        "ended",
        "error",
        "fields",
        "headed",
        "held",
        "reason",
        "status",
    )

    def __init__(self, connection: Asking, *, bodiless: bool) -> None:
        self._connection, self.bodiless = connection, bodiless
        self.headed = self.ended = False
        self.status, self.reason = 0, b""
        self.fields: list[tuple[bytes, bytes]] = []
        self.held: list[bytes] = []
        self.error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def more(self) -> asyncio.Future[None]:
        """Done when something of it has come, or nothing more will."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def whole(self) -> bytes | None:
        """The whole body, where all of it is here; else None, and it is to be read."""
        if not self.ended or self.error is not None:
            return None
        held = self.held
        return held[0] if len(held) == 1 else b"".join(held)

    async def readany(self) -> bytes:
        """All of the body that is here, or else what comes next; empty at its end.

        Raises:
            OSError: the connection broke before the end; what had come until then is given first.
            Garbled: it is not framed as HTTP/1.1 has it.
        """
        while not self.held and not self.ended:
            await self.more()
        if self.held:
            chunk = self.held[0] if len(self.held) == 1 else b"".join(self.held)
            self.held.clear()
            self._connection.drained(self)
            return chunk
        if self.error is not None:
            raise self.error
        return b""

    def close(self) -> None:
        """Nobody wants the rest: where it has not ended, the connection is dropped."""
        if not self.ended:
            self._connection.close()
            self.held.clear()
            self.end(None)

    def end(self, error: Exception | None) -> None:
        """No more of it will come."""
        self.ended, self.error = True, error
        self.came()

    def came(self) -> None:
        """Something of it is here."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def open_ended(self) -> bool:
        """Whether the end of the connection is the end of the body: nothing in the head says another."""
        coding = b""
        for name, value in self.fields:
            if (low := name.lower()) == b"content-length":
                return False
            if low == b"transfer-encoding":
                coding = value
        return coding.rpartition(b",")[2].strip().lower() != b"chunked"


class Asking(asyncio.Protocol):
    """One connection.

    Args:
        transport: of it; to be given to this with `set_protocol`.
        drop: closes the transport; may be called more than once.
        free: called when a reply has ended and another request may be sent.
        lost: called when the connection is gone, with what `connection_lost` was told.
        early: what the upstream said before it was asked.

    Attributes:
        open: False where it has been closed from here, or has ended.
        idle_since: for the pool that keeps it.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        drop: Callable[[], None],
        free: Callable[[Asking], None],
        lost: Callable[[Exception | None], None],
        early: bytes = b"",
    ) -> None:
        self._transport, self._drop, self._free, self._lost = transport, drop, free, lost
        self._early = early
        self._parser = self._parsing()
        self._answer: Answer | None = None  # under way
        self._head_bytes = self._held_bytes = 0
        self._keep = self._paused = False
        self.open, self.idle_since = True, 0.0

    async def ask(self, request: bytes, *, head: bool) -> Answer:
        """Send a request; returns when the head of its reply is here. One that is cancelled drops the connection.

        Args:
            request: all of it.
            head: its method is HEAD, so that the reply has no body.

        Raises:
            OSError: the connection broke before the head was here.
            Garbled: what came is none.
        """
        answer = self._answer = Answer(self, bodiless=head)
        self._head_bytes = self._held_bytes = 0
        self._transport.write(request)
        if self._early:
            early, self._early = self._early, b""
            self.data_received(early)
        try:
            while not answer.headed:
                if answer.error is not None:
                    raise answer.error
                await answer.more()
        except BaseException:
            self.close()
            raise
        return answer

    @property
    def ready(self) -> bool:
        """Whether it can be asked, as far as is known."""
        return self.open and not self._transport.is_closing()

    def close(self) -> None:
        """Drop the connection."""
        self.open = False
        self._drop()

    def drained(self, answer: Answer) -> None:
        """All that was held of a body has been taken."""
        if answer is self._answer:
            self._held_bytes = 0
            self._resume()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None:  # nobody has asked for anything
            self.close()
            return
        if not answer.headed:
            self._head_bytes += len(data)
        error: Exception | None = None
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as trouble:  # an upgrade that nobody has asked for
            error = Garbled(str(trouble.__context__ or trouble))
        if answer.ended:
            self._over(answer, keep=self._keep and error is None)
            return
        if error is None and not answer.headed and self._head_bytes > HEAD_BYTES:
            error = Garbled(f"the head of its reply is longer than {HEAD_BYTES // 1024} KiB")
        if error is not None:
            self._answer = None
            answer.end(error)
            self.close()
            return
        if answer.headed:
            answer.came()
            if self._held_bytes > HELD_BYTES and not self._paused:
                self._paused = True
                self._transport.pause_reading()

    def _parsing(self) -> HttpResponseParser:
        """A parser; what aiohttp and common clients let pass of a server, it lets pass."""
        parser = HttpResponseParser(self)
        parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        return parser

    def _over(self, answer: Answer, *, keep: bool) -> None:
        """The reply is here to its end."""
        self._answer = None
        if answer.bodiless:  # the parser may still wait for a body
            self._parser = self._parsing()
        if keep and self.ready:
            self._resume()
            self._free(self)
        else:
            self.close()
        answer.came()

    def connection_lost(self, exc: Exception | None) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            whole = answer.headed and exc is None and self.open and answer.open_ended
            if whole:
                answer.end(None)
            else:
                answer.end(exc if isinstance(exc, OSError) else ConnectionResetError("it hung up"))
        self.open = False
        del self._parser  # it holds this, and there may be many before the garbage collector comes by
        self._lost(exc)

    # What the parser calls. An exception ends the parsing: what comes after a reply is none of it.

    def on_message_begin(self) -> None:
        """The first byte of a reply."""
        if self._answer is None or self._answer.ended:
            raise Garbled("there is more than one reply")

    def on_status(self, reason: bytes) -> None:
        """The reason phrase, or a part of it."""
        if self._answer is not None:
            self._answer.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head, or of a trailer."""
        answer = self._answer
        if b"\0" in value:
            raise Garbled("there is a NUL in its header")
        if answer is not None and not answer.headed:
            answer.fields.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """The head is here."""
        answer, status = self._answer, self._parser.get_status_code()
        if answer is None or (100 <= status < 200 and status != 101):  # an interim reply, such as 103 Early Hints
            return
        answer.status, answer.headed, answer.ended = status, True, answer.bodiless
        self._keep = status != 101 and self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        answer = self._answer
        if answer is None or answer.ended:
            raise Garbled("there is a body where there cannot be one")
        answer.held.append(data)
        self._held_bytes += len(data)

    def on_message_complete(self) -> None:
        """The end of a reply."""
        answer = self._answer
        if answer is None:
            return
        if answer.headed:
            answer.ended = True
        else:
            answer.fields, answer.reason = [], b""
