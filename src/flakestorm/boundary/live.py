"""The real world behind the gateway: one pooled HTTP client that adds nothing and hides nothing.

No redirects are followed, no cookies kept, no bodies decoded, no time-outs imposed and nothing is sent twice: whatever
the agent's own client would have seen, it must still see. Which certificates are accepted, and by which proxies the way
leads, is the agent's too (`outward.py`).
"""

from __future__ import annotations

import errno
import io
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypedDict

import aiohttp
from aiohttp.http import HttpProcessingError, RawResponseMessage
from multidict import CIMultiDict
from yarl import URL

from flakestorm.boundary.outward import Outward
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
_SHORT = 512  # characters of a name or a URL that are worth keeping in mind
_NAMES = 1024  # how many names of fields are kept in mind
_ORIGINS = 256  # how many upstreams are kept in mind
_FOREVER = aiohttp.ClientTimeout(total=None, sock_connect=None)
_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS", "TRACE")  # where no Content-Length means none, and not a forgotten one
_OURS = HOP_BY_HOP | {"accept-encoding"}  # never taken over from the call
_IDLE_S = 4.0  # shorter than the 5 s after which common servers hang up, so that a pooled connection is rarely stale

_Use = tuple[str, Literal["kept", "host", "connection", "dropped"]]
_uses: dict[bytes, _Use] = {}


def end_to_end(raw: Sequence[tuple[bytes, bytes]], *, host: str | None = None) -> Headers:
    """Header fields as text, in wire order and spelling, without those that concern one connection only.

    Args:
        raw: as they came over the wire.
        host: what Host is to say; None leaves it as it is.
    """
    kept: list[tuple[str, str]] = []
    named: list[str] = []  # fields that Connection names, before it or after
    for raw_name, raw_value in raw:
        name, use = _uses.get(raw_name) or _use_of(raw_name)
        try:
            value = raw_value.decode()
        except UnicodeDecodeError:
            value = raw_value.decode("latin-1")
        if use == "kept":
            kept.append((name, value))
        elif use == "host":
            kept.append((name, value if host is None else host))
        elif use == "connection":
            named += value.lower().split(",")
    drop = {word.strip() for word in named} - {"close", "keep-alive"}
    return tuple(field for field in kept if field[0].lower() not in drop) if drop else tuple(kept)


def _use_of(raw: bytes) -> _Use:
    """A field's name as text, and what becomes of the field; names come again and again."""
    name = _text(raw)
    low = name.lower()
    use: _Use = (name, "kept")
    if low in ("host", "connection"):
        use = (name, "host" if low == "host" else "connection")
    elif low in HOP_BY_HOP or low.startswith("x-flakestorm-"):
        use = (name, "dropped")
    if len(_uses) < _NAMES and len(raw) <= _SHORT:
        _uses[raw] = use
    return use


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


class LiveBody:
    """A live reply's body: chunks as they arrive. Closing it early drops the connection.

    Args:
        content: where the chunks arrive.
        close: lets go of the connection; one that was read to its end is already back in the pool.
        where: the upstream, for error messages.
    """

    __slots__ = ("_content", "_where", "close")

    def __init__(self, content: aiohttp.StreamReader, close: Callable[[], None], where: str) -> None:
        self._content, self.close, self._where = content, close, where

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._content.readany()
        except (aiohttp.ClientError, OSError) as error:
            self.close()
            raise CallFailed("reset", f"{self._where} broke off in the middle of its reply: {_words(error)}") from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        self.close()


class Live:
    """Asks real upstreams. Open it inside the event loop that will use it.

    Connections, name resolution, TLS and the reading of replies are aiohttp's. A request whose body is here is written
    as it stands, in one segment: what aiohttp's own request does on top (defaults, cookies, redirects, a task that
    writes the body) is not wanted here and was a third of the gateway's work. A body that is large, or still being
    produced, is left to aiohttp, which keeps reading while it writes.

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

    async def close(self) -> None:
        await self._session.close()

    async def send(self, call: Call) -> Reply:
        """Ask the upstream; returns when its headers are here, with the whole body where that came along with them.

        Raises:
            CallFailed: nobody listens there (`refused`), or the connection broke (`reset`) or was never answered
                (`timeout`, the operating system's own).
        """
        try:
            if call.upload is None and len(call.body) <= _LARGE_BODY_BYTES:
                return await self._exchange(call)
            return await self._produce(call)
        except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
            raise self._failure(call.url, error) from error

    async def _exchange(self, call: Call) -> Reply:
        """Send a request whose body is here."""
        url = call.url
        origin, target = _split(url) if len(url) <= _SHORT else _split.__wrapped__(url)
        known = self._origin(origin)
        request = _spell(call, origin, known.prefix + target, known.lines)
        connection = await self._connector.connect(known.request, [], _FOREVER)
        try:
            transport, protocol = connection.transport, connection.protocol
            if transport is None or protocol is None or transport.is_closing():
                raise aiohttp.ServerDisconnectedError("Server disconnected")
            protocol.set_response_params(
                skip_payload=call.method == "HEAD",
                read_until_eof=True,
                auto_decompress=False,
                read_bufsize=_BUFFER_BYTES,
                max_line_size=_LINE_BYTES,
                max_field_size=_LINE_BYTES,
            )
            transport.write(request)
            message, content = await protocol.read()
            while message.code < 200 and message.code != 101:  # interim replies, such as 103 Early Hints
                message, content = await protocol.read()
        except BaseException:
            connection.close()
            raise
        content.on_eof(connection.release)
        if content.is_eof():
            return _reply(message, content.read_nowait())
        return _reply(message, LiveBody(content, connection.close, origin))

    def _origin(self, origin: str) -> _Origin:
        """What is kept in mind of an upstream."""
        known = self._origins.get(origin)
        if known is None:
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
        if isinstance(error, HttpProcessingError):
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


def _reply(message: RawResponseMessage, body: bytes | LiveBody) -> Reply:
    return Reply(message.code, end_to_end(message.raw_headers), body, (), message.reason or "")


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


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
