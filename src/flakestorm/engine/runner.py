"""Carrying out a plan: each trial crosses a pipeline of its own, is recorded, and is judged when it ends.

One trial is one walk through the house: its scenario becomes a schedule, schedule and recorder become stages, the
stages become the pipeline of one line, the agent is asked on that line, and what came back, with the tape, is judged by
every invariant of the trial. Nothing is shared between trials but the agent, so they may run side by side; every random
choice is keyed by (seed, scenario, prompt, trial, site), so they do the same side by side as one by one.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import field
from msgspec.structs import replace

from flakestorm.config.model import Scenario
from flakestorm.contracts.base import RunView
from flakestorm.core.answer import AgentError, Answer
from flakestorm.core.call import Call
from flakestorm.core.choices import Choices
from flakestorm.core.clock import Clock
from flakestorm.core.conversation import Conversation
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.pipeline import Flow, Interceptor, chain
from flakestorm.core.record import Record, Slate
from flakestorm.core.site import Sites
from flakestorm.engine import taped
from flakestorm.engine.advice import Advice
from flakestorm.engine.budget import Budget
from flakestorm.engine.events import Listener, MutationInfo, Note, RunFinished, RunResult, RunStarted
from flakestorm.engine.hooks import Hooks, Inside
from flakestorm.engine.judged import Judged, judged, kept, refused
from flakestorm.engine.pacing import Met, Pacing, limited, starved
from flakestorm.engine.plan import Trial
from flakestorm.engine.ports import Agent, Boundary, Executor, RequestAgent, World
from flakestorm.engine.talking import Asked, Asking
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.redact import Redactor
from flakestorm.tape.writer import Recorder

__all__ = ["Runner", "no_room"]


async def no_room() -> None:
    """Where nobody waits for a place."""


class _Ended(Record, frozen=True):
    """A run whose agent has been asked: what it was given and said, and what was noted meanwhile."""

    trial: Trial
    path: Path
    given: str
    schedule: Schedule
    ledger: Ledger
    sites: Sites
    recorder: Recorder
    met: Met
    asked: Asked
    remarks: Sequence[str]


class Runner(Slate, eq=False):
    """Carries out trials.

    Args:
        agent, boundary, executor, world: the ports.
        seed: every random choice follows from it.
        tools: (name, URL glob) pairs that name plain-HTTP tools.
        listener: is told when runs start and finish.
        concurrency: how many runs may be under way at once.
        visible: names (globs) of the tools that some seam is known to see, beside those the boundary holds in process.
        baselines: what the agent said to a prompt without chaos, by the prompt's index; known once such a run was made.
        elsewhere: whether somebody else started the agent, so that only a call that crossed proves its boundary held.
        reproduce: gives the command line that does a run again, from the trial, its schedule and its ledger.
        advice: what models say of a run where an invariant asks.
        limit_ms: how long the agent may take, skipped time included; it is the agent that keeps to it in real time.
        redaction: gives what takes secrets out of a run's tape and report; all runs share a key, so that equal secrets
            are equal on all of their tapes.
        budget: is asked before each run; once it refuses, no more are started.
        pacing: says when the next run may be started; at once, where None.
        hooks: what else takes part in each run.
        crossed: whether any call has crossed yet, which of an agent that somebody else started proves that it is held.
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
    baselines: Mapping[int, str] = field(default_factory=dict)
    advice: Advice = field(default_factory=Advice)
    limit_ms: int | None = None
    elsewhere: bool = False
    budget: Budget | None = None
    pacing: Pacing | None = None
    hooks: Hooks = field(default_factory=Hooks)
    redaction: Callable[[], Redactor] = Redactor
    crossed: bool = False
    _schedules: dict[str, Schedule] = field(default_factory=dict)

    def prepare(self, scenarios: Sequence[Scenario]) -> None:
        """Build every schedule before anything is started.

        Raises:
            Misuse: a scenario names a fault mode that is not available.
        """
        self._schedules = {scenario.name: Schedule.of(scenario) for scenario in scenarios}

    async def carry_out(
        self, trials: Sequence[Trial], done: Callable[[Judged], None], *, controls: bool = False
    ) -> None:
        """Run the trials, several at a time, calling `done` with each as it ends, in no particular order.

        Where the budget is reached, those that were not started are left out.

        Args:
            trials: what to run.
            done: called with each finished run at once, so that an interruption loses none.
            controls: whether these are control runs, whose verdicts are no cells of the plan.
        """
        left = len(trials)

        def started() -> Iterator[Trial]:
            nonlocal left
            for trial in trials:
                if self.budget is not None and not self.budget.claim():
                    left = 0
                    return
                left -= 1
                if self.pacing is not None and self._applicable(trial):
                    self.pacing.started(trial.run)
                self.listener(RunStarted(trial.run, trial.scenario.name, trial.prompt))
                yield trial

        def hold_s(under_way: int) -> float:
            if not left:
                return 0.0
            wait_s = self.hooks.holds(trials[-left])
            if self.pacing is not None and self._applicable(trials[-left]):
                wait_s = max(wait_s, self.pacing.wait_s(under_way, self.concurrency))
                if news := self.pacing.news():
                    self.listener(Note(news))
            return wait_s if self.budget is None else min(wait_s, self.budget.left_s)

        def finished(_: int, judged: Judged) -> None:
            if self.budget is not None:
                self.budget.spend(judged.run)
            if self.pacing is not None and self._applicable(judged.trial):
                self.pacing.ended(judged.run.id, tokens=judged.run.tokens, through=not judged.view.starved)
            done(judged)
            self.listener(RunFinished(judged.run, () if controls else judged.cells))

        await self.executor.execute(started(), self.one, finished, self.concurrency, hold_s)

    async def one(self, trial: Trial, make_room: Callable[[], Awaitable[None]] = no_room) -> Judged:
        """Make this run and judge it.

        Args:
            trial: the run.
            make_room: is awaited when the agent has answered, so that it is asked the next thing before this is judged.
        """
        if not self._applicable(trial):
            return self._not_applicable(trial)
        choices = Choices(self.seed, trial.scenario.name, trial.prompt, trial.number)
        schedule = self._schedule(trial.scenario)
        ledger, sites, met = Ledger(), Sites(), Met(trial.run, self.pacing)
        schedule.enter(ledger)
        unheld = self.elsewhere and not self.boundary.borrowed and not schedule.on_input
        stage = None if unheld else schedule.stage(choices, ledger, noted=lambda: recorder.exchanges)
        given = trial.text if stage is None else _given(trial.text, stage.given)
        path = self.world.tape_path(trial.run)
        clock, redactor = Clock(self.world.monotonic, skips=self.world.skips), self.redaction()
        recorder = Recorder(
            path,
            clock=clock.now,
            ledger=ledger,
            header=self._header(trial, given),
            reached=None if self.boundary.draws is None else lambda at_ms: line.reach(at_ms),
            redactor=redactor,
            met=met,
        )

        def stages() -> Interceptor:
            from flakestorm.wire.classify import classify  # and with it all that understands calls

            inner = stage or schedule.stage(choices, ledger, noted=lambda: recorder.exchanges)
            further = self.hooks.within(trial, Inside(ledger, recorder.heard, lambda: recorder.exchanges))
            further = (recorder.heard, *further) if further else ()
            return chain(classify(tools=self.tools, sites=sites), recorder.outer, inner, *further, recorder.inner)

        pipeline = _later(stages) if stage is None else stages()
        asked, line = Asked(Answer(), (), 0.0), self.boundary.line(trial.run, pipeline, clock)
        try:
            change = None if trial.mutation is None else trial.mutation.change
            if self.hooks.begins is not None:
                await self.hooks.begins(trial)
            asked = await Asking(self.agent, line, clock, lambda: recorder.count, self.limit_ms).ask(given, change)
            if self._uncounted and self.hooks.begins is None and self.advice.silent:
                await make_room()  # no time passes from here on, and nobody counts this run until it is judged
            if (doubt := self.hooks.doubts(trial)) is not None:
                nothing = replace(asked.answer, output="", error=AgentError("unreachable", doubt))
                asked = replace(asked, answer=nothing)
        finally:
            recorder.close(output=asked.answer.output, error=_said(asked.answer), turns=asked.turns)
        self.crossed = self.crossed or line.calls > 0
        ended = _Ended(trial, path, given, schedule, ledger, sites, recorder, met, asked, line.remarks)
        view, result = self._view(ended), self._result(ended)
        view = await self.advice.on(trial, self.hooks.viewed(trial, view))
        found = kept(self.hooks.reviewed(judged(trial, result, view, self.world)), redactor)
        return replace(found, sites=taped.sites_in(recorder)) if self.hooks.sites else found

    def _view(self, ended: _Ended) -> RunView:
        """The run as invariants see it."""
        trial, answer, recorder = ended.trial, ended.asked.answer, ended.recorder
        refusals = ended.met.refusals
        return RunView(
            input=ended.given,
            output=answer.output,
            error=answer.error,
            latency_ms=answer.latency_ms,
            scenario=trial.scenario.name,
            chaos=trial.scenario.chaos,
            ledger=ended.ledger,
            exchanges=recorder.exchanges,
            visible=(*self.visible, *self.boundary.tools),
            baseline=self.baselines.get(trial.prompt),
            transient=ended.schedule.transient,
            held=self.crossed or not self.elsewhere,
            input_kind="benign" if trial.mutation is None else trial.mutation.kind,
            refused=refused(trial, answer.error),
            mutated=trial.mutation is not None,
            turns=ended.asked.turns,
            limited=limited(refusals),
            starved=bool(refusals) and starved(refusals, recorder.exchanges, answer.error),
        )

    def _result(self, ended: _Ended) -> RunResult:
        """The run as reports tell it."""
        trial, asked, ledger, recorder = ended.trial, ended.asked, ended.ledger, ended.recorder
        tokens, cost = taped.bill(recorder)
        return RunResult(
            id=trial.run,
            scenario=trial.scenario.name,
            prompt=trial.prompt,
            trial=trial.number,
            input=str(ended.given),
            output=asked.answer.output,
            error=_said(asked.answer),
            latency_ms=round(asked.total_ms, 1),
            planned=ledger.planned,
            fired=_in_order(ledger.fired),
            masked=_in_order(ledger.masked),
            calls={kind: ended.sites.count(kind) for kind in ("llm", "tool", "mcp", "http")},
            tape=str(ended.path),
            reproduce=self.reproduce(trial, ended.schedule, ledger),
            seen=taped.seen(ended.sites, recorder) if recorder.exchanges else (),
            canaries=tuple(ledger.canaries),
            remarks=(*ended.remarks, *(taped.unseen(recorder) if recorder.exchanges else ())),
            tokens=tokens,
            cost=cost,
            mutation=_info(trial, "sent"),
            turns=asked.turns,
            refusals=tuple(ended.met.refusals),
        )

    def _applicable(self, trial: Trial) -> bool:
        """Whether there is a run to be made: not of a change of the request, where the agent is asked by none."""
        return trial.mutation is None or not trial.mutation.change or isinstance(self.agent, RequestAgent)

    @property
    def _uncounted(self) -> bool:
        """Whether nobody wants to know of a run that it is judged before the next one begins."""
        return self.budget is None and (self.pacing is None or self.pacing.quiet)

    def _schedule(self, scenario: Scenario) -> Schedule:
        return self._schedules.get(scenario.name) or Schedule.of(scenario)

    def _not_applicable(self, trial: Trial) -> Judged:
        """The run of a mutation of the request, where the agent is asked by none: it is not made."""
        at = trial.run, trial.scenario.name, trial.prompt, trial.number
        result = RunResult(*at, str(trial.text), "", None, 0.0, 0, (), (), {}, "", "",
                           mutation=_info(trial, "not applicable"))  # fmt: skip
        return Judged(trial, result, RunView(trial.text, scenario=trial.scenario.name), ())

    def _header(self, trial: Trial, given: str) -> dict[str, object]:
        """Facts for the tape; `original` is there where the agent was given something else than the plan says."""
        return {
            "run": trial.run,
            "scenario": trial.scenario.name,
            "prompt": trial.prompt,
            "trial": trial.number,
            "seed": self.seed,
            "input": str(given),
            **({"turns": list(given.turns)} if isinstance(given, Conversation) else {}),
            **({} if given == trial.text else {"original": str(trial.text)}),
            **({"faults": list(self._schedule(trial.scenario).lines)} if trial.scenario.chaos else {}),
            **({} if self.boundary.draws is None else {"draws": self.boundary.draws.header}),
            "started_at": self.world.now(),
            **self.hooks.facts,
        }


def _given(text: str, change: Callable[[str], str]) -> str:
    """What the agent is asked, where that is changed on its way: of a conversation, its first turn."""
    return text.changed(0, change) if isinstance(text, Conversation) else change(text)


def _said(answer: Answer) -> str | None:
    """The agent's error in words."""
    return None if answer.error is None else str(answer.error)


def _info(trial: Trial, status: Literal["sent", "not applicable"]) -> MutationInfo | None:
    m = trial.mutation
    return None if m is None else MutationInfo(m.type, m.operator, str(m.original), m.kind, status, m.number)


def _later(make: Callable[[], Interceptor]) -> Interceptor:
    """The pipeline that is made when the first call comes, which may be never."""
    made: list[Interceptor] = []
    lock = threading.Lock()  # an agent's threads share it

    def pipeline(call: Call) -> Flow | Call:
        if not made:
            with lock:
                if not made:
                    made.append(make())
        return made[0](call)

    return pipeline


def _in_order(firings: Iterable[Firing]) -> tuple[Firing, ...]:
    """By fault and site: the order of happening depends on the agent's own concurrency, and is on the tape."""
    return tuple(sorted(firings, key=lambda firing: (firing.fault, firing.site)))
