"""`Hub`: everything that holds an agent's boundary, behind the engine's `Boundary` port.

The gateway is started by the first launched agent and the in-process seams go in with the first line, so a command
pays for what it uses.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flakestorm.boundary import inprocess
from flakestorm.boundary.channel import Channel, open_channel
from flakestorm.boundary.gateway import Gateway
from flakestorm.boundary.seams.functions import Held, hold
from flakestorm.boundary.session import Crossing
from flakestorm.core.pipeline import Interceptor

__all__ = ["Channel", "Hub"]


class Hub:
    """Holds the boundary of every agent in this process and of every agent it launches.

    Args:
        environ: the caller's environment, which names the upstreams that an agent's own environment does not;
            `os.environ` when None.
    """

    def __init__(self, *, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._gateway: Gateway | None = None
        self._starting = asyncio.Lock()  # the first instances are launched side by side, and share one gateway
        self._installed = False
        self._tools: dict[str, list[Held]] = {}

    @property
    def tools(self) -> Sequence[str]:
        """Names of the tools whose functions are or were held."""
        return tuple(self._tools)

    def tool(self, name: str, function: Callable[..., Any], *, pairs: bool = False) -> Held:
        """Hold a function of the agent's as a tool; see `hold`. It is let go of by `close` at the latest.

        Raises:
            Misuse: it is held already, as another tool.
        """
        held = hold(name, function, pairs=pairs)
        self._tools.setdefault(name, []).append(held)
        return held

    def line(self, run: str, pipeline: Interceptor) -> Crossing:
        """Open the crossing of one run."""
        if not self._installed:
            self._installed = True
            inprocess.install()
        return Crossing(run, pipeline)

    async def gateway(self, port: int = 0) -> Gateway:
        """The gateway, started by the first call; `port` matters to that one only.

        Raises:
            Misuse: the port cannot be had.
        """
        async with self._starting:
            if self._gateway is None:
                gateway = Gateway()
                await gateway.start(port)
                self._gateway = gateway
            return self._gateway

    async def channel(self, env: Mapping[str, str]) -> Channel:
        """A channel for an instance that will be launched with these variables over the caller's; see `open_channel`.

        Raises:
            Misuse: a base-URL variable holds no usable URL.
        """
        return open_channel(await self.gateway(), env, self._environ)

    async def close(self) -> None:
        """Stop the gateway, take the seams out and let go of the tools."""
        for tools in self._tools.values():
            for held in tools:
                held.release()
        if self._installed:
            self._installed = False
            inprocess.uninstall()
        if self._gateway is not None:
            gateway, self._gateway = self._gateway, None
            await gateway.close()
