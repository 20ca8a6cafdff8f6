"""What was seen at a boundary, seam by seam: how many calls came in by each, and where the providers' calls are led.

Only calls of a run count. What an agent does outside its runs passes unrecorded.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from flakestorm.boundary.passage import Passage
from flakestorm.boundary.providers import PROVIDERS
from flakestorm.tape import redact

__all__ = ["IN_PROCESS", "OUTSIDE", "UNSEEN", "Census", "led", "unseen"]

IN_PROCESS = {
    "httpx": "httpx",
    "httpx2": "httpx2",
    "aiohttp": "aiohttp",
    "urllib3": "urllib3 (and requests)",
    "mcp": "MCP over stdio",
    "function": "functions (agent.tools)",
}
"""The seams of an agent in this process, and what to call them."""

OUTSIDE = {
    "base": "gateway, by a provider's variable",
    "proxy": "gateway, as HTTP proxy",
    "tunnel": "gateway, as tunnel (not looked into)",
    "shim": "shim (hard-coded URLs)",
    "wrapped": "MCP wrapper",
}
"""The seams of an agent in a process of its own."""

UNSEEN = ("websockets", "websocket", "grpc", "pycurl")
"""Clients that no seam sees, by their module's name."""


@dataclass(frozen=True, slots=True)
class Census:
    """What was seen.

    Args:
        seams: calls by seam, for every seam that there is; the names are those of `IN_PROCESS` and `OUTSIDE`.
        variables: the providers' variables that the agent was given, each with the upstream its calls are led to.
        gateway: the address of the standing gateway that was used, empty where none was.
    """

    seams: Mapping[str, int]
    variables: Mapping[str, str]
    gateway: str = ""


def led(env: Mapping[str, str], passage: Passage) -> dict[str, str]:
    """The providers' variables among these, and the upstream behind each, without anything secret.

    Args:
        env: variables as the agent got them.
        passage: knows the upstreams.
    """
    names = [name for provider in PROVIDERS for name in provider.variables if name in env]
    found: dict[str, str] = {}
    for name in names:
        place, _, rest = env[name].partition("/p/")[2].partition("/")
        origin = passage.upstreams.get(place, "")
        found[name] = redact.url(f"{origin}/{rest}" if rest else origin)
    return found


def unseen() -> tuple[str, ...]:
    """Clients that have been imported here and whose calls no seam sees."""
    return tuple(name for name in UNSEEN if name in sys.modules)
