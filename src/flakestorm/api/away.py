"""Putting the pieces together for runs that are made on a cluster: one half here, one on each worker."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from flakestorm.agents.instances import uses_port
from flakestorm.api.carrying import Work, hub_of, runner_of
from flakestorm.api.options import OnRay, Options
from flakestorm.api.outfit import outfit_of
from flakestorm.boundary.hub import Hub
from flakestorm.config.model import Config, Invariant, Scenario
from flakestorm.contracts.matrix import prepare
from flakestorm.engine.runner import Runner
from flakestorm.errors import ConfigError
from flakestorm.executors.away import AwayRunner
from flakestorm.executors.distributed import Cluster
from flakestorm.executors.worker import Order
from flakestorm.executors.world import REAL_TIME, LocalWorld

__all__ = ["Sent", "away_runner_of", "serve"]


@dataclass(frozen=True, slots=True)
class Sent:
    """A project as it is sent to workers; fulfils `Work`."""

    config: Config
    path: Path
    again: tuple[str, ...]


@asynccontextmanager
async def serve(
    work: Work, scenarios: tuple[Scenario, ...], invariants: tuple[Invariant, ...], seed: int
) -> AsyncIterator[Runner]:
    """What makes runs on a worker, while entered. The arguments are those of `runner_of`.

    Raises:
        Misuse: something that is asked for is not available on the worker.
    """
    prepare(invariants)
    with TemporaryDirectory(prefix="flakestorm-") as tapes:  # each is sent as soon as its run has ended
        one, world = Options(concurrency=1), LocalWorld(Path(tapes))
        async with runner_of(work, scenarios, invariants, one, seed, world, hub_of(work.config)) as runner:
            yield runner


@asynccontextmanager
async def away_runner_of(
    work: Work,
    scenarios: Iterable[Scenario],
    invariants: Iterable[Invariant],
    options: Options,
    on: OnRay,
    seed: int,
    world: LocalWorld,
    hub: Hub,
) -> AsyncIterator[Runner]:
    """As `runner_of`, with the runs made on a cluster, while entered. The workers' agents end with it.

    Args:
        on: which cluster, and how many workers.

    Raises:
        ConfigError: several workers would have to share a port.
    """
    config = work.config
    if on.workers != 1 and config.agent.start and config.agent.type == "http" and not uses_port(config.agent):
        raise ConfigError(
            "every worker starts an agent, and two of them may be on one machine: use {port} in endpoint, start and "
            "ready, or give --workers 1",
            key="agent.endpoint",
        )
    scenarios, invariants = tuple(scenarios), tuple(invariants)
    concurrency = options.concurrency or max(config.advanced.concurrency, on.workers or 1)
    order = Order(
        partial(serve, Sent(config, work.path, work.again), scenarios, invariants, seed),
        str(Path.cwd()),
        {name: os.environ[name] for name in (REAL_TIME,) if name in os.environ},
    )
    cluster = Cluster(order, workers=on.workers, most=concurrency, address=on.address, told=options.listener)
    try:
        yield AwayRunner(
            agent=cluster,
            executor=cluster,
            concurrency=concurrency,
            carrier=cluster,
            **outfit_of(work, scenarios, options, seed, world, hub),
        )
    finally:
        await cluster.close()
        await hub.close()
