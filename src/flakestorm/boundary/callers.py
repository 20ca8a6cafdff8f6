"""Who may call the gateway directly: programs on this machine, and no page of somebody else's that a browser has open.

The gateway listens on 127.0.0.1, but every web page that is open on this machine can send requests there, and a page
whose name is made to resolve to 127.0.0.1 (DNS rebinding) may read the answers too. It would still need the token. So
that the token is not all there is, a request on one of the gateway's own URLs must be made out to a name that only this
machine or its network gives, and must not come from a page that has any other.

What the shim or a proxy setting sends is made out to whom the agent wanted to reach, so there is nothing to check.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

__all__ = ["foreign"]

_LOCAL = (".localhost", ".internal", ".local")
"""Ends of names that public DNS never gives (RFC 6761, RFC 6762 and ICANN's reservation of `internal`)."""

_LONG = 512  # characters that are not worth keeping in mind

_AUTHORITY = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::\d*)?")


def foreign(host: str, origin: str | None) -> str:
    """Why a request is not one that a program on this machine makes; empty where it is.

    Args:
        host: the Host field; empty where there is none.
        origin: the Origin field, which browsers send.
    """
    if len(host) + len(origin or "") > _LONG:
        return _foreign.__wrapped__(host, origin)
    return _foreign(host, origin)


@lru_cache(maxsize=64)  # an agent calls by the same few names
def _foreign(host: str, origin: str | None) -> str:
    if host and not _is_local(host):
        return f"a request to this gateway is made out to 127.0.0.1 or localhost, not to {host[:200]!r}"
    if origin is not None and not _is_local(origin.partition("://")[2]):
        return f"a page of {origin[:200]!r} may not use this gateway"
    return ""


def _is_local(authority: str) -> bool:
    """Whether nobody could have this name, or this address for a name, given out by public DNS."""
    found = _AUTHORITY.fullmatch(authority.lower())
    if found is None:
        return False
    name = (found["name"] or "").rstrip(".")
    try:
        ipaddress.ip_address(found["address"] or name)
    except ValueError:
        return bool(name) and ("." not in name or name.endswith(_LOCAL))
    return True
