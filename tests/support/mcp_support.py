"""Helpers for tests of MCP: a run's whole pipeline, clients by every way in, and real servers."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flakestorm.boundary.channel import Channel, open_channel
from flakestorm.boundary.gateway import Gateway
from flakestorm.boundary.session import Crossing
from flakestorm.config.model import Scenario
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import chain
from flakestorm.core.site import Sites
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.model import Exchange
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify

__all__ = ["PLAIN", "SERVER", "Run", "at_gateway", "command", "listening"]

SERVER = Path(__file__).parent / "mcp_server.py"
"""A server made with the official package."""

PLAIN = Path(__file__).parent / "mcp_plain_server.py"
"""A server of a few lines, standard library only, which is there at once."""


@dataclass
class Run:
    """The pipeline of one run, as the engine builds it, in memory.

    Args:
        faults: tool faults, as a config writes them.
    """

    faults: tuple[dict[str, Any], ...] = ()
    ledger: Ledger = field(default_factory=Ledger)

    def __post_init__(self) -> None:
        schedule = Schedule.of(Scenario.of({"name": "test", "tool_faults": [dict(fault) for fault in self.faults]}))  # type: ignore[misc]
        self.recorder = Recorder(None, clock=time.perf_counter, ledger=self.ledger, header={})
        self.pipeline = chain(
            classify(tools=(), sites=Sites()),
            self.recorder.outer,
            schedule.stage(Choices(1), self.ledger, noted=lambda: self.recorder.exchanges),
            self.recorder.inner,
        )
        self.line = Crossing("r-0001", self.pipeline)

    @property
    def exchanges(self) -> list[Exchange]:
        return self.recorder.exchanges

    @property
    def names(self) -> list[str]:
        return [exchange.name for exchange in self.exchanges]

    def named(self, name: str) -> Exchange:
        """The only exchange of this name."""
        (found,) = [exchange for exchange in self.exchanges if exchange.name == name]
        return found


@asynccontextmanager
async def at_gateway(run: Run, **env: str) -> AsyncIterator[Channel]:
    """A gateway with one channel, bound to the run."""
    gateway = Gateway()
    await gateway.start()
    try:
        channel = open_channel(gateway, env, {})
        with channel.bind(run.line):
            yield channel
    finally:
        await gateway.close()


@contextmanager
def listening(transport: str) -> Iterator[str]:
    """A real server over HTTP: `streamable-http`, `json` or `sse`; its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), transport, str(port)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"ready"
        yield f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def command(server: Path = SERVER, *args: str) -> str:
    """A server's command line."""
    return shlex.join((sys.executable, str(server), *args))
