"""The two sides of a comparison: a version that is run, and the runs of one that is a report."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from flakestorm.api.carrying import hub_of, runner_of
from flakestorm.api.options import Options
from flakestorm.api.replays import Replays
from flakestorm.api.versions import Version
from flakestorm.config.model import Config
from flakestorm.engine.compare import Key, Side
from flakestorm.engine.events import CellResult, Report
from flakestorm.engine.hooks import Hooks
from flakestorm.engine.judged import Judged, baselines_of
from flakestorm.engine.plan import Plan, Trial
from flakestorm.engine.runner import Runner
from flakestorm.executors.world import LocalWorld

__all__ = ["Live", "key_of", "side_of", "sides_in", "texts_of"]


@dataclass(frozen=True, slots=True)
class _Work:
    """A version as `carrying.Work`."""

    config: Config
    path: Path
    again: tuple[str, ...] = ()


class Live:
    """A version that is run. An agent that is not launched is let go of after each batch: in this process the other
    version's modules, environment and tools would get in its way, and behind a standing gateway the other version.

    Args:
        replays: the other version's runs, which may tell what this one does; None where all of its runs are live.
    """

    def __init__(
        self,
        found: Version,
        config: Config,
        plan: Plan,
        options: Options,
        seed: int,
        folder: str,
        *,
        replays: Replays | None = None,
    ) -> None:
        self.config, self.plan, self.options, self.seed = config, plan, options, seed
        self.work = _Work(config, found.path)
        self.world, self.replays = LocalWorld(options.tapes / folder), replays
        self.done: dict[str, Judged] = {}
        self.fleeting = self.config.agent.start is None
        self.concurrency = options.concurrency or self.config.advanced.concurrency
        self._open = AsyncExitStack()
        self._runner: Runner | None = None

    async def run(self, trials: Sequence[Trial]) -> None:
        """Make these trials; what has ended is in `done` at once."""
        try:
            await self._make(await self._ready(), trials)
        finally:
            if self.fleeting:
                await self.close()

    async def _make(self, runner: Runner, trials: Sequence[Trial]) -> None:
        if self.replays is not None:
            trials = await self.replays.play(runner, trials, self._finish)
        await runner.carry_out(trials, self._finish)

    async def close(self) -> None:
        """Let go of the agent."""
        self._runner = None
        await self._open.aclose()

    async def _ready(self) -> Runner:
        if self._runner is None:
            plan = self.plan
            self._runner = await self._open.enter_async_context(
                runner_of(
                    self.work, plan.scenarios, plan.invariants, self.options, self.seed, self.world,
                    hub_of(self.config), None if self.replays is None else Hooks(within=self.replays.within),
                )
            )  # fmt: skip
            self._runner.prepare(plan.scenarios)
            await self._runner.agent.start()
            await self._calm(self._runner)
        return self._runner

    async def _calm(self, runner: Runner) -> None:
        """The runs without chaos that some invariants compare with, once."""
        left = [trial for trial in self.plan.baseline if trial.run not in self.done]
        if left:
            await self._make(runner, left)
        calm = [self.done[trial.run] for trial in self.plan.baseline if trial.run in self.done]
        runner.baselines = baselines_of(calm)

    def _finish(self, judged: Judged) -> None:
        self.done[judged.trial.run] = judged


def texts_of(prompts: Sequence[str]) -> list[str]:
    """The prompts, by which reports of different plans are matched; those that are there twice carry their index."""
    return [text if prompts.count(text) == 1 else f"{text} (prompt {at})" for at, text in enumerate(prompts)]


def key_of(trial: Trial, names: Sequence[str]) -> Key:
    """What the runs of this trial have in common, by the texts of its plan's prompts."""
    return Key(trial.scenario.name, names[trial.prompt], trial.number)


def side_of(judged: Judged | None) -> Side | None:
    """A run that was made, if it was."""
    return None if judged is None else Side.of(judged.run, judged.cells)


def sides_in(report: Report) -> dict[Key, Side]:
    """The runs of a report that were judged, by what they have in common with others."""
    names = texts_of(report.prompts)
    cells: dict[str, list[CellResult]] = {}
    for cell in report.cells:
        cells.setdefault(cell.run, []).append(cell)
    found = {}
    for run in report.runs:
        if run.id in cells:
            text = names[run.prompt] if run.prompt < len(names) else run.input
            found[Key(run.scenario, text, run.trial)] = Side.of(run, cells[run.id])
    return found
