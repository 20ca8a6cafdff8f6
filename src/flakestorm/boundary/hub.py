"""`Hub`: everything that holds an agent's boundary, behind the engine's `Boundary` port.

The gateway is imported and started for the first launched agent, and the in-process seams are imported and put in when
the first line is entered in this process, so a command pays for what it uses.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flakestorm.boundary.session import Crossing
from flakestorm.core.pipeline import Interceptor

if TYPE_CHECKING:  # an HTTP server and its client: 0.1 s that agents in this process, or not launched, do without
    from flakestorm.boundary.channel import Channel
    from flakestorm.boundary.gateway import Gateway
    from flakestorm.boundary.seams.functions import Held

__all__ = ["Hub"]


class _Line(Crossing):
    """A crossing that has the in-process seams put in when it is first entered in this process."""

    __slots__ = ("_hold",)

    def __init__(self, run: str, pipeline: Interceptor, hold: Callable[[], None]) -> None:
        super().__init__(run, pipeline)
        self._hold = hold

    @contextmanager
    def active(self) -> Iterator[None]:
        self._hold()
        with super().active():
            yield


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
        self._installing = threading.Lock()  # a line may be entered in any thread
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
        from flakestorm.boundary.seams.functions import hold

        held = hold(name, function, pairs=pairs)
        self._tools.setdefault(name, []).append(held)
        return held

    def line(self, run: str, pipeline: Interceptor) -> Crossing:
        """Open the crossing of one run."""
        return _Line(run, pipeline, self._hold)

    def _hold(self) -> None:
        """Put the in-process seams in, once."""
        if self._installed:
            return
        with self._installing:
            if not self._installed:
                from flakestorm.boundary import inprocess

                inprocess.install()
                self._installed = True

    async def gateway(self, port: int = 0) -> Gateway:
        """The gateway, started by the first call; `port` matters to that one only.

        Raises:
            Misuse: the port cannot be had.
        """
        async with self._starting:
            if self._gateway is None:
                from flakestorm.boundary.gateway import Gateway

                gateway = Gateway()
                await gateway.start(port)
                self._gateway = gateway
            return self._gateway

    async def channel(self, env: Mapping[str, str]) -> Channel:
        """A channel for an instance that will be launched with these variables over the caller's; see `open_channel`.

        Raises:
            Misuse: a base-URL variable holds no usable URL.
        """
        from flakestorm.boundary.channel import open_channel

        return open_channel(await self.gateway(), env, self._environ)

    async def close(self) -> None:
        """Stop the gateway, take the seams out and let go of the tools."""
        for tools in self._tools.values():
            for held in tools:
                held.release()
        if self._installed:
            from flakestorm.boundary import inprocess

            self._installed = False
            inprocess.uninstall()
        if self._gateway is not None:
            gateway, self._gateway = self._gateway, None
            await gateway.close()
