"""An agent that is kept between runs: started once, asked one input at a time from any thread, let go of at the end.

A command knows its runs before it begins; a test asks when it comes to it. So agent, boundary and runner live on an
event loop of their own, in a thread, from the first input to `close`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path

from flakestorm.api.carrying import Work, hub_of, runner_of
from flakestorm.api.loops import loop_factory
from flakestorm.api.options import Options
from flakestorm.config import tools_of
from flakestorm.contracts.base import RunView
from flakestorm.core.pipeline import Interceptor
from flakestorm.engine.events import RunResult
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import Trial
from flakestorm.engine.runner import Runner
from flakestorm.executors.world import LocalWorld

__all__ = ["CLOSE_LIMIT_S", "Asked", "Kept"]

CLOSE_LIMIT_S = 30.0
"""How long is waited for an agent to end."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A finished run: what a report says of it, and what invariants see, its exchanges included."""

    run: RunResult
    view: RunView


class _World(LocalWorld):
    """Tapes go where each run says."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.paths: dict[str, Path] = {}

    def tape_path(self, run: str) -> Path:
        return self.paths.pop(run, None) or super().tape_path(run)


class Kept:
    """One project's agent, kept.

    Args:
        work: the project.
        tapes: the folder for the tapes of runs that name no path.

    Raises:
        Misuse: the config asks for what is not available, or tapes cannot be written there.
        AgentUnreachable: the agent cannot be started.
    """

    def __init__(self, work: Work, tapes: Path) -> None:
        self._work, self._world = work, _World(tapes)
        self._views: dict[str, RunView] = {}
        self._begun: Future[tuple[asyncio.AbstractEventLoop, Runner]] = Future()
        self._stop = asyncio.Event()
        self._turn = asyncio.Lock()  # one agent, and one run at a time
        self._thread = threading.Thread(target=self._serve, name="flakestorm-kept", daemon=True)
        Context().run(self._thread.start)  # it belongs to no run
        try:
            self._loop, self._runner = self._begun.result()
        except BaseException:
            self._thread.join(CLOSE_LIMIT_S)
            raise

    def ask(
        self, trial: Trial, *, seed: int, within: Sequence[Interceptor] = (), path: Path | None = None
    ) -> Future[Asked]:
        """Begin a run; the future gives what came of it, and cancelling that ends the run.

        Args:
            trial: the run, under an id that no other run has.
            seed: every random choice follows from it.
            within: stages that answer in the world's place.
            path: the tape to write.

        The future raises:
            Misuse: the scenario cannot be played.
        """
        if path is not None:
            self._world.paths[trial.run] = path.absolute()
        one = self._one(trial, seed, tuple(within))
        return Context().run(asyncio.run_coroutine_threadsafe, one, self._loop)

    def close(self) -> None:
        """End the agent and let go of its boundary. More than once does no harm."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(CLOSE_LIMIT_S)

    async def _one(self, trial: Trial, seed: int, within: Sequence[Interceptor]) -> Asked:
        async with self._turn:
            runner, done = self._runner, list[Judged]()
            runner.seed, runner.hooks.within = seed, lambda _, __: within
            runner.tools = tools_of(self._work.config, trial.scenario)
            runner.prepare((trial.scenario,))
            try:
                await runner.carry_out([trial], done.append)
                return Asked(done[0].run, self._views[trial.run])
            finally:
                self._views.pop(trial.run, None)

    def _seen(self, trial: Trial, view: RunView) -> RunView:
        self._views[trial.run] = view
        return view

    def _serve(self) -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as loop:
                loop.run(self._live())
        except BaseException as error:
            if self._begun.done():
                raise
            self._begun.set_exception(error)

    async def _live(self) -> None:
        config, options = self._work.config, Options(concurrency=1)
        async with runner_of(self._work, (), (), options, 0, self._world, hub_of(config)) as runner:
            runner.hooks.viewed = self._seen
            await runner.agent.start()
            self._begun.set_result((asyncio.get_running_loop(), runner))
            await self._stop.wait()
