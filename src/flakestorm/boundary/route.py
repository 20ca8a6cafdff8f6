"""Where a request that reached the gateway wants to go, read from its request line alone.

Five ways lead in; every one carries the run token, so that traffic of concurrent agents is told apart::

    /r/TOKEN/p/PROVIDER/REST            a provider's base-URL variable
    /r/TOKEN/u/SCHEME/AUTHORITY/REST    a hard-coded URL, redirected by the shim
    /r/TOKEN/m/NAME                     a wrapped MCP server (`flakestorm mcp -- COMMAND`)
    http://AUTHORITY/REST               the plain HTTP proxy (token in Proxy-Authorization)
    CONNECT AUTHORITY                   a tunnel (token in Proxy-Authorization), and what comes `within` it

Paths and queries are kept byte for byte: signed URLs and odd escapes must reach the upstream as they were written.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache
from typing import Literal
from urllib.parse import unquote

from flakestorm.core.record import Record

__all__ = ["Lost", "Route", "locate", "within"]

_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._~%-]+)(?::\d{1,5})?")
_ABSOLUTE = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]+)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_BARE = re.compile(r"(?P<host>[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*):(?P<port>\d{1,5})")  # IPv6 without its brackets
_SHORT = 512  # characters of a request target that are worth keeping in mind
_DEFAULT_PORT = {"http": ":80", "https": ":443"}


class Lost(Exception):
    """A request the gateway cannot lead anywhere: the status and the words to answer it with."""

    def __init__(self, status: int, message: str) -> None:
        self.status, self.message = status, message
        super().__init__(message)


class Route(Record, frozen=True):
    """Where a request goes.

    Args:
        token: the run token it came with.
        way: by a base-URL variable, by the shim, as a proxy request, as a tunnel, or from an MCP wrapper.
        url: the absolute upstream URL; for `base` what follows the provider's origin, for `tunnel` `https://HOST:PORT`,
            for `mcp` the server's name.
        provider: for `base`, the provider's name.
        own: for `tunnel`, whether it leads to the gateway itself.
    """

    token: str
    way: Literal["base", "shim", "proxy", "tunnel", "mcp"]
    url: str
    provider: str = ""
    own: bool = False


def locate(method: str, target: str, authorization: str | None, own: frozenset[str], host: str | None = None) -> Route:
    """Read a request line.

    Args:
        method, target: of the request line, unchanged.
        authorization: the Proxy-Authorization header, if there is one.
        host: the Host header, if there is one. httpx leaves out the brackets of an IPv6 address in what it asks of a
            proxy, but not there.
        own: the gateway's own authorities, lower case; a proxied request for one of them is a direct one.

    Raises:
        Lost: it leads nowhere; carries the status and the message to answer with.
    """
    if method == "CONNECT":
        if bare := _BARE.fullmatch(target):
            target = f"[{bare['host']}]:{bare['port']}"
        if not _AUTHORITY.fullmatch(target) or ":" not in target.rpartition("]")[2]:
            raise Lost(400, f"CONNECT needs HOST:PORT, not {target!r}")
        if target.lower() in own:
            return Route("", "tunnel", f"https://{target}", own=True)
        return Route(_proxy_token(authorization), "tunnel", f"https://{target}")
    if target[:1] != "/" and (found := _ABSOLUTE.fullmatch(target)):
        authority = found["authority"].rpartition("@")[2]
        if host and host[:1] == "[" and host.replace("[", "").replace("]", "") == authority:
            authority = host
        if authority.lower() in own:
            return locate(method, found["rest"] or "/", None, own)
        return Route(_proxy_token(authorization), "proxy", _url(found["scheme"], authority, found["rest"], own))
    return _led(target, own) if len(target) <= _SHORT else _led.__wrapped__(target, own)


@lru_cache(maxsize=1024)  # an agent calls few addresses, each of them often
def _led(target: str, own: frozenset[str]) -> Route:
    head, _, query = target.partition("?")
    parts = head.split("/", 6)
    tail = f"?{query}" if query or target.endswith("?") else ""
    if len(parts) >= 5 and parts[:2] == ["", "r"] and parts[3] == "p":
        path = "/".join(parts[5:])
        return Route(parts[2], "base", (f"/{path}" if len(parts) > 5 else "") + tail, provider=parts[4])
    if len(parts) == 5 and parts[:2] == ["", "r"] and parts[3] == "m" and parts[4]:
        return Route(parts[2], "mcp", unquote(parts[4]))
    if len(parts) >= 6 and parts[:2] == ["", "r"] and parts[3] == "u":
        rest = (f"/{parts[6]}" if len(parts) > 6 else "") + tail
        return Route(parts[2], "shim", _url(parts[4], unquote(parts[5]), rest, own))
    raise Lost(
        404,
        "this is flakestorm's gateway; it serves /r/TOKEN/p/PROVIDER/... and /r/TOKEN/u/SCHEME/HOST/..., "
        "and HTTP proxy requests. Use the URLs that `flakestorm gateway` prints",
    )


def within(token: str, scheme: str, host: str, method: str, target: str) -> Route:
    """Read a request line that came inside a tunnel.

    Args:
        token: the run token that the tunnel was opened with.
        scheme: `https` where there is TLS inside, else `http`.
        host: where the tunnel leads, `HOST:PORT`.
        method, target: of the request line, unchanged.

    Raises:
        Lost: it is no request to that host.
    """
    if method == "CONNECT" or target[:1] != "/":
        raise Lost(400, f"a request inside a tunnel to {host} needs a path, not {method} {target!r}")
    return Route(token, "proxy", f"{scheme}://{host.removesuffix(_DEFAULT_PORT[scheme])}{target}")


def _url(scheme: str, authority: str, rest: str, own: frozenset[str]) -> str:
    if scheme.lower() not in ("http", "https") or not _AUTHORITY.fullmatch(authority):
        raise Lost(400, f"{scheme}://{authority} is no http or https upstream")
    if authority.lower() in own:
        raise Lost(508, f"{authority} is the gateway itself; a request through it would never leave")
    return f"{scheme.lower()}://{authority}{rest if rest[:1] == '/' else '/' + rest}"


def _proxy_token(authorization: str | None) -> str:
    """The password of `Basic` proxy credentials: the proxy URL is `http://x:TOKEN@127.0.0.1:PORT`."""
    scheme, _, value = (authorization or "").partition(" ")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            pass
    raise Lost(407, "flakestorm's gateway needs the run token: use the whole proxy URL, http://x:TOKEN@127.0.0.1:PORT")
