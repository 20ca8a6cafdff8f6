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
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from flakestorm.boundary.session import Crossing
from flakestorm.core.clock import Clock
from flakestorm.core.draws import Draws
from flakestorm.core.pipeline import Interceptor

if TYPE_CHECKING:  # an HTTP server and its client: 0.1 s that agents in this process, or not launched, do without
    from flakestorm.boundary.census import Census
    from flakestorm.boundary.channel import Channel
    from flakestorm.boundary.draws import Drawing
    from flakestorm.boundary.gateway import Gateway
    from flakestorm.boundary.lending import Loan
    from flakestorm.boundary.seams.functions import Held

__all__ = ["Hub"]


class _Line(Crossing):
    """A crossing that has the in-process seams put in when it is first entered in this process."""

    __slots__ = ("_hold",)

    def __init__(
        self,
        run: str,
        pipeline: Interceptor,
        clock: Clock | None,
        hold: Callable[[], None],
        seams: dict[str, int],
        draws: Drawing | None,
    ) -> None:
        super().__init__(run, pipeline, clock, draws=draws)
        self._hold, self.seams = hold, seams

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
        stores: folders in which a standing gateway may have been announced.
        draws: every run's clock and random draws follow from these; None leaves them real.
        replaying: the clocks go by what `recall` says, and not by what happens, until told to `go_live`.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        stores: Sequence[Path] = (),
        draws: Draws | None = None,
        replaying: bool = False,
    ) -> None:
        self.draws, self._replaying = draws, replaying
        self._environ = os.environ if environ is None else environ
        self._stores = stores
        self._loans: list[tuple[Gateway, Loan]] = []
        self.borrowed = ""
        """The address of the standing gateway whose port is or was borrowed."""
        self._gateway: Gateway | None = None
        self._starting = asyncio.Lock()  # the first instances are launched side by side, and share one gateway
        self._installed = False
        self._drawing: WeakValueDictionary[str, Drawing] = WeakValueDictionary()
        self._installing = threading.Lock()  # a line may be entered in any thread
        self._tools: dict[str, list[Held]] = {}
        self._seams: dict[str, int] = {}  # of all lines; the ways of all passages too
        self._variables: dict[str, str] = {}

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

    def line(self, run: str, pipeline: Interceptor, clock: Clock | None = None) -> Crossing:
        """Open the crossing of one run; `clock` is its time."""
        return _Line(run, pipeline, clock, self.hold, self._seams, self.drawing(run))

    def drawing(self, run: str) -> Drawing | None:
        """The virtual draws of a run, whose line may still be to be opened; None where draws are real."""
        if self.draws is None:
            return None
        from flakestorm.boundary.draws import Drawing

        return self._drawing.setdefault(run, Drawing(self.draws, live=not self._replaying))

    def hold(self) -> None:
        """Put the in-process seams in, once. The first line entered does so; what an agent imports before that has its
        names replaced, but keeps the methods that it took from their classes (`default_factory=datetime.now`)."""
        if self._installed:
            return
        with self._installing:
            if not self._installed:
                from flakestorm.boundary import inprocess

                inprocess.install()
                if self.draws is not None:
                    from flakestorm.boundary import draws

                    draws.install()
                self._installed = True

    async def gateway(self, port: int = 0) -> Gateway:
        """The gateway, started by the first call; `port` matters to that one only.

        Raises:
            Misuse: the port cannot be had.
        """
        async with self._starting:
            if self._gateway is None:
                from flakestorm.boundary.gateway import Gateway
                from flakestorm.boundary.intercept import interception

                gateway = Gateway(interception=interception())
                await gateway.start(port)
                self._gateway = gateway
            return self._gateway

    async def channel(self, env: Mapping[str, str]) -> Channel:
        """A channel for an instance that will be launched with these variables over the caller's; see `open_channel`.

        Raises:
            Misuse: a base-URL variable holds no usable URL.
        """
        from flakestorm.boundary.channel import open_channel

        return self._counted(open_channel(await self.gateway(), env, self._environ, self.draws))

    def _counted(self, channel: Channel) -> Channel:
        from flakestorm.boundary.census import led

        channel.passage.ways = self._seams
        self._variables = led(channel.env, channel.passage)
        return channel

    def census(self) -> Census:
        """What was seen so far, and where the calls of the agent opened last are led."""
        from flakestorm.boundary.census import IN_PROCESS, OUTSIDE, Census

        counts = {name: self._seams.get(name, 0) for name in (*IN_PROCESS, *OUTSIDE)}
        return Census(counts, self._variables, self.borrowed)

    async def standing(self) -> Channel | None:
        """The channel of an agent that somebody else started and that calls through a `flakestorm gateway`.

        Its port is borrowed until `close`. None where no such gateway stands.

        Raises:
            AgentUnreachable: another run is using it.
        """
        from flakestorm.boundary.announcing import places

        for url in places(self._environ, self._stores):
            from flakestorm.boundary.lending import borrow

            loan = await asyncio.to_thread(borrow, url)
            if loan is None:
                continue
            from flakestorm.boundary.channel import Channel
            from flakestorm.boundary.gateway import Gateway
            from flakestorm.boundary.intercept import interception

            gateway = Gateway(interception=interception(loan.authority) if loan.authority else None)
            self._loans.append((gateway, loan))
            await gateway.start(listener=loan.listener)
            self.borrowed = f"http://127.0.0.1:{gateway.port}"
            passage = gateway.admit(loan.token)
            passage.upstreams, passage.outward = loan.upstreams, loan.outward
            return self._counted(Channel(gateway, passage, loan.variables))
        return None

    async def close(self) -> None:
        """Stop the gateway, give back what was borrowed, take the seams out and let go of the tools."""
        for tools in self._tools.values():
            for held in tools:
                held.release()
        if self._installed:
            from flakestorm.boundary import inprocess

            self._installed = False
            inprocess.uninstall()
            if self.draws is not None:
                from flakestorm.boundary import draws

                draws.uninstall()
        if self._gateway is not None:
            gateway, self._gateway = self._gateway, None
            await gateway.close()
        while self._loans:
            gateway, loan = self._loans.pop()
            await gateway.close()
            loan.close()
