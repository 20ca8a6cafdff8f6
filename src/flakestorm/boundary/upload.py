"""A request's body on its way in: read whole, or passed on while the agent is still producing it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

from aiohttp import hdrs, web

from flakestorm.boundary.asked import Asked, Whole
from flakestorm.boundary.route import Lost

__all__ = ["MAX_BODY_BYTES", "Upload", "arrived"]

MAX_BODY_BYTES = 64 * 1024 * 1024
"""A larger request body is answered with 413."""


class Upload:
    """The body of one request; iterate it, or ask for the `whole`. `100 Continue` is sent when it is first read.

    It may be iterated again, by a stage that sends a call twice: what has passed already is then given at once.

    Attributes:
        seen: what has passed so far, for the recorder.
        lost: why reading it failed, once it has; the client's own doing.
    """

    __slots__ = ("_asked", "_request", "lost", "seen")

    def __init__(self, request: web.BaseRequest) -> None:
        self._request, self.seen = request, bytearray()
        self._asked = request.headers.get(hdrs.EXPECT, "").lower() != "100-continue"
        self.lost: Lost | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self.seen:
            yield bytes(self.seen)
        while chunk := await self._next():
            yield chunk

    async def whole(self) -> bytes:
        """All of it.

        Raises:
            Lost: it is too large, or broken.
        """
        content = self._request.content
        self._weigh(self._request.content_length or 0)
        while await self._next():
            if content.at_eof():
                break
        return bytes(self.seen)

    async def _next(self) -> bytes:
        if not self._asked and self._request.transport is not None:
            self._asked = True
            self._request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            chunk = await self._request.content.readany()
        except web.RequestPayloadError as error:
            self.lost = Lost(400, f"the request body is not what its headers say: {error}")
            raise self.lost from error
        self._weigh(len(self.seen) + len(chunk))
        self.seen += chunk
        return chunk

    def _weigh(self, size: int) -> None:
        if size > MAX_BODY_BYTES:
            self.lost = _too_large()
            raise self.lost


def arrived(request: Asked) -> bytes | None:
    """The whole body, where it is here already and nobody waits to be asked for it; else None.

    Raises:
        Lost: it is too large.
    """
    if isinstance(request, Whole):
        body = request.body
    else:
        content = cast(web.BaseRequest, request).content
        if not content.is_eof() or content.exception() is not None or hdrs.EXPECT in request.headers:
            return None
        body = content.read_nowait()
    if len(body) > MAX_BODY_BYTES:
        raise _too_large()
    return body


def _too_large() -> Lost:
    return Lost(413, f"the request body is larger than {MAX_BODY_BYTES // (1024 * 1024)} MiB")
