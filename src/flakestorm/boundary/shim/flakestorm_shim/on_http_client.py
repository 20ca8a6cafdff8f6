"""`http.client`, and with it everything built on it: urllib.request, urllib3, requests, botocore.

A connection that would go to `https://api.example.com` is opened to the gateway instead, in the clear, and its request
line is given the gateway's path. Its `host`, `port` and everything above it stay as they were.
"""

from __future__ import annotations

import errno
import functools
import socket
from urllib.parse import urlsplit

from .gate import FAILED, LANE, PATIENCE, Gate, lane, patience
from .notes import note

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Refused", "apply", "guard_connect"]

_BOUND = "_flakestorm_bound"
"""On a connection: the authority path it stands for on the gateway, or "" when it goes to the gateway by itself."""

_connects: set[Any] = set()
"""The patched `connect` methods. A class with another one (a Unix socket, a tunnel of its own) is left alone."""


class Refused(ConnectionRefusedError):
    """Nobody listens, as far as the agent is to know."""


def apply(module: Any, gate: Gate) -> None:
    connection = module.HTTPConnection
    putrequest, getresponse = connection.putrequest, connection.getresponse

    @functools.wraps(putrequest)
    def put(self: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        bound = _bound(self, gate) if self.sock is None else self.__dict__.get(_BOUND)
        result = putrequest(self, method, url if not bound else _path(gate, bound, url), *args, **kwargs)
        if bound is not None:
            here = lane()
            if here is not None:
                self.putheader(LANE, here)
            wait = patience(self.__dict__.get("_flakestorm_read_s", None if _is_urllib3(self) else self.timeout))
            if wait is not None:
                self.putheader(PATIENCE, wait)
        return result

    @functools.wraps(getresponse)
    def get(self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = self.__dict__.get(_BOUND)
        if bound is None:
            return getresponse(self, *args, **kwargs)
        try:
            response = getresponse(self, *args, **kwargs)
            how = response.headers.get(FAILED)
            if how is not None:
                response.close()
                self.close()
                raise _failure(self, how)
        except Exception:
            _spare_proxy(self)
            raise
        return response

    connection.putrequest, connection.getresponse = put, get
    guard_connect(connection, gate)
    if hasattr(module, "HTTPSConnection"):  # a Python without ssl has none
        guard_connect(module.HTTPSConnection, gate)


def guard_connect(cls: Any, gate: Gate) -> None:
    """Let a connection class open its connections to the gateway."""
    original = cls.__dict__.get("connect")
    if original is None:
        return

    @functools.wraps(original)
    def connect(self: Any) -> Any:
        bound = _bound(self, gate)
        if not bound:
            return original(self)
        self.sock = socket.create_connection((gate.host, gate.port), self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(self, "is_verified"):  # urllib3: nothing to warn about, this is loopback
            self.is_verified = True
        _spare_proxy(self)
        return None

    _connects.add(connect)
    cls.connect = connect


def _bound(conn: Any, gate: Gate) -> str | None:
    """What the connection stands for on the gateway; remembered on it. None: it has nothing to do with the gateway."""
    bound: str | None = None
    try:
        tunnel = getattr(conn, "_tunnel_host", None)
        if not tunnel and gate.owns(conn.host, conn.port):
            bound = ""
        elif getattr(type(conn), "connect", None) in _connects:
            host, port = (tunnel, conn._tunnel_port) if tunnel else (conn.host, conn.port)
            secure = getattr(conn, "default_port", 80) == 443
            authority = f"[{host}]" if ":" in host and host[:1] != "[" else host
            if port not in (None, 443 if secure else 80):
                authority = f"{authority}:{port}"
            bound = "https " + authority if secure else "http " + authority
    except Exception as error:
        note(f"a connection of {type(conn).__module__} is left as it is: {error!r}")
    conn.__dict__[_BOUND] = bound
    return bound


def _spare_proxy(conn: Any) -> None:
    """Tell urllib3 that the proxy was reached, or it would blame the proxy for what the world did."""
    if getattr(conn, "proxy", None) is not None and hasattr(conn, "_has_connected_to_proxy"):
        conn._has_connected_to_proxy = True


def _path(gate: Gate, bound: str, url: str) -> str:
    scheme, _, authority = bound.partition(" ")
    if url[:7].lower() == "http://" or url[:8].lower() == "https://":  # written for a proxy: it names its own target
        parts = urlsplit(url)
        scheme, authority = parts.scheme, parts.netloc.rpartition("@")[2]
        url = url[len(parts.scheme) + 3 + len(parts.netloc) :]
    return gate.path(scheme, authority, url)


def _failure(conn: Any, how: str) -> BaseException:
    """What the library would have met on its socket."""
    if how == "timeout":
        return socket.timeout("timed out")  # noqa: UP041 - not the same as TimeoutError before Python 3.10
    if how == "reset":
        return ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
    if _is_urllib3(conn):
        from urllib3.exceptions import NewConnectionError

        return NewConnectionError(conn, "Failed to establish a new connection: [Errno 111] Connection refused")
    return Refused(errno.ECONNREFUSED, "Connection refused")


def _is_urllib3(conn: Any) -> bool:
    return any(cls.__module__ == "urllib3.connection" for cls in type(conn).__mro__)
