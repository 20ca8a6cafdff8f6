"""`httpx` and `httpx2`: the network transports, below clients, redirects, cookies and authentication.

Mock, ASGI and WSGI transports have no network and are left alone, and so are Unix sockets.
"""

from __future__ import annotations

import functools

from .descent import busy
from .gate import FAILED, LANE, PATIENCE, Gate, lane, patience
from .notes import note

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from typing import Any

__all__ = ["apply"]

_PORTS = {"http": 80, "https": 443}


def apply(module: Any, gate: Gate) -> None:
    handle = module.HTTPTransport.handle_request
    handle_async = module.AsyncHTTPTransport.handle_async_request

    @functools.wraps(handle)
    def handle_request(self: Any, request: Any) -> Any:
        sent = _led(module, gate, self, request)
        response = handle(self, sent)
        how = response.headers.get(FAILED) if sent is not request else None
        if how is not None:
            response.close()
            raise _failure(module, how, request)
        return response

    @functools.wraps(handle_async)
    async def handle_async_request(self: Any, request: Any) -> Any:
        sent = _led(module, gate, self, request)
        with busy():
            response = await handle_async(self, sent)
        how = response.headers.get(FAILED) if sent is not request else None
        if how is not None:
            await response.aclose()
            raise _failure(module, how, request)
        return response

    module.HTTPTransport.handle_request = handle_request
    module.AsyncHTTPTransport.handle_async_request = handle_async_request


def _led(module: Any, gate: Gate, transport: Any, request: Any) -> Any:
    """The request to send in this one's place; this one itself when it has nothing to do with the gateway."""
    try:
        url = request.url
        pool = getattr(transport, "_pool", None)
        if url.scheme not in _PORTS or getattr(pool, "_uds", None):
            return request
        port = url.port or _PORTS[url.scheme]
        proxy = getattr(pool, "_proxy_url", None)
        by_gateway = proxy is not None and gate.owns(proxy.host.decode("ascii"), proxy.port)
        if proxy is not None and not by_gateway:
            note(f"calls through the proxy {proxy.host.decode('ascii')} are not seen")
            return request
        if not gate.owns(url.host, port) and not (by_gateway and url.scheme == "http"):
            target = url.raw_path.decode("ascii")
            url = module.URL(gate.url(url.scheme, url.netloc.decode("ascii"), target))
        headers = list(request.headers.raw)
        here = lane()
        if here is not None:
            headers.append((LANE.encode(), here.encode()))
        wait = patience((request.extensions.get("timeout") or {}).get("read"))
        if wait is not None:
            headers.append((PATIENCE.encode(), wait.encode()))
        return module.Request(
            request.method, url, headers=headers, stream=request.stream, extensions=request.extensions
        )
    except Exception as error:
        note(f"a call of {module.__name__} is left as it is: {error!r}")
        return request


def _failure(module: Any, how: str, request: Any) -> Any:
    if how == "timeout":
        return module.ReadTimeout("The read operation timed out", request=request)
    if how == "reset":
        return module.ReadError("[Errno 104] Connection reset by peer", request=request)
    return module.ConnectError("[Errno 111] Connection refused", request=request)
