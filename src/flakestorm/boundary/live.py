"""The real world behind the gateway: one pooled HTTP client that adds nothing and hides nothing.

No redirects are followed, no cookies kept, no bodies decoded, no time-outs imposed, no proxies read from the
environment and nothing is sent twice: whatever the agent's own client would have seen, it must still see.
"""

from __future__ import annotations

import errno
import io
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from flakestorm.core.call import Call, Headers, Reply
from flakestorm.errors import CallFailed

__all__ = ["HOP_BY_HOP", "Live", "LiveBody", "end_to_end"]

HOP_BY_HOP = frozenset(
    (
        "connection",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
"""Header fields that concern one connection only and so never cross the gateway."""

_BUFFER_BYTES = 256 * 1024
_LINE_BYTES = 256 * 1024
_LARGE_BODY_BYTES = 512 * 1024  # above this a body is handed over in pieces, so that the loop stays free
_IDLE_S = 4.0  # shorter than the 5 s after which common servers hang up, so that a pooled connection is rarely stale


def end_to_end(raw: Sequence[tuple[bytes, bytes]], *, host: str | None = None) -> Headers:
    """Header fields as text, in wire order and spelling, without those that concern one connection only.

    Args:
        raw: as they came over the wire.
        host: what Host is to say; None leaves it as it is.
    """
    drop: Collection[str] = HOP_BY_HOP
    kept: list[tuple[str, str]] = []
    for raw_name, raw_value in raw:
        name, value = _text(raw_name), _text(raw_value)
        low = name.lower()
        if low == "connection" and value.lower() not in ("close", "keep-alive"):
            drop = {*drop, *(word.strip().lower() for word in value.split(","))}
        if low in drop or low.startswith("x-flakestorm-"):
            continue
        kept.append((name, host if host is not None and low == "host" else value))
    if drop is not HOP_BY_HOP:  # Connection may name fields that came before it
        return tuple(field for field in kept if field[0].lower() not in drop)
    return tuple(kept)


class LiveBody:
    """A live reply's body: chunks as they arrive. Closing it early drops the connection."""

    __slots__ = ("_response", "_where")

    def __init__(self, response: aiohttp.ClientResponse, where: str) -> None:
        self._response, self._where = response, where

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            self.close()
            raise CallFailed("reset", f"{self._where} broke off in the middle of its reply: {_words(error)}") from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection; one that was read to its end is already back in the pool."""
        self._response.close()


class Live:
    """Asks real upstreams. Open it inside the event loop that will use it."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            read_bufsize=_BUFFER_BYTES,
            max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES,
            trust_env=False,
        )
        # aiohttp sends GET, PUT and DELETE again on its own when a pooled connection turns out dead. There is no
        # public switch; a request that a tape shows once must have gone out once.
        self._session._retry_connection = False

    async def close(self) -> None:
        await self._session.close()

    async def send(self, call: Call) -> Reply:
        """Ask the upstream; returns when its headers are here.

        Raises:
            CallFailed: nobody listens there (`refused`), or the connection broke (`reset`) or was never answered
                (`timeout`, the operating system's own).
        """
        headers, options = self._request(call)
        try:
            response = await self._session.request(
                call.method, URL(call.url, encoded=True), headers=headers, allow_redirects=False, **options
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _failure(call.url, error) from error
        return Reply(
            status=response.status,
            headers=end_to_end(response.raw_headers),
            body=LiveBody(response, _where(call.url)),
            reason=response.reason or "",
        )

    def _request(self, call: Call) -> tuple[CIMultiDict[str], dict[str, Any]]:
        """The headers to send, in the call's order, and how to send the body."""
        headers: CIMultiDict[str] = CIMultiDict()
        for name, value in call.headers:
            low = name.lower()
            if low == "content-length":
                if call.upload is None:
                    headers[name] = str(len(call.body))
            elif low != "accept-encoding" and low not in HOP_BY_HOP:
                headers.add(name, value)
        headers["Accept-Encoding"] = "identity"
        if call.upload is not None:
            return headers, {"data": call.upload, "chunked": True}
        if not call.body:
            return headers, {}
        large = len(call.body) > _LARGE_BODY_BYTES
        return headers, {"data": io.BytesIO(call.body) if large else call.body}


def _failure(url: str, error: BaseException) -> CallFailed:
    """What a failed attempt to reach an upstream is called."""
    where = _where(url)
    if isinstance(error, TimeoutError) or getattr(error, "errno", None) == errno.ETIMEDOUT:
        return CallFailed("timeout", f"{where} did not answer: {_words(error)}")
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.InvalidURL)) or not isinstance(
        error, (aiohttp.ClientError, OSError)
    ):
        return CallFailed("refused", f"{where} cannot be reached: {_words(error)}")
    return CallFailed("reset", f"{where} broke the connection before it answered: {_words(error)}")


def _where(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
