"""The HTTP client flakestorm itself uses to talk to agents: one request, one reply, over a connection of its own.

It adds nothing to a run. No proxies from the environment, no cookies from one run to the next, no limit on connections,
and a fresh connection for each request: a kept-alive one that the agent had just closed would look like a crash.

HTTP/1.1 is spoken by h11, which knows no sockets; the socket is an asyncio transport. Both are there at once: importing
a full client would take longer than all the rest of a small command.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from base64 import b64encode
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Literal
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

import h11

from flakestorm.core.call import Headers, header
from flakestorm.core.record import Record
from flakestorm.version import __version__

__all__ = ["ExchangeFailed", "Response", "Talk", "connected", "exchange", "head_of", "target_of"]

CONNECT_LIMIT_S = 10.0
HEAD_LIMIT_BYTES = 256 * 1024

_PORTS = {"http": 80, "https": 443}
_OURS = frozenset({"content-length", "transfer-encoding", "connection"})
_LONE_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})")


class ExchangeFailed(Exception):
    """There is no whole reply.

    Args:
        how: `refused` (nobody took the connection), `timeout` (nobody took it in time), `dropped` (it was closed before
            any reply), `invalid` (what came is not HTTP), `broken` (the reply ended before its end).
        detail: what happened, in words.
    """

    def __init__(self, how: Literal["refused", "timeout", "dropped", "invalid", "broken"], detail: str) -> None:
        self.how, self.detail = how, detail
        super().__init__(detail)


class Response(Record, frozen=True):
    """A reply.

    Args:
        status, reason, headers: its head.
        body: what came of it, at most a little more than was asked for.
        whole: whether that is all of it.
    """

    status: int
    reason: str
    headers: Headers
    body: bytes
    whole: bool


async def exchange(
    method: str,
    url: str,
    *,
    params: Sequence[tuple[str, str]] = (),
    headers: Headers = (),
    body: bytes = b"",
    limit_bytes: int,
) -> Response:
    """Send a request and wait for its reply. Cancelling this closes the connection at once.

    Args:
        method, url, headers, body: the request; a user and password in the URL become basic authentication.
        params: what is added to the URL's query.
        limit_bytes: how much of the reply's body is wanted. With 0 it is not waited for.

    Raises:
        ExchangeFailed: no connection, or no whole reply; `how` says which.
        ValueError: the URL is none, or a header cannot be sent.
    """
    parts = urlsplit(url)
    head = _request(method, parts, tuple(params), tuple(headers), len(body))
    transport, talk = await connected(parts, limit_bytes)
    try:
        transport.writelines(talk.asking(head, body))  # not waited for: an agent may answer before it has read all
        return await talk.reply
    finally:
        transport.abort()


async def connected(parts: SplitResult, limit_bytes: int) -> tuple[asyncio.Transport, Talk]:
    """A connection of its own to this URL's host.

    Raises:
        ExchangeFailed: there is none.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_LIMIT_S):
            return await loop.create_connection(
                lambda: Talk(limit_bytes),
                _name(parts),
                parts.port or _PORTS[parts.scheme],
                ssl=_trust() if parts.scheme == "https" else None,
            )
    except TimeoutError as error:
        raise ExchangeFailed("timeout", f"no connection within {CONNECT_LIMIT_S:g} s") from error
    except (OSError, UnicodeError) as error:  # UnicodeError: a host that is no name
        raise ExchangeFailed("refused", str(error) or type(error).__name__) from error


class Talk(asyncio.Protocol):
    """One request and its reply on one connection."""

    def __init__(self, limit_bytes: int) -> None:
        self.reply: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._limit = limit_bytes
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT_BYTES)
        self._head: h11.Response | None = None
        self._parts: list[bytes] = []
        self._length = 0
        self._heard = False

    def asking(self, head: h11.Request, body: bytes) -> list[bytes]:
        """The whole request, as it is spelled on the wire."""
        events = (head, *((h11.Data(data=body),) if body else ()), h11.EndOfMessage())
        return [self._http.send(event) or b"" for event in events]

    def data_received(self, data: bytes) -> None:
        self._heard = True
        self._take(data)

    def eof_received(self) -> None:
        self._take(b"")

    def connection_lost(self, error: Exception | None) -> None:
        if not self.reply.done():
            self._fail(_said(error) if error else "the connection was closed")

    def _take(self, data: bytes) -> None:
        if self.reply.done():
            return
        try:
            self._http.receive_data(data)
            while not self.reply.done():
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return
                self._hear(event)
        except h11.RemoteProtocolError as error:
            if data:
                self._settle(ExchangeFailed("broken" if self._head else "invalid", str(error)))
            else:  # the end, too soon
                self._fail("the connection was closed")

    def _hear(self, event: object) -> None:
        match event:
            case h11.Response():
                self._head = event
                if not self._limit:
                    self._answer(whole=False)
            case h11.Data():
                self._parts.append(bytes(event.data))
                self._length += len(event.data)
                if self._length > self._limit:
                    self._answer(whole=False)
            case h11.EndOfMessage():
                self._answer(whole=True)
            case h11.ConnectionClosed():
                self._fail("the connection was closed")

    def _answer(self, *, whole: bool) -> None:
        head = self._head
        if head is None:  # h11 gives no body without one
            return
        headers = tuple((name.decode("latin-1"), value.decode("utf-8", "replace")) for name, value in head.headers)
        reason = head.reason.decode("utf-8", "replace")
        self._settle(Response(head.status_code, reason, headers, b"".join(self._parts), whole))

    def _fail(self, detail: str) -> None:
        self._settle(ExchangeFailed("broken" if self._heard else "dropped", detail))

    def _settle(self, outcome: Response | ExchangeFailed) -> None:
        if self.reply.done():
            return
        if isinstance(outcome, Response):
            self.reply.set_result(outcome)
        else:
            self.reply.set_exception(outcome)


@lru_cache(maxsize=64)  # the runs of a command differ in their bodies
def _request(
    method: str, url: SplitResult, params: tuple[tuple[str, str], ...], headers: Headers, length: int
) -> h11.Request:
    """The request's head, for a body of this length. Where the caller names a header, that is sent and not ours.

    Raises:
        ValueError: the URL or a header cannot be sent.
    """
    sent = head_of(url, headers)
    if length or method not in ("GET", "HEAD"):
        sent.append(("Content-Length", str(length)))
    sent.append(("Connection", "close"))
    try:
        return h11.Request(
            method=method,
            target=target_of(url, params),
            headers=[(name.encode(), value.encode()) for name, value in sent],
        )
    except h11.LocalProtocolError as error:
        raise ValueError(f"{error}: one of the names {', '.join(name for name, _ in sent)}, or its value") from error


def head_of(url: SplitResult, headers: Headers) -> list[tuple[str, str]]:
    """The headers of a request, without those of its framing.

    Raises:
        ValueError: the URL is none.
    """
    if url.scheme not in _PORTS or not url.hostname:
        raise ValueError(f"{url.geturl()!r} is not an HTTP URL")
    ours = [
        ("Host", _host(url)),
        ("User-Agent", f"flakestorm/{__version__}"),
        ("Accept", "*/*"),
        ("Accept-Encoding", "gzip, deflate"),
    ]
    if url.username is not None:
        pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
        ours.append(("Authorization", f"Basic {b64encode(pair.encode()).decode()}"))
    given = [(name, value.strip()) for name, value in headers if name.lower() not in _OURS]
    return [(name, value) for name, value in ours if header(headers, name) is None] + given


def target_of(url: SplitResult, params: Sequence[tuple[str, str]]) -> str:
    """What the request line names: path and query, encoded as far as they are not yet."""
    query = "&".join(part for part in (_quoted(url.query, "?"), urlencode(params)) if part)
    return (_quoted(url.path, "") or "/") + (f"?{query}" if query else "")


def _name(url: SplitResult) -> str:
    host = url.hostname or ""
    return host if host.isascii() else host.encode("idna").decode()


def _host(url: SplitResult) -> str:
    host = f"[{url.hostname}]" if ":" in _name(url) else _name(url)
    return host if url.port in (None, _PORTS[url.scheme]) else f"{host}:{url.port}"


def _quoted(text: str, more: str) -> str:
    """Percent-encoded as far as it is not yet."""
    return quote(_LONE_PERCENT.sub("%25", text), safe=f"/%:@!$&'()*+,;=~[]{more}")


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
