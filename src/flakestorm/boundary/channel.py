"""`Channel`: what a launched agent instance is given so that its calls cross the boundary."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from flakestorm.boundary.gateway import Gateway
from flakestorm.boundary.mcp_servers import wrapped
from flakestorm.boundary.passage import Passage
from flakestorm.boundary.providers import variables
from flakestorm.boundary.session import Crossing
from flakestorm.engine.ports import Line
from flakestorm.errors import Misuse

__all__ = ["SHIM", "Channel", "open_channel"]

SHIM = Path(__file__).parent / "shim"
"""The folder that goes on PYTHONPATH of launched agents."""


class Channel:
    """A launched agent instance's way to the gateway (the engine's `Channel`). Made by `open_channel`."""

    def __init__(self, gateway: Gateway, passage: Passage, env: Mapping[str, str]) -> None:
        self._gateway, self._passage, self._env = gateway, passage, dict(env)

    @property
    def env(self) -> Mapping[str, str]:
        """Variables to set in the instance's environment, over those it has. See `open_channel`."""
        return self._env

    @property
    def token(self) -> str:
        return self._passage.token

    def bind(self, line: Line) -> AbstractContextManager[None]:
        """While entered, the instance's traffic crosses on this line; outside, it passes unrecorded.

        Raises:
            Misuse: the line was not made by a hub, or another one is bound.
        """
        if not isinstance(line, Crossing):
            raise Misuse(f"a channel can only be bound to a line that Hub.line() made, not to {line!r}")
        return self._passage.bind(line)

    def close(self) -> None:
        """The instance is gone; its token is no longer served."""
        self._gateway.dismiss(self._passage)


def open_channel(gateway: Gateway, env: Mapping[str, str], caller: Mapping[str, str]) -> Channel:
    """A channel for an instance that will be launched with the variables of `env` over those of `caller`.

    Its `env` holds: the providers' base-URL variables; HTTP_PROXY and HTTPS_PROXY in both spellings; NO_PROXY and
    no_proxy, empty, because an exemption would hide calls (an empty value is how a variable is taken back);
    FLAKESTORM_RUN and FLAKESTORM_GATEWAY; every FLAKESTORM_MCP_<NAME> that names a server, which is wrapped or
    re-pointed; and PYTHONPATH with the shim in front of what was there.

    Raises:
        Misuse: a base-URL variable holds no usable URL, or a server's command line cannot be split into words.
    """
    passage = gateway.admit()
    try:
        given, passage.upstreams = variables(env, caller, f"{gateway.url(passage)}/p")
        servers, origins = wrapped({**caller, **env}, gateway.url(passage))
    except Misuse:
        gateway.dismiss(passage)
        raise
    given.update(servers)
    passage.upstreams.update(origins)
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        given[name] = given[name.lower()] = gateway.proxy(passage)
    given["NO_PROXY"] = given["no_proxy"] = ""
    given["FLAKESTORM_RUN"] = passage.token
    given["FLAKESTORM_GATEWAY"] = gateway.url(passage)
    before = env.get("PYTHONPATH", caller.get("PYTHONPATH", ""))
    given["PYTHONPATH"] = os.pathsep.join(filter(None, (str(SHIM), before)))
    return Channel(gateway, passage, given)
