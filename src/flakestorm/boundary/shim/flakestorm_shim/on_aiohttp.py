"""`aiohttp`: the request as it is built for one hop, below redirects and cookies.

`ClientRequest.url` is where the connection goes and what the request line says; `original_url` is what the response and
everything above it see. Only the former is changed. Connectors other than TCP, and websockets, are left alone.
"""

from __future__ import annotations

import contextvars
import errno
import functools

from .descent import busy
from .gate import FAILED, LANE, PATIENCE, Gate, lane, patience
from .notes import note

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from typing import Any

__all__ = ["apply"]

_read_s: contextvars.ContextVar[Any] = contextvars.ContextVar("flakestorm_read_s", default=None)


def apply(module: Any, gate: Gate) -> None:
    session, request, response = module.ClientSession, module.ClientRequest, module.ClientResponse
    send, init, start = session._request, request.__init__, response.start

    @functools.wraps(send)
    async def _request(self: Any, *args: Any, **kwargs: Any) -> Any:
        token = _read_s.set(_read_timeout(self, kwargs.get("timeout")))
        try:
            with busy():
                return await send(self, *args, **kwargs)
        finally:
            _read_s.reset(token)

    @functools.wraps(init)
    def build(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        try:
            _lead(module, gate, self, kwargs.get("session"))
        except Exception as error:
            note(f"a call of aiohttp is left as it is: {error!r}")

    @functools.wraps(start)
    async def start_response(self: Any, connection: Any) -> Any:
        result = await start(self, connection)
        how = self.headers.get(FAILED)
        if how is not None:
            raise _failure(module, how, connection)
        return result

    session._request, request.__init__, response.start = _request, build, start_response


def _lead(module: Any, gate: Gate, request: Any, session: Any) -> None:
    url = request.url
    connector = getattr(session, "connector", None)
    if url.scheme not in ("http", "https") or not isinstance(connector, module.TCPConnector):
        return
    if request.headers.get("Upgrade", "").lower() == "websocket":
        note(f"the websocket to {url.host} is not seen")
        return
    proxy = request.proxy
    by_gateway = proxy is not None and gate.owns(proxy.host, proxy.port)
    if not gate.owns(url.host, url.port) and not (by_gateway and url.scheme == "http"):
        authority = url.raw_authority.rpartition("@")[2]
        request.url = type(url)(gate.url(url.scheme, authority, url.raw_path_qs), encoded=True)
        request.proxy = request.proxy_auth = request.proxy_headers = None
    here = lane()
    if here is not None:
        request.headers[LANE] = here
    wait = patience(_read_s.get())
    if wait is not None:
        request.headers[PATIENCE] = wait


def _read_timeout(session: Any, timeout: Any) -> Any:
    """How long this session waits for bytes, in seconds; None for ever."""
    if isinstance(timeout, (int, float)):
        return timeout
    if not hasattr(timeout, "sock_read"):
        timeout = getattr(session, "_timeout", None)
    limits = [getattr(timeout, name, None) for name in ("sock_read", "total")]
    return min((limit for limit in limits if limit), default=None)


def _failure(module: Any, how: str, connection: Any) -> Any:
    if how == "timeout":
        kind = getattr(module, "SocketTimeoutError", module.ServerTimeoutError)
        return kind("Timeout on reading data from socket")
    if how == "reset":
        return module.ClientOSError(errno.ECONNRESET, "Connection reset by peer")
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    return module.ClientConnectorError(connection._key, refused)
