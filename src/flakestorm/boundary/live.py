"""The real world behind the gateway: one pooled HTTP client that adds nothing and hides nothing.

No redirects are followed, no cookies kept, no bodies decoded, no time-outs imposed, no proxies read from the
environment and nothing is sent twice: whatever the agent's own client would have seen, it must still see.
"""

from __future__ import annotations

import errno
import io
from collections.abc import AsyncIterator, Callable, Collection, Sequence

import aiohttp
from aiohttp.http import HttpProcessingError, RawResponseMessage
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
_ORIGINS = 256  # how many upstreams are kept in mind
_FOREVER = aiohttp.ClientTimeout(total=None, sock_connect=None)
_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS", "TRACE")  # where no Content-Length means none, and not a forgotten one
_OURS = HOP_BY_HOP | {"accept-encoding"}  # never taken over from the call
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
        try:
            name, value = raw_name.decode(), raw_value.decode()
        except UnicodeDecodeError:
            name, value = _text(raw_name), _text(raw_value)
        low = name.lower()
        if low in drop:
            if low == "connection" and value.lower() not in ("close", "keep-alive"):
                drop = {*drop, *(word.strip().lower() for word in value.split(","))}
        elif low == "host" and host is not None:
            kept.append((name, host))
        elif not low.startswith("x-flakestorm-"):
            kept.append((name, value))
    if drop is not HOP_BY_HOP:  # Connection may name fields that came before it
        return tuple(field for field in kept if field[0].lower() not in drop)
    return tuple(kept)


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
    """

    def __init__(self) -> None:
        self._connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S)
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
        self._origins: dict[str, aiohttp.ClientRequest] = {}

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
            raise _failure(call.url, error) from error

    async def _exchange(self, call: Call) -> Reply:
        """Send a request whose body is here."""
        origin, target = _split(call.url)
        request = _spell(call, origin, target)
        connection = await self._connector.connect(self._origin(origin), [], _FOREVER)
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

    def _origin(self, origin: str) -> aiohttp.ClientRequest:
        """What aiohttp's connector wants to know of an upstream: a request, of which it looks at the address only."""
        known = self._origins.get(origin)
        if known is None:
            if len(self._origins) >= _ORIGINS:
                self._origins.clear()
            url = URL(origin, encoded=True)
            if url.scheme not in ("http", "https"):
                raise aiohttp.InvalidURL(url, "neither http nor https")
            known = self._origins[origin] = aiohttp.ClientRequest("GET", url)
        return known

    async def _produce(self, call: Call) -> Reply:
        """Send a request whose body is large, or still being produced."""
        headers: CIMultiDict[str] = CIMultiDict()
        for name, value in call.headers:
            low = name.lower()
            if low == "content-length":
                if call.upload is None:
                    headers[name] = str(len(call.body))
            elif low not in _OURS:
                headers.add(name, value)
        headers["Accept-Encoding"] = "identity"
        response = await self._session.request(
            call.method,
            URL(call.url, encoded=True),
            headers=headers,
            allow_redirects=False,
            data=io.BytesIO(call.body) if call.upload is None else call.upload,
            chunked=None if call.upload is None else True,
        )
        return Reply(
            status=response.status,
            headers=end_to_end(response.raw_headers),
            body=LiveBody(response.content, response.close, _split(call.url)[0]),
            reason=response.reason or "",
        )


def _reply(message: RawResponseMessage, body: bytes | LiveBody) -> Reply:
    return Reply(message.code, end_to_end(message.raw_headers), body, (), message.reason or "")


def _split(url: str) -> tuple[str, str]:
    """A URL's origin, and the request target on it."""
    scheme, _, rest = url.partition("#")[0].partition("://")
    authority, _, path = rest.partition("/")
    if "?" in authority:
        authority, _, query = rest.partition("?")
        path = f"?{query}"
    return f"{scheme}://{authority}", f"/{path}"


def _spell(call: Call, origin: str, target: str) -> bytes:
    """A request whose body is here, as it goes over the wire; the fields in the call's order.

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
    lines.append("Accept-Encoding: identity\r\n\r\n")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) + 1 or head.count("\r") != len(lines) + 1 or "\0" in head:
        raise ValueError("a line break in the request's URL or in one of its header fields")
    return head.encode(errors="surrogateescape") + call.body


def _failure(url: str, error: BaseException) -> CallFailed:
    """What a failed attempt to reach an upstream is called."""
    where = _split(url)[0]
    if isinstance(error, TimeoutError) or getattr(error, "errno", None) == errno.ETIMEDOUT:
        return CallFailed("timeout", f"{where} did not answer: {_words(error)}")
    if isinstance(error, (aiohttp.ClientConnectorError, ValueError)):  # ValueError: of the URL, or of a header field
        return CallFailed("refused", f"{where} cannot be reached: {_words(error)}")
    return CallFailed("reset", f"{where} broke the connection before it answered: {_words(error)}")


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
