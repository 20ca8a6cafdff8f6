"""`Channel`: what a launched agent instance is given so that its calls cross the boundary."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from flakestorm.boundary.draws import Dial
from flakestorm.boundary.gateway import Gateway
from flakestorm.boundary.mcp_servers import wrapped
from flakestorm.boundary.outward import outward_of
from flakestorm.boundary.passage import Passage
from flakestorm.boundary.providers import variables
from flakestorm.boundary.session import Crossing
from flakestorm.core.draws import Draws
from flakestorm.engine.ports import Line
from flakestorm.errors import Misuse

__all__ = ["SETTLE_S", "SHIM", "Channel", "open_channel"]

SETTLE_S = 0.5
"""How long an instance may take after its answer, or after its end, until nothing of it is under way."""

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
    def passage(self) -> Passage:
        """The instance's right to pass the gateway."""
        return self._passage

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

    async def settled(self, *, gone: bool = False) -> bool:
        """Whether no call of the instance is under way any more; `SETTLE_S` is how long that is waited for. Of one that
        is `gone`, every connection is waited for, so that all it did has been recorded."""
        return await self._passage.settled(SETTLE_S, gone=gone)

    def close(self) -> None:
        """The instance is gone; its token is no longer served."""
        self._gateway.dismiss(self._passage)
        if self._passage.dial is not None:
            self._passage.dial.close()


def open_channel(
    gateway: Gateway, env: Mapping[str, str], caller: Mapping[str, str], draws: Draws | None = None
) -> Channel:
    """A channel for an instance that will be launched with the variables of `env` over those of `caller`.

    Its `env` holds: the providers' base-URL variables; HTTP_PROXY and HTTPS_PROXY in both spellings (ALL_PROXY where it
    was set), and NODE_USE_ENV_PROXY; NO_PROXY and no_proxy, empty, because an exemption would hide calls (an empty
    value takes a variable back); where TLS is intercepted, the variables by which clients find whom to trust;
    FLAKESTORM_RUN and FLAKESTORM_GATEWAY; every FLAKESTORM_MCP_<NAME> that names a server, which is wrapped or
    re-pointed; PYTHONPATH with the shim in front of what was there; and FLAKESTORM_LANES. With `draws`, also
    FLAKESTORM_DRAWS, and PYTHONHASHSEED where it says nothing yet.

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
    passage.outward = outward_of(env, caller)
    proxied = ["HTTP_PROXY", "HTTPS_PROXY"]
    if any(env.get(name, caller.get(name)) for name in ("ALL_PROXY", "all_proxy")):
        proxied.append("ALL_PROXY")
    for name in proxied:
        given[name] = given[name.lower()] = gateway.proxy(passage)
    given["NO_PROXY"] = given["no_proxy"] = ""
    given["NODE_USE_ENV_PROXY"] = "1"  # Node 24 and later heed the two above, in fetch and in http, only if told to
    if gateway.interception is not None:
        given.update(gateway.interception.variables(passage.outward.trust, {**caller, **env}))
    given["FLAKESTORM_RUN"] = passage.token
    given["FLAKESTORM_GATEWAY"] = gateway.url(passage)
    before = env.get("PYTHONPATH", caller.get("PYTHONPATH", ""))
    given["PYTHONPATH"] = os.pathsep.join(filter(None, (str(SHIM), before)))
    passage.dial = Dial(draws)
    given.update(passage.dial.variables)
    if draws is not None and env.get("PYTHONHASHSEED", caller.get("PYTHONHASHSEED", "random")) in ("", "random"):
        given["PYTHONHASHSEED"] = draws.hash_seed
    return Channel(gateway, passage, given)
