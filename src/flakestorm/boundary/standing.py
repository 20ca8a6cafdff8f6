"""A gateway that stands on its own, for agents that somebody else starts: `flakestorm gateway`.

Everything that crosses it is recorded on one tape for as long as it stands, in memory that does not grow with it, and
broken where faults were asked for. While a command judges the agent, the port is lent to that command (`lending.py`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from flakestorm.boundary.announcing import announce, withdraw
from flakestorm.boundary.channel import open_channel
from flakestorm.boundary.gateway import Gateway
from flakestorm.boundary.intercept import interception
from flakestorm.boundary.lending import Lender
from flakestorm.boundary.providers import PROVIDERS
from flakestorm.boundary.session import Crossing
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import chain
from flakestorm.core.site import Sites
from flakestorm.errors import TapeError
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.redact import Redactor, key_of, secrets_of
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify

__all__ = ["Standing"]


class Standing:
    """A standing gateway. Use it inside one event loop: `start`, then `close`.

    Args:
        tape: the file to record on; its folder is made.
        store: the folder in which commands look for the gateway.
        environ: the caller's environment, which names the upstreams.
        tools: (name, URL glob) pairs that name plain-HTTP tools.
        schedule: faults to play.
        seed: their random choices follow from it.
        redact: what the config adds to the secrets that stay off the tape.
    """

    def __init__(
        self,
        *,
        tape: Path,
        store: Path,
        environ: Mapping[str, str],
        tools: Sequence[tuple[str, str]] = (),
        schedule: Schedule | None = None,
        seed: int = 0,
        redact: Sequence[str] = (),
    ) -> None:
        self.tape, self._store, self._environ = tape, store, environ
        self._tools, self._schedule, self._seed = tools, schedule or Schedule(), seed
        self._ledger = Ledger()
        self._redactor = Redactor(key_of(seed), known=secrets_of(environ), patterns=redact)
        self._recorder: Recorder | None = None
        self._open = AsyncExitStack()
        self.variables: Mapping[str, str] = {}
        """The providers' base-URL variables, as an agent is to be given them."""
        self.environment: Mapping[str, str] = {}
        """Every variable that launched agents get, those included."""
        self.port = 0
        self.lends = ""
        """Why runs cannot use this gateway; empty where they can."""

    @property
    def exchanges(self) -> int:
        """How many calls have been recorded."""
        return 0 if self._recorder is None else self._recorder.count

    @property
    def fired(self) -> int:
        """How many faults have fired."""
        return len(self._ledger.fired)

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1 and record.

        Args:
            port: 0 for any free one.

        Raises:
            Misuse: the port cannot be had, or a provider's variable holds no usable URL.
            TapeError: the tape cannot be written.
        """
        try:
            await self._start(port)
        except BaseException:
            await self._open.aclose()
            raise

    async def _start(self, port: int) -> None:
        gateway = Gateway(interception=interception())
        self._open.push_async_callback(gateway.close)
        await gateway.start(port)
        channel = open_channel(gateway, {}, self._environ)
        self._open.callback(channel.close)
        recorder = self._recorder = self._record()
        self._open.callback(recorder.close)
        stages = [classify(tools=self._tools, sites=Sites()), recorder.outer]
        if self._schedule.planned:
            stages.append(self._schedule.stage(Choices(self._seed, "gateway", 0, 1), self._ledger))
        line = Crossing("gateway", chain(*stages, recorder.inner))
        self._open.enter_context(channel.bind(line))
        self._open.push_async_callback(gateway.close)  # before the tape: what is still open ends on it as broken off
        providers = {name for provider in PROVIDERS for name in provider.variables}
        self.environment = channel.env
        self.variables = {name: value for name, value in channel.env.items() if name in providers}
        self.port = gateway.port
        lender = Lender(gateway, channel.passage, self.variables)
        try:
            lender.start()
            self._open.push_async_callback(lender.close)
            url = channel.env["FLAKESTORM_GATEWAY"]
            announce(self._store, url)
            self._open.callback(withdraw, self._store, url)
        except OSError as error:
            self.lends = f"{error.strerror or error}"

    def _record(self) -> Recorder:
        try:
            self.tape.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TapeError(f"the tape {self.tape} cannot be written: {error.strerror}") from error
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        header = {"run": "gateway", "seed": self._seed, "started_at": now}
        return Recorder(
            self.tape,
            clock=time.perf_counter,
            ledger=self._ledger,
            header=header,
            keep=False,
            redactor=self._redactor,
        )

    async def close(self) -> None:
        """Stop listening and finish the tape.

        Raises:
            TapeError: the tape could not be written to its end.
        """
        await self._open.aclose()
