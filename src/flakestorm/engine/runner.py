"""Carrying out a plan: each trial crosses a pipeline of its own, is recorded, and is judged when it ends.

One trial is one walk through the house: its scenario becomes a schedule, schedule and recorder become stages, the
stages become the pipeline of one line, the agent is asked on that line, and what came back, with the tape, is judged by
every invariant of the trial. Nothing is shared between trials but the agent, so they may run side by side; every random
choice is keyed by (seed, scenario, prompt, trial, site), so they do the same side by side as one by one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from flakestorm.config.model import Invariant, Scenario
from flakestorm.contracts.base import RunView
from flakestorm.contracts.matrix import judge
from flakestorm.core.answer import Answer
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.pipeline import chain
from flakestorm.core.site import Sites
from flakestorm.core.verdict import Verdict, inconclusive
from flakestorm.engine.events import Listener, RunFinished, RunResult, RunStarted
from flakestorm.engine.plan import Trial
from flakestorm.engine.ports import Agent, Boundary, Executor, World
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.tools import tools_named
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify
from flakestorm.wire.mcp import housekeeping

__all__ = ["CHECK_LIMIT_S", "Judged", "Runner", "judged"]

CHECK_LIMIT_S = 5.0
"""How long one invariant may take to judge one run."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A finished run with its verdicts.

    Args:
        trial: what was planned.
        run: what happened.
        view: the run as invariants saw it; its exchanges are dropped, so that thousands of runs fit into memory.
        verdicts: one for each invariant that applied.
    """

    trial: Trial
    run: RunResult
    view: RunView
    verdicts: tuple[tuple[Invariant, Verdict], ...]


@dataclass(slots=True)
class Runner:
    """Carries out trials.

    Args:
        agent, boundary, executor, world: the ports.
        seed: every random choice follows from it.
        tools: (name, URL glob) pairs that name plain-HTTP tools.
        listener: is told when runs start and finish.
        concurrency: how many runs may be under way at once.
        visible: names (globs) of the tools that some seam is known to see, beside those the boundary holds in process.
        reproduce: gives the command line that does a run again, from the trial, its schedule and its ledger.
    """

    agent: Agent
    boundary: Boundary
    executor: Executor
    world: World
    seed: int
    tools: Sequence[tuple[str, str]]
    listener: Listener
    concurrency: int
    reproduce: Callable[[Trial, Schedule, Ledger], str]
    visible: Sequence[str] = ()
    _schedules: dict[str, Schedule] = field(default_factory=dict)

    def prepare(self, scenarios: Sequence[Scenario]) -> None:
        """Build every schedule before anything is started.

        Raises:
            Misuse: a scenario names a fault mode that is not available.
        """
        self._schedules = {scenario.name: Schedule.of(scenario) for scenario in scenarios}

    async def carry_out(self, trials: Sequence[Trial], done: Callable[[Judged], None]) -> None:
        """Run the trials, several at a time, calling `done` with each as it ends, in no particular order.

        Args:
            trials: what to run.
            done: called with each finished run at once, so that an interruption loses none.
        """
        jobs: list[Callable[[], Awaitable[Judged]]] = [partial(self._one, trial) for trial in trials]

        def finished(_: int, judged: Judged) -> None:
            done(judged)
            self.listener(RunFinished(judged.run))

        await self.executor.execute(jobs, finished, self.concurrency)

    async def _one(self, trial: Trial) -> Judged:
        self.listener(RunStarted(trial.run, trial.scenario.name, trial.prompt))
        choices = Choices(self.seed, trial.scenario.name, trial.prompt, trial.number)
        schedule = self._schedules.get(trial.scenario.name) or Schedule.of(trial.scenario)
        ledger, sites = Ledger(), Sites()
        path = self.world.tape_path(trial.run)
        recorder = Recorder(path, clock=self.world.monotonic, ledger=ledger, header=self._header(trial))
        pipeline = chain(
            classify(tools=self.tools, sites=sites), recorder.outer, schedule.stage(choices, ledger), recorder.inner
        )
        answer = Answer()
        try:
            answer = await self.agent.ask(trial.text, self.boundary.line(trial.run, pipeline))
        finally:
            error = None if answer.error is None else str(answer.error)
            recorder.close(output=answer.output, error=error)
        view = RunView(
            input=trial.text,
            output=answer.output,
            error=answer.error,
            latency_ms=answer.latency_ms,
            scenario=trial.scenario.name,
            chaos=trial.scenario.chaos,
            ledger=ledger,
            exchanges=recorder.exchanges,
            visible=(*self.visible, *self.boundary.tools),
        )
        called = [name for name in sites.seen("tool", "mcp", "http") if not housekeeping(name)]
        result = RunResult(
            id=trial.run,
            scenario=trial.scenario.name,
            prompt=trial.prompt,
            trial=trial.number,
            input=trial.text,
            output=answer.output,
            error=error,
            latency_ms=round(answer.latency_ms, 1),
            planned=ledger.planned,
            fired=_in_order(ledger.fired),
            masked=_in_order(ledger.masked),
            calls={kind: sites.count(kind) for kind in ("llm", "tool", "mcp", "http")},
            tape=str(path),
            reproduce=self.reproduce(trial, schedule, ledger),
            seen=tuple(dict.fromkeys((*called, *tools_named(recorder.exchanges)))),
            canaries=tuple(ledger.canaries),
        )
        return judged(trial, result, view, self.world)

    def _header(self, trial: Trial) -> dict[str, object]:
        return {
            "run": trial.run,
            "scenario": trial.scenario.name,
            "prompt": trial.prompt,
            "trial": trial.number,
            "seed": self.seed,
            "input": trial.text,
            "started_at": self.world.now(),
        }


def _verdict(invariant: Invariant, view: RunView, world: World) -> Verdict | None:
    """A pattern from a config may backtrack for ever over what a hostile agent said; nothing else waits for that."""
    try:
        with world.limited(CHECK_LIMIT_S):
            return judge(invariant, view)
    except TimeoutError:
        return inconclusive(f"the check took longer than {CHECK_LIMIT_S:g} s and was ended; simplify its pattern")


def _in_order(firings: Iterable[Firing]) -> tuple[Firing, ...]:
    """By fault and site: the order of happening depends on the agent's own concurrency, and is on the tape."""
    return tuple(sorted(firings, key=lambda firing: (firing.fault, firing.site)))


def judged(trial: Trial, run: RunResult, view: RunView, world: World) -> Judged:
    """Judge a finished run; also used on runs read back from an earlier, interrupted report."""
    found = ((invariant, _verdict(invariant, view, world)) for invariant in trial.invariants)
    verdicts = tuple((invariant, verdict) for invariant, verdict in found if verdict is not None)
    return Judged(trial, run, replace(view, exchanges=()), verdicts)
