"""The seam in urllib3, and so in requests, botocore and everything else that is built on it.

`HTTPConnectionPool._make_request` is one attempt on one connection: `urlopen`, its public caller, runs retries and
redirects around it, so here each attempt and each hop is an exchange of its own, and what goes wrong is met by the
agent's own retry policy. Raw failures (`ConnectionResetError`, `TimeoutError`) are raised where a socket would raise
them and become urllib3's exceptions by urllib3's own hand.

The connection given to an attempt stays with the reply the agent gets, which returns it to the pool as usual, also
when nothing was ever sent on it. Pools that speak to a Unix socket or a named pipe are left alone.
"""

from __future__ import annotations

import errno
import functools
import http.client
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.connectionpool import HTTPConnectionPool, connection_from_url
from urllib3.exceptions import NewConnectionError, ReadTimeoutError

from flakestorm.boundary.patience import Patience
from flakestorm.boundary.seams.exchange import Body, Exchange, Live, Moment, Spell
from flakestorm.boundary.seams.fields import phrase
from flakestorm.boundary.seams.patches import Patch
from flakestorm.boundary.session import Crossing, current, outside
from flakestorm.core.call import Call, Headers, Reply, header, with_header, without_headers
from flakestorm.errors import CallFailed, Misuse

__all__ = ["patches"]

_PIECE_BYTES = 65536
_OPTIONS = frozenset(inspect.signature(urllib3.HTTPResponse).parameters)


def patches(lib: ModuleType) -> list[Patch]:
    """What to change in urllib3.

    Raises:
        Misuse: it is older than 2.2.
    """
    if not hasattr(urllib3.HTTPResponse, "read1"):
        raise Misuse(
            f"urllib3 {lib.__version__} is too old for its calls to be held; install urllib3 2.2 or newer, "
            "or launch the agent as a process of its own (agent.type: command or http)"
        )
    return [Patch(HTTPConnectionPool, "_make_request", _wrap)]


def _wrap(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def _make_request(self: Any, conn: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        crossing = current()
        if crossing is None or _local(self):
            return original(self, conn, method, url, *args, **kwargs)
        given = signature.bind(self, conn, method, url, *args, **kwargs).arguments
        return _Attempt(original, self, conn, given).cross(crossing)

    return _make_request


def _local(pool: Any) -> bool:
    name = type(pool).__name__.lower()
    return "unix" in name or "npipe" in name


class _Attempt:
    """One attempt: the arguments of `_make_request`, understood as a call."""

    def __init__(self, original: Callable[..., Any], pool: Any, conn: Any, given: dict[str, Any]) -> None:
        self.original, self.pool, self.conn, self.given = original, pool, conn, given
        self.method, self.target = given["method"], given["url"]
        self.asked_once = False

    def cross(self, crossing: Crossing) -> Any:
        call = self.made = self._call(crossing)
        exchange = Exchange(self._send, self._spell(), functools.partial(Patience, crossing.clock, call.patience_s))
        reply = exchange.cross(crossing.pipeline(call))
        return _response(self, reply, _File(reply, exchange))

    def _call(self, crossing: Crossing) -> Call:
        body = self.given.get("body")
        if isinstance(body, str):
            body = body.encode()
        held = bytes(body) if isinstance(body, (bytes, bytearray, memoryview)) else b""
        return Call(
            self.method.upper(),
            self.target if "://" in self.target else f"{_origin(self.pool)}{self.target}",
            _headers(self.given.get("headers")),
            held,
            body if body is not None and not isinstance(body, (bytes, bytearray, memoryview)) else None,
            lane=crossing.lane("urllib3"),
            patience_s=self._patience_s(),
        )

    def _patience_s(self) -> float | None:
        timeout = self.pool._get_timeout(self.given.get("timeout", urllib3.Timeout.DEFAULT_TIMEOUT))
        timeout.start_connect()
        return urllib3.Timeout.resolve_default_timeout(timeout.read_timeout)

    def _send(self, asked: Call) -> Reply:
        pool, conn, target = self.pool, self.conn, self.target
        if asked.url != self.made.url:
            parts = urlsplit(asked.url)
            if f"{parts.scheme}://{parts.netloc}" != _origin(pool):
                pool, conn = connection_from_url(asked.url), None
            target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        extra = self.asked_once or conn is None
        if extra:  # the agent's own connection may still owe an answer
            conn = pool._new_conn()
        self.asked_once = True
        with outside():
            response = self.original(pool, conn, asked.method, target, **self._outgoing(asked))
        live = Live(_pieces(response), functools.partial(_release, response, conn, extra), response)
        return Reply(response.status, _headers(response.headers), live, reason=response.reason or "")

    def _outgoing(self, asked: Call) -> dict[str, Any]:
        made, given = self.made, self.given
        options = {k: v for k, v in given.items() if k not in ("self", "conn", "method", "url", "httplib_request_kw")}
        headers = with_header(asked.headers, "Accept-Encoding", "identity")  # what is recorded can be read and cut
        if asked.body != made.body or asked.upload is not made.upload:
            options["body"], options["chunked"] = asked.body, False
            headers = without_headers(headers, "transfer-encoding", "content-length")
            headers = with_header(headers, "Content-Length", str(len(asked.body)))
        if asked.url != made.url and header(headers, "host") is not None:
            headers = with_header(headers, "Host", urlsplit(asked.url).netloc)
        options["headers"] = urllib3.HTTPHeaderDict(headers)
        options["response_conn"], options["preload_content"] = None, False
        return options

    def _spell(self) -> Spell:
        pool, conn, target, read_s = self.pool, self.conn, self.target, self.made.patience_s

        def spell(failed: CallFailed, moment: Moment) -> BaseException:
            if failed.how == "timeout" and moment == "call":
                return ReadTimeoutError(pool, target, f"Read timed out. (read timeout={read_s})")
            if failed.how == "timeout":
                return TimeoutError("timed out")
            if failed.how == "refused" and moment == "call":
                why = f"[Errno {errno.ECONNREFUSED}] {os.strerror(errno.ECONNREFUSED)}"
                return NewConnectionError(conn, f"Failed to establish a new connection: {why}")
            return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))

        return spell


def _origin(pool: Any) -> str:
    host = f"[{pool.host}]" if ":" in pool.host else pool.host
    default = {"http": 80, "https": 443}.get(pool.scheme)
    return f"{pool.scheme}://{host}" + ("" if pool.port in (None, default) else f":{pool.port}")


def _headers(headers: Mapping[Any, Any] | None) -> Headers:
    return tuple([(_text(name), _text(value)) for name, value in (headers or {}).items()])


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _pieces(response: Any) -> Iterator[bytes]:
    """The body as it arrives, not decoded."""
    while piece := response.read1(_PIECE_BYTES, decode_content=False):
        yield piece


def _release(response: Any, conn: Any, extra: bool) -> None:
    unread = not response.isclosed()
    response.close()
    if unread or extra:  # bytes are still coming, or the connection belongs to no pool
        conn.close()


class _File(Body):
    """The reply's body as the file that urllib3 reads from: what `http.client.HTTPResponse` is to a live one."""

    __slots__ = ("_rest", "msg", "reason", "status", "version")

    def __init__(self, reply: Reply, exchange: Exchange) -> None:
        super().__init__(reply, exchange)
        self._rest = b""
        self.status, self.version, self.reason = reply.status, 11, reply.reason
        self.msg = http.client.HTTPMessage()  # where cookie jars look
        for name, value in reply.headers:
            self.msg[name] = value

    def isclosed(self) -> bool:
        return not self._open and not self._rest

    closed = property(isclosed)

    def close(self) -> None:
        self._rest = b""
        super().close()

    def read1(self, amt: int | None = None) -> bytes:
        """The next bytes that are there, at most `amt`; empty at the end."""
        if amt == 0:
            return b""
        if not self._rest:
            self._rest = next((chunk for chunk in self if chunk), b"")
        if amt is None or amt < 0 or amt >= len(self._rest):
            piece, self._rest = self._rest, b""
        else:
            piece, self._rest = self._rest[:amt], self._rest[amt:]
        return piece

    def read(self, amt: int | None = None) -> bytes:
        """As many bytes as asked for, or up to the end."""
        parts: list[bytes] = []
        missing = -1 if amt is None or amt < 0 else amt
        while missing != 0 and (piece := self.read1(missing)):
            parts.append(piece)
            missing -= len(piece) if missing > 0 else 0
        return b"".join(parts)


class CrossedResponse(urllib3.HTTPResponse):
    """A reply that came through the pipeline.

    Where the length is unknown it streams what is there, as urllib3 does for chunked bodies: its own way of reading
    chunks looks behind the file at the socket.
    """

    def stream(self, amt: int | None = 2**16, decode_content: bool | None = None) -> Iterator[bytes]:  # type: ignore[override]
        if self.headers.get("content-length") is not None and not self.chunked:
            yield from super().stream(amt, decode_content)
        else:
            yield from self.read_chunked(amt, decode_content)

    def read_chunked(self, amt: int | None = None, decode_content: bool | None = None) -> Iterator[bytes]:  # type: ignore[override]
        while piece := self.read1(amt, decode_content):
            yield piece


def _response(attempt: _Attempt, reply: Reply, file: _File) -> CrossedResponse:
    given, live = attempt.given, reply.body.response if isinstance(reply.body, Live) else None
    options: dict[str, Any] = {
        "headers": urllib3.HTTPHeaderDict(reply.headers),
        "status": reply.status,
        "version": getattr(live, "version", 11),
        "version_string": getattr(live, "version_string", "HTTP/1.1"),
        "reason": reply.reason or phrase(reply.status),
        "preload_content": given.get("preload_content", True),
        "decode_content": given.get("decode_content", True),
        "original_response": file,
        "pool": attempt.pool,
        "connection": given.get("response_conn"),
        "msg": file.msg,
        "retries": given.get("retries"),
        "enforce_content_length": False,  # a fault may have changed the length
        "request_method": attempt.method,
        "request_url": attempt.target,
    }
    return CrossedResponse(file, **{name: value for name, value in options.items() if name in _OPTIONS})
