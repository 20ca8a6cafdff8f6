"""The real world behind the gateway: one pooled HTTP client that adds nothing and hides nothing.

No redirects are followed, no cookies kept, no bodies decoded, no time-outs imposed and nothing is sent twice: whatever
the agent's own client would have seen, it must still see. Which certificates are accepted, and by which proxies the way
leads, is the agent's too (`outward.py`).
"""

from __future__ import annotations

import asyncio
import errno
import io
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Protocol, TypedDict

import aiohttp
from aiohttp.http import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from flakestorm.boundary.asking import Asking, Garbled
from flakestorm.boundary.fields import HOP_BY_HOP, end_to_end, text_of
from flakestorm.boundary.outward import Outward
from flakestorm.core.call import Call, Reply
from flakestorm.errors import CallFailed

__all__ = ["Live", "LiveBody"]

_BUFFER_BYTES = 256 * 1024
_LINE_BYTES = 256 * 1024
_LARGE_BODY_BYTES = 512 * 1024  # above this a body is handed over in pieces, so that the loop stays free
_SHORT = 512  # characters of a URL that are worth keeping in mind
_ORIGINS = 256  # how many upstreams are kept in mind
_FOREVER = aiohttp.ClientTimeout(total=None, sock_connect=None)
_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS", "TRACE")  # where no Content-Length means none, and not a forgotten one
_OURS = HOP_BY_HOP | {"accept-encoding"}  # never taken over from the call
_IDLE_S = 4.0  # shorter than the 5 s after which common servers hang up, so that a pooled connection is rarely stale


@dataclass(frozen=True, slots=True)
class _Origin:
    """An upstream.

    Args:
        request: what aiohttp's connector wants to know of it: a request, of which it looks at the address only.
        prefix: what stands before the path in the request line; empty but where a proxy reads the request.
        lines: header lines for that proxy.
    """

    request: aiohttp.ClientRequest
    prefix: str
    lines: tuple[str, ...]


class _Via(TypedDict, total=False):
    """How aiohttp is told of a proxy: both, or nothing."""

    proxy: URL
    proxy_headers: CIMultiDict[str]


class _Arriving(Protocol):
    """Where the chunks of a body arrive: aiohttp's `StreamReader`, or an `Answer`."""

    async def readany(self) -> bytes: ...


class LiveBody:
    """A live reply's body: chunks as they arrive. Closing it early drops the connection.

    Args:
        content: where the chunks arrive.
        close: lets go of the connection; one that was read to its end is already back in the pool.
        where: the upstream, for error messages.
    """

    __slots__ = ("_content", "_where", "close")

    def __init__(self, content: _Arriving, close: Callable[[], None], where: str) -> None:
        self._content, self.close, self._where = content, close, where

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._content.readany()
        except (aiohttp.ClientError, Garbled, OSError) as error:
            self.close()
            raise CallFailed("reset", f"{self._where} broke off in the middle of its reply: {_words(error)}") from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        self.close()


class Live:
    """Asks real upstreams. Open it inside the event loop that will use it.

    Connections, name resolution, proxies and TLS are aiohttp's. A request whose body is here is asked on one of them
    (`asking.py`): what aiohttp's own request does on top (defaults, cookies, redirects, a task that writes the body, a
    parser and a stream for each reply) is not wanted here and was more than a third of the gateway's work. A body that
    is large, or still being produced, is left to aiohttp, which keeps reading while it writes.

    Args:
        outward: whose certificates are accepted, and by which proxies the way leads.
    """

    def __init__(self, outward: Outward | None = None) -> None:
        self._outward = outward or Outward()
        trusted = self._outward.trust.context()
        self._connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S, ssl=trusted or True)
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            auto_decompress=False,
            timeout=_FOREVER,
            read_bufsize=_BUFFER_BYTES,
            max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES,
            trust_env=False,
        )
        # aiohttp sends GET, PUT and DELETE again on its own when a pooled connection turns out dead. There is no
        # public switch; a request that a tape shows once must have gone out once.
        self._session._retry_connection = False
        self._origins: dict[str, _Origin] = {}
        self._loop = asyncio.get_running_loop()
        self._open: set[Asking] = set()
        self._idle: dict[str, list[Asking]] = {}  # by origin, the one that was used last at the end
        self._sweeping: asyncio.TimerHandle | None = None

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._idle.clear()
        for connection in self._open:
            connection.open = False
        await self._session.close()  # which closes them, and waits until they are

    async def send(self, call: Call) -> Reply:
        """Ask the upstream; returns when its headers are here, with the whole body where that came along with them.

        Raises:
            CallFailed: nobody listens there (`refused`), or the connection broke (`reset`) or was never answered
                (`timeout`, the operating system's own).
        """
        try:
            if call.upload is not None or len(call.body) > _LARGE_BODY_BYTES:
                return await self._produce(call)
            url = call.url
            origin, target = _split(url) if len(url) <= _SHORT else _split.__wrapped__(url)
            known = self._origins.get(origin) or self._origin(origin)
            request = _spell(call, origin, known.prefix + target, known.lines)
            connection = self._waiting(origin) or await self._connect(origin, known)
            answer = await connection.ask(request, head=call.method == "HEAD")
        except (aiohttp.ClientError, Garbled, HttpProcessingError, OSError, ValueError) as error:
            raise self._failure(call.url, error) from error
        body = answer.whole()
        return Reply(
            answer.status,
            end_to_end(answer.fields),
            LiveBody(answer, answer.close, origin) if body is None else body,
            (),
            text_of(answer.reason),
        )

    def _waiting(self, origin: str) -> Asking | None:
        """A connection that is open already; the one that was used last, as it is the least likely to be given up."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.ready and connection.idle_since + _IDLE_S > self._loop.time():
                return connection
            connection.close()
        return None

    async def _connect(self, origin: str, known: _Origin) -> Asking:
        """A new connection; made by aiohttp, which is told when it is gone."""
        made = await self._connector.connect(known.request, [], _FOREVER)
        transport, former = made.transport, made.protocol
        if transport is None or former is None or transport.is_closing():
            made.close()
            raise aiohttp.ServerDisconnectedError("Server disconnected")

        def lost(error: Exception | None) -> None:
            former.connection_lost(error)
            made.close()
            self._open.discard(connection)

        connection = Asking(transport, made.close, partial(self._free, origin), lost, early=former._tail)
        transport.set_protocol(connection)
        self._open.add(connection)
        return connection

    def _free(self, origin: str, connection: Asking) -> None:
        """It may be asked again, for a while."""
        connection.idle_since = self._loop.time()
        self._idle.setdefault(origin, []).append(connection)
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(_IDLE_S, self._sweep)

    def _sweep(self) -> None:
        """Close what has been idle for too long."""
        since = self._loop.time() - _IDLE_S
        for origin, connections in list(self._idle.items()):
            for connection in connections:
                if connection.idle_since <= since:
                    connection.close()
            self._idle[origin] = [connection for connection in connections if connection.ready]
            if not self._idle[origin]:
                del self._idle[origin]
        self._sweeping = self._loop.call_later(_IDLE_S, self._sweep) if self._idle else None

    def _origin(self, origin: str) -> _Origin:
        """Keep an upstream in mind."""
        if len(self._origins) >= _ORIGINS:
            self._origins.clear()
        url = URL(origin, encoded=True)
        if url.scheme not in ("http", "https"):
            raise aiohttp.InvalidURL(url, "neither http nor https")
        via = self._proxy(url)
        plain = bool(via) and url.scheme == "http"  # then the proxy reads the request itself
        lines = [f"{name}: {value}" for name, value in via["proxy_headers"].items()] if plain else []
        request = aiohttp.ClientRequest("GET", url, **via)
        if via:  # aiohttp adds this when it connects, and then knows the pooled connection by what it has added
            via["proxy_headers"]["Host"] = request.headers["Host"]
        known = self._origins[origin] = _Origin(request, origin if plain else "", tuple(lines))
        return known

    def _proxy(self, url: URL) -> _Via:
        """The proxy on the way to an upstream, where there is one, and what it is told beside the request."""
        proxy = self._outward.proxies.to(url.scheme, url.host or "", url.explicit_port)
        if proxy is None:
            return {}
        said = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
        return {"proxy": URL(proxy.url, encoded=True), "proxy_headers": CIMultiDict(said)}

    async def _produce(self, call: Call) -> Reply:
        """Send a request whose body is large, or still being produced."""
        headers: CIMultiDict[str] = CIMultiDict()
        spelled: dict[str, str] = {}  # aiohttp keeps the last of two fields whose names differ in case only
        for name, value in call.headers:
            low = name.lower()
            if low == "content-length":
                if call.upload is None:
                    headers[name] = str(len(call.body))
            elif low not in _OURS:
                headers.add(spelled.setdefault(low, name), value)
        headers["Accept-Encoding"] = "identity"
        url = URL(call.url, encoded=True)
        via = self._proxy(url)
        if via and url.scheme == "http":
            headers.update(via["proxy_headers"])
        response = await self._session.request(
            call.method,
            url,
            headers=headers,
            allow_redirects=False,
            data=io.BytesIO(call.body) if call.upload is None else call.upload,
            chunked=None if call.upload is None else True,
            **via,
        )
        return Reply(
            status=response.status,
            headers=end_to_end(response.raw_headers),
            body=LiveBody(response.content, response.close, _split(call.url)[0]),
            reason=response.reason or "",
        )

    def _failure(self, url: str, error: BaseException) -> CallFailed:
        """What a failed attempt to reach an upstream is called."""
        where = _split(url)[0]
        if isinstance(error, TimeoutError) or getattr(error, "errno", None) == errno.ETIMEDOUT:
            return CallFailed("timeout", f"{where} did not answer: {_words(error)}")
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return CallFailed("refused", f"the certificate of {where} is not accepted: {self._doubt(error)}")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return CallFailed("refused", f"{where} cannot be reached: the proxy says {error.status} {error.message}")
        if isinstance(error, (aiohttp.ClientConnectorError, ValueError)):  # ValueError: of the URL, or a header field
            return CallFailed("refused", f"{where} cannot be reached: {_words(error)}")
        if isinstance(error, (Garbled, HttpProcessingError)):
            said = " ".join(_words(error).split())[:200]
            return CallFailed("reset", f"{where} did not answer in HTTP/1.1, and HTTP/2 is not supported: {said}")
        return CallFailed("reset", f"{where} broke the connection before it answered: {_words(error)}")

    def _doubt(self, error: aiohttp.ClientConnectorCertificateError) -> str:
        """What is wrong with a certificate, and what to do where it is right after all."""
        doubt = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
        unreadable = self._outward.trust.unreadable
        if unreadable:
            return f"{doubt}. No certificate was found in {', '.join(unreadable)}, which the environment names"
        return f"{doubt}. If it is right, name the file with its authority's certificate as SSL_CERT_FILE in agent.env"


@lru_cache(maxsize=1024)
def _split(url: str) -> tuple[str, str]:
    """A URL's origin, and the request target on it."""
    scheme, _, rest = url.partition("#")[0].partition("://")
    authority, _, path = rest.partition("/")
    if "?" in authority:
        authority, _, query = rest.partition("?")
        path = f"?{query}"
    return f"{scheme}://{authority}", f"/{path}"


def _spell(call: Call, origin: str, target: str, extra: Sequence[str] = ()) -> bytes:
    """A request whose body is here, as it goes over the wire; the fields in the call's order, then the extra lines.

    Raises:
        ValueError: something in it would start a line of its own.
    """
    lines = [f"{call.method} {target} HTTP/1.1"]
    named = sized = False
    for name, value in call.headers:
        low = name.lower()
        if low == "content-length":
            if not sized:
                lines.append(f"{name}: {len(call.body)}")
            sized = True
        elif low not in _OURS:
            named = named or low == "host"
            lines.append(f"{name}: {value}")
    if not named:
        lines.insert(1, f"Host: {origin.partition('://')[2].rpartition('@')[2]}")
    if not sized and (call.body or call.method not in _WITHOUT_BODY):
        lines.append(f"Content-Length: {len(call.body)}")
    lines += extra
    lines.append("Accept-Encoding: identity\r\n\r\n")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) + 1 or head.count("\r") != len(lines) + 1 or "\0" in head:
        raise ValueError("a line break in the request's URL or in one of its header fields")
    return head.encode(errors="surrogateescape") + call.body


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
