"""The HTTP client flakestorm itself uses to talk to agents: one request, one reply, over a connection of its own.

It adds nothing to a run. No proxies from the environment, no cookies from one run to the next, no limit on connections,
and a fresh connection for each request: a kept-alive one that the agent had just closed would look like a crash.

Replies are read by httptools (llhttp, the parser of Node), which knows no sockets; the socket is an asyncio transport.
Both are there at once: importing a full client would take longer than all the rest of a small command.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Literal
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from flakestorm.core.call import Headers, header
from flakestorm.core.record import Record
from flakestorm.core.regex import later
from flakestorm.version import __version__

__all__ = ["ExchangeFailed", "Response", "Talk", "connected", "exchange", "head_of", "target_of"]

CONNECT_LIMIT_S = 10.0
HEAD_LIMIT_BYTES = 256 * 1024
"""How long the head of a reply may be, with all interim replies before it; and what stands around its body."""

CHUNK_BYTES = 16
"""How much may stand around each byte of a body beyond that: its chunk's size, written with zeros, and line ends."""

_PORTS = {"http": 80, "https": 443}
_OURS = frozenset({"content-length", "transfer-encoding", "connection"})
_LONE_PERCENT = later(r"%(?![0-9a-fA-F]{2})")
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_NOT_IN_VALUES = frozenset("\0\n\v\f\r")


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
    head = _head(method, parts, tuple(params), tuple(headers), len(body))
    transport, talk = await connected(parts, method, limit_bytes)
    try:
        transport.writelines((head, body))  # not waited for: an agent may answer before it has read all
        return await talk.reply
    finally:
        transport.abort()


async def connected(parts: SplitResult, method: str, limit_bytes: int) -> tuple[asyncio.Transport, Talk]:
    """A connection of its own to this URL's host, on which a request of this method will be sent.

    Raises:
        ExchangeFailed: there is none.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_LIMIT_S):
            return await loop.create_connection(
                lambda: Talk(limit_bytes, bodiless=method == "HEAD"),
                _name(parts),
                parts.port or _PORTS[parts.scheme],
                ssl=_trust() if parts.scheme == "https" else None,
            )
    except TimeoutError as error:
        raise ExchangeFailed("timeout", f"no connection within {CONNECT_LIMIT_S:g} s") from error
    except (OSError, UnicodeError) as error:  # UnicodeError: a host that is no name
        raise ExchangeFailed("refused", str(error) or type(error).__name__) from error


class Talk(asyncio.Protocol):
    """One reply on one connection. What servers get wrong and common clients let pass, it lets pass.

    Args:
        limit_bytes: how much of the reply's body is wanted; with 0 it is answered by the head.
        bodiless: whether the reply has no body, whatever its head says of one.
    """

    def __init__(self, limit_bytes: int, *, bodiless: bool) -> None:
        self.reply: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._limit, self._bodiless = limit_bytes, bodiless
        self._parser = parser = HttpResponseParser(self)
        parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_chunked_length=True,
            lenient_version=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._reason = b""
        self._fields: list[tuple[str, str]] = []
        self._status = 0  # 0 until the head is here
        self._parts: list[bytes] = []
        self._length = self._came = 0

    def data_received(self, data: bytes) -> None:
        """More of the reply."""
        if self.reply.done():
            return
        self._came += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:  # that nobody has asked for
            self._settle(ExchangeFailed("invalid", "it goes on in another protocol"))
        except HttpParserError as error:
            self._settle(ExchangeFailed("broken" if self._status else "invalid", str(error.__context__ or error)))
        if self._came > HEAD_LIMIT_BYTES + self._length * (1 + CHUNK_BYTES):
            how: Literal["broken", "invalid"] = "broken" if self._status else "invalid"
            self._settle(ExchangeFailed(how, f"more than {HEAD_LIMIT_BYTES // 1024} KB that are no body"))

    def eof_received(self) -> None:
        """The agent will say no more."""
        if self._status and self._open_ended:
            self._answer(whole=True)
        else:
            self._fail("the connection was closed")

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        if not self.reply.done():
            self._fail(_said(error) if error else "the connection was closed")
        del self._parser  # it holds this, and there may be many before the garbage collector comes by

    @property
    def _open_ended(self) -> bool:
        """Whether the end of the connection is the end of the body: nothing in the head says another."""
        return not any(name in ("content-length", "transfer-encoding") for name, _ in self._fields)

    # What the parser calls.

    def on_status(self, reason: bytes) -> None:
        """The reason phrase, or a part of it."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head, or of a trailer."""
        if not self._status:
            self._fields.append((name.decode("latin-1").lower(), value.decode("utf-8", "replace").strip(" \t")))

    def on_headers_complete(self) -> None:
        """A head is here: that of the reply, or of an interim one such as 103 Early Hints."""
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            return
        codings = [value.lower() for name, value in self._fields if name == "transfer-encoding"]
        if codings and codings != ["chunked"]:  # the body would not be what the agent means
            self._settle(ExchangeFailed("invalid", "Transfer-Encoding can be 'chunked' and nothing else"))
        if any("\0" in value for _, value in self._fields):
            self._settle(ExchangeFailed("invalid", "there is a NUL in its header"))
        self._status = status
        if self._bodiless or not self._limit:
            self._answer(whole=self._bodiless)

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        if self.reply.done():
            return
        self._parts.append(data)
        self._length += len(data)
        if self._length > self._limit:
            self._answer(whole=False)

    def on_message_complete(self) -> None:
        """The end of a reply."""
        if self._status:
            self._answer(whole=True)
        else:
            self._reason, self._fields = b"", []

    def _answer(self, *, whole: bool) -> None:
        reason = self._reason.decode("utf-8", "replace")
        self._settle(Response(self._status, reason, tuple(self._fields), b"".join(self._parts), whole))

    def _fail(self, detail: str) -> None:
        self._settle(ExchangeFailed("broken" if self._came else "dropped", detail))

    def _settle(self, outcome: Response | ExchangeFailed) -> None:
        if self.reply.done():
            return
        if isinstance(outcome, Response):
            self.reply.set_result(outcome)
        else:
            self.reply.set_exception(outcome)


@lru_cache(maxsize=64)  # the runs of a command differ in their bodies
def _head(method: str, url: SplitResult, params: tuple[tuple[str, str], ...], headers: Headers, length: int) -> bytes:
    """The request's head, for a body of this length. Where the caller names a header, that is sent and not ours.

    Raises:
        ValueError: the URL or a header cannot be sent.
    """
    sent = head_of(url, headers)
    sent.sort(key=lambda pair: pair[0].lower() != "host")  # it comes first
    if length or method not in ("GET", "HEAD"):
        sent.append(("Content-Length", str(length)))
    sent.append(("Connection", "close"))
    if not method or not _TOKEN.issuperset(method):
        raise ValueError(f"{method!r} is no method")
    for name, value in sent:
        if not name or not _TOKEN.issuperset(name):
            raise ValueError(f"{name!r} is no name of a header")
        if not _NOT_IN_VALUES.isdisjoint(value):
            raise ValueError(f"the value of the header {name} has control characters in it")
    if sum(name.lower() == "host" for name, _ in sent) > 1:
        raise ValueError("there is more than one Host among the headers")
    lines = [f"{method} {target_of(url, params)} HTTP/1.1", *(f"{name}: {value}" for name, value in sent)]
    return "\r\n".join((*lines, "", "")).encode()


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
    text = _LONE_PERCENT.sub("%25", text) if "%" in text else text
    return quote(text, safe=f"/%:@!$&'()*+,;=~[]{more}")


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
