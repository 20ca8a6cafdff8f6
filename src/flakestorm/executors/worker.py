"""A worker: a process that has an agent of its own and makes one run at a time.

Whoever brings workers about calls three methods from the process's main thread, one after the other: `start`, `carry`
for each run, and `close`. The event loop runs only meanwhile. The main thread it must be, because the time that an
invariant may take is limited by an alarm (`LocalWorld.limited`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from flakestorm.engine.runner import Runner
from flakestorm.errors import AgentUnreachable, Misuse
from flakestorm.executors.away import Errand, Outcome, outcome_of
from flakestorm.version import __version__

__all__ = ["Cancelled", "Failure", "Order", "Worker"]

T = TypeVar("T")

ASK_S = 0.2
"""How often is asked whether what is under way is still wanted, in seconds."""


class Cancelled(Exception):
    """What was under way was not wanted any more. (asyncio's own is no `Exception`, and would end the worker.)"""


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is made from; it can be pickled.

    Args:
        runner: opens what makes runs: agent, boundary, and the models that judge.
        folder: the current folder, as it is where the command was given.
        environ: variables to be set.
        version: of the flakestorm that sends this.
    """

    runner: Callable[[], AbstractAsyncContextManager[Runner]]
    folder: str
    environ: Mapping[str, str] = field(default_factory=dict)
    version: str = __version__


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a worker could not be made ready, in words; `misuse` is whether the command or its config is to blame."""

    why: str
    misuse: bool


class Worker:
    """One worker.

    Args:
        order: what it is made from.
        wanted: says, while something is under way, whether that is still wanted.
    """

    def __init__(self, order: Order, wanted: Callable[[], bool] = lambda: True) -> None:
        self._order, self._wanted = order, wanted
        self._loop = asyncio.Runner()
        self._opened: AbstractAsyncContextManager[Runner] | None = None
        self._runner: Runner | None = None

    def start(self) -> Failure | None:
        """Start the agent; gives why it could not be.

        Raises:
            Cancelled: it is not wanted any more.
        """
        order = self._order
        if order.version != __version__:
            return Failure(f"flakestorm {__version__} is installed there, and {order.version} here", misuse=True)
        try:
            os.chdir(order.folder)
        except OSError as error:
            return Failure(f"the folder {order.folder} is not there: {error.strerror}", misuse=True)
        os.environ.update(order.environ)
        try:
            self._runner = self._do(self._open())
        except (Misuse, AgentUnreachable) as error:
            return Failure(str(error), misuse=isinstance(error, Misuse))
        return None

    def carry(self, errand: Errand) -> Outcome:
        """Make this run.

        Raises:
            Cancelled: it is not wanted any more.
        """
        return self._do(self._one(errand))

    def close(self) -> None:
        """End the agent and let go of everything."""
        opened, self._opened, self._runner = self._opened, None, None
        if opened is not None:
            self._loop.run(_leave(opened))
        self._loop.close()

    async def _open(self) -> Runner:
        self._opened = self._order.runner()
        runner = await self._opened.__aenter__()
        await runner.agent.start()
        return runner

    async def _one(self, errand: Errand) -> Outcome:
        runner, trial = self._runner, errand.trial
        if runner is None:
            raise RuntimeError("this worker was not started")
        # What came over connections between two runs, e.g. their end, is heard before this one begins.
        for _ in range(3):
            await asyncio.sleep(0)
        runner.baselines = {} if errand.baseline is None else {trial.prompt: errand.baseline}
        runner.crossed = runner.crossed or errand.crossed
        found = await runner.one(trial)
        return outcome_of(found, crossed=runner.crossed)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(self._while_wanted(work))

    async def _while_wanted(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(work)
        while not (await asyncio.wait({task}, timeout=ASK_S))[0]:
            if not self._wanted():
                task.cancel()
                await asyncio.wait({task})
                raise Cancelled
        return task.result()


async def _leave(opened: AbstractAsyncContextManager[Runner]) -> None:
    await opened.__aexit__(None, None, None)
