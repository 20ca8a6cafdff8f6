"""How the gateway reaches the world on an agent's behalf: as the agent itself would have, had it been left alone.

An agent that is launched is told to use the gateway as its proxy. What its variables said before is where the gateway
goes on to: HTTP_PROXY, HTTPS_PROXY and ALL_PROXY name the proxies, NO_PROXY what is reached without. Upstreams on
loopback are never asked for through a proxy, which could not reach them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed leaves it out

from msgspec import field

from flakestorm.boundary.trust import Trust, trust_of
from flakestorm.core.record import Record
from flakestorm.wire.classify import is_loopback

__all__ = ["Outward", "Proxies", "Proxy", "outward_of"]


class Proxy(Record, frozen=True):
    """A proxy on the way to an upstream.

    Args:
        url: scheme, host and port; no user, no password.
        authorization: the value of `Proxy-Authorization`; empty where it asks for none.
    """

    url: str
    authorization: str = ""


class Proxies(Record, frozen=True):
    """The proxies that were set before the gateway took their place.

    Args:
        http, https: the URL of the proxy for upstreams of each scheme; empty for none.
        exempt: as NO_PROXY says it: hosts, domains (with or without a leading dot) and `*`, separated by commas.
    """

    http: str = ""
    https: str = ""
    exempt: str = ""

    def to(self, scheme: str, host: str, port: int | None = None) -> Proxy | None:
        """The proxy on the way to an upstream, or None.

        Args:
            scheme: `http` or `https`.
            host: without brackets.
            port: where it is not the scheme's own.

        Raises:
            ValueError: there is a proxy, but not one that can be used; the message says which kinds can.
        """
        proxy = self.https if scheme == "https" else self.http
        authority = host if port is None else f"{host}:{port}"
        if not proxy or is_loopback(host) or proxy_bypass_environment(authority, {"no": self.exempt}):
            return None
        parts = urlsplit(proxy)
        where = parts.netloc.rpartition("@")[2]
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"it is behind the proxy {where!r}, but only http:// and https:// proxies can be used")
        if parts.username is None:
            return Proxy(f"{parts.scheme}://{where}")
        said = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return Proxy(f"{parts.scheme}://{where}", f"Basic {base64.b64encode(said.encode()).decode()}")


class Outward(Record, frozen=True):
    """What it takes to reach the world.

    Args:
        trust: whose certificates are accepted.
        proxies: the proxies on the way.
    """

    trust: Trust = field(default_factory=Trust)
    proxies: Proxies = field(default_factory=Proxies)


def outward_of(env: Mapping[str, str], caller: Mapping[str, str]) -> Outward:
    """How an agent launched with the variables of `env` over those of `caller` would reach the world."""

    def said(name: str) -> str:
        for spelling in (name.lower(), name):  # the small one first, as curl, Python and Node do
            if text := env.get(spelling, caller.get(spelling, "")).strip():
                return text if "://" in text or name == "NO_PROXY" else f"http://{text}"
        return ""

    every = said("ALL_PROXY")
    proxies = Proxies(said("HTTP_PROXY") or every, said("HTTPS_PROXY") or every, said("NO_PROXY"))
    return Outward(trust_of(env, caller), proxies)
