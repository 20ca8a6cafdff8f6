"""Carrying out a plan: each trial crosses a pipeline of its own, is recorded, and is judged when it ends.

One trial is one walk through the house: its scenario becomes a schedule, schedule and recorder become stages, the
stages become the pipeline of one line, the agent is asked on that line, and what came back, with the tape, is judged by
every invariant of the trial. Nothing is shared between trials but the agent, so they may run side by side; every random
choice is keyed by (seed, scenario, prompt, trial, site), so they do the same side by side as one by one.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from flakestorm.config.model import Invariant, Scenario
from flakestorm.contracts.base import RunView
from flakestorm.contracts.evidence import plain
from flakestorm.contracts.matrix import asks_model, compared_with, faced, judge, measured_by
from flakestorm.core.answer import AgentError, Answer
from flakestorm.core.call import Call
from flakestorm.core.choices import Choices
from flakestorm.core.clock import Clock
from flakestorm.core.conversation import Conversation
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.pipeline import Flow, Interceptor, chain
from flakestorm.core.site import Site, Sites
from flakestorm.core.verdict import Verdict, inconclusive
from flakestorm.engine.budget import Budget
from flakestorm.engine.events import CellResult, Listener, MutationInfo, RunFinished, RunResult, RunStarted
from flakestorm.engine.plan import Trial
from flakestorm.engine.ports import Adviser, Agent, Boundary, Embedder, Executor, RequestAgent, World
from flakestorm.engine.talking import Asked, Asking
from flakestorm.errors import ModelFailed
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.cleaning import cleaned, redacted
from flakestorm.tape.model import Exchange
from flakestorm.tape.redact import Redactor
from flakestorm.tape.writer import Recorder

__all__ = [
    "CHECK_LIMIT_S",
    "Inside",
    "Judged",
    "Runner",
    "Within",
    "baselines_of",
    "judged",
    "no_doubts",
    "nothing_within",
    "refused",
]

CHECK_LIMIT_S = 5.0
"""How long one invariant may take to judge one run."""


_TURNED_AWAY = ("HTTP 4", "HTTP 501", "HTTP 505")  # the latter two: no such method, no such version


@dataclass(frozen=True, slots=True)
class Judged:
    """A finished run with its verdicts.

    Args:
        trial: what was planned.
        run: what happened.
        view: the run as invariants saw it; its exchanges are dropped, so that thousands of runs fit into memory.
        verdicts: one for each invariant that applied.
        calls, results: of a run without chaos: the calls it made, without what they asked for, and the tools of the
            results that its models were told of. They say what faults would have found there.
        sites: where faults could act, in order of arrival; only where `Runner.sites` asks for them.
    """

    trial: Trial
    run: RunResult
    view: RunView
    verdicts: tuple[tuple[Invariant, Verdict], ...]
    calls: tuple[Call, ...] = ()
    results: tuple[str, ...] = ()
    sites: tuple[Site, ...] = ()

    @property
    def cells(self) -> tuple[CellResult, ...]:
        """The verdicts as cells of a report, before what only the whole scenario can tell."""
        at, run = self.trial, self.run.id
        return tuple(
            CellResult(at.scenario.name, str(i.id), i.severity, at.prompt, at.number, v.outcome, v.reason, run)
            for i, v in self.verdicts
        )


@dataclass(frozen=True, slots=True)
class Inside:
    """What the stages within a run may know of it.

    Args:
        ledger: is being written.
        heard: the stage that notes what the world said, for a fault among them: it is to stand right inside that.
        noted: gives what has been recorded so far.
    """

    ledger: Ledger
    heard: Interceptor
    noted: Callable[[], Sequence[Exchange]]


Within = Callable[[Trial, Inside], Sequence[Interceptor]]
"""Gives the stages of a trial that stand between its faults and the world."""


def nothing_within(_: Trial, __: Inside) -> Sequence[Interceptor]:
    """No stage at all: the world answers itself."""
    return ()


def no_doubts(_: Trial) -> str | None:
    """What a run shows is what happened."""
    return None


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
        baselines: what the agent said to a prompt without chaos, by the prompt's index; known once such a run was made.
        elsewhere: whether somebody else started the agent, so that only a call that crossed proves its boundary held.
        reproduce: gives the command line that does a run again, from the trial, its schedule and its ledger.
        adviser: the model that invariants of type `judge` ask.
        embedders: what measures likeness in meaning, by the word that `Invariant.measure` has for it.
        limit_ms: how long the agent may take, skipped time included; it is the agent that keeps to it in real time.
        redaction: gives what takes secrets out of a run's tape and report; all runs share a key, so that equal secrets
            are equal on all of their tapes.
        within: gives the stages of a trial that stand between its faults and the world, outermost first: what answers
            in the world's place, or changes what it is asked.
        doubts: says of a trial that has ended why what it shows proves nothing, e.g. because what stood in for the
            world could not answer; None where it proves something.
        budget: is asked before each run; once it refuses, no more are started.
        facts: more for the first line of every tape.
        viewed: gives a run as its invariants are to see it, where `within` knows more of it than its ledger.
        reviewed: gives a judged run with the verdicts that it can bear.
        sites: whether finished runs say where faults could act in them.
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
    adviser: Adviser | None = None
    embedders: Mapping[str, Embedder] = field(default_factory=dict)
    limit_ms: int | None = None
    elsewhere: bool = False
    within: Within = nothing_within
    doubts: Callable[[Trial], str | None] = no_doubts
    budget: Budget | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    viewed: Callable[[Trial, RunView], RunView] = lambda _, view: view
    reviewed: Callable[[Judged], Judged] = lambda judged: judged
    sites: bool = False
    redaction: Callable[[], Redactor] = Redactor
    _crossed: bool = False
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

        def jobs() -> Iterator[Callable[[], Awaitable[Judged]]]:
            for trial in trials:
                if self.budget is not None and not self.budget.claim():
                    return
                yield partial(self._one, trial)

        def finished(_: int, judged: Judged) -> None:
            if self.budget is not None:
                self.budget.spend(judged.run)
            done(judged)
            self.listener(RunFinished(judged.run, () if controls else judged.cells))

        await self.executor.execute(jobs(), finished, self.concurrency)

    async def _one(self, trial: Trial) -> Judged:
        self.listener(RunStarted(trial.run, trial.scenario.name, trial.prompt))
        if trial.mutation is not None and trial.mutation.change and not isinstance(self.agent, RequestAgent):
            return self._not_applicable(trial)
        choices = Choices(self.seed, trial.scenario.name, trial.prompt, trial.number)
        schedule = self._schedules.get(trial.scenario.name) or Schedule.of(trial.scenario)
        ledger, sites = Ledger(), Sites()
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
        )

        def stages() -> Interceptor:
            from flakestorm.wire.classify import classify  # and with it all that understands calls

            inner = stage or schedule.stage(choices, ledger, noted=lambda: recorder.exchanges)
            further = self.within(trial, Inside(ledger, recorder.heard, lambda: recorder.exchanges))
            further = (recorder.heard, *further) if further else ()
            return chain(classify(tools=self.tools, sites=sites), recorder.outer, inner, *further, recorder.inner)

        pipeline = _later(stages) if stage is None else stages()
        asked, line = Asked(Answer(), (), 0.0), self.boundary.line(trial.run, pipeline, clock)
        try:
            change = None if trial.mutation is None else trial.mutation.change
            asked = await Asking(self.agent, line, clock, lambda: recorder.count, self.limit_ms).ask(given, change)
            if (doubt := self.doubts(trial)) is not None:
                nothing = replace(asked.answer, output="", error=AgentError("unreachable", doubt))
                asked = replace(asked, answer=nothing)
        finally:
            answer = asked.answer
            error = None if answer.error is None else str(answer.error)
            recorder.close(output=answer.output, error=error, turns=asked.turns)
        self._crossed = self._crossed or line.calls > 0
        view = RunView(
            input=given,
            output=answer.output,
            error=answer.error,
            latency_ms=answer.latency_ms,
            scenario=trial.scenario.name,
            chaos=trial.scenario.chaos,
            ledger=ledger,
            exchanges=recorder.exchanges,
            visible=(*self.visible, *self.boundary.tools),
            baseline=self.baselines.get(trial.prompt),
            transient=schedule.transient,
            held=self._crossed or not self.elsewhere,
            input_kind="benign" if trial.mutation is None else trial.mutation.kind,
            refused=refused(trial, answer.error),
            mutated=trial.mutation is not None,
            turns=asked.turns,
        )
        tokens, cost = _bill(recorder)
        result = RunResult(
            id=trial.run,
            scenario=trial.scenario.name,
            prompt=trial.prompt,
            trial=trial.number,
            input=str(given),
            output=answer.output,
            error=error,
            latency_ms=round(asked.total_ms, 1),
            planned=ledger.planned,
            fired=_in_order(ledger.fired),
            masked=_in_order(ledger.masked),
            calls={kind: sites.count(kind) for kind in ("llm", "tool", "mcp", "http")},
            tape=str(path),
            reproduce=self.reproduce(trial, schedule, ledger),
            seen=_seen(sites, recorder) if recorder.exchanges else (),
            canaries=tuple(ledger.canaries),
            remarks=(*line.remarks, *(_unseen(recorder) if recorder.exchanges else ())),
            tokens=tokens,
            cost=cost,
            mutation=_info(trial, "sent"),
            turns=asked.turns,
        )
        view = await self._advised(trial, self.viewed(trial, view))
        found = _kept(self.reviewed(judged(trial, result, view, self.world)), redactor)
        return replace(found, sites=_sites(recorder)) if self.sites else found

    def _not_applicable(self, trial: Trial) -> Judged:
        """The run of a mutation of the request, where the agent is asked by none: it is not made."""
        at = trial.run, trial.scenario.name, trial.prompt, trial.number
        result = RunResult(*at, str(trial.text), "", None, 0.0, 0, (), (), {}, "", "",
                           mutation=_info(trial, "not applicable"))  # fmt: skip
        return Judged(trial, result, RunView(trial.text, scenario=trial.scenario.name), ())

    async def _advised(self, trial: Trial, view: RunView) -> RunView:
        """The run with the opinions that its invariants want; on the first trial of a cell the model is asked twice."""
        turns = [(invariant, faced(invariant, view)) for invariant in trial.invariants]
        wanted = [invariant for invariant, turn in turns if turn is not None and asks_model(invariant, turn)]
        times = 2 if trial.number == 1 else 1
        opinions = {str(e.id): [await self._opinion(e, faced(e, view) or view) for _ in range(times)] for e in wanted}
        alike = {
            str(each.id): await self._alike(measured_by(each), turn.output, text)
            for each in trial.invariants
            if (turn := faced(each, view)) is not None and (text := compared_with(each, turn)) is not None
        }
        return replace(view, opinions=opinions, alike=alike) if opinions or alike else view

    async def _alike(self, by: str, output: str, text: str) -> float | str:
        embedder = self.embedders.get(by)
        if embedder is None:
            return f"there is nothing to measure it by {by}"
        try:
            return await embedder.alike(output, text)
        except ModelFailed as error:
            return plain(str(error), 300)

    async def _opinion(self, invariant: Invariant, view: RunView) -> Verdict:
        if self.adviser is None:
            return inconclusive("there is no model to judge; see 'model' in the config")
        from flakestorm.contracts.judging import opinion, question  # few contracts ask a model

        asked = question(invariant, view)
        try:
            return opinion(await self.adviser.ask(asked.prompt, system=asked.system, temperature=0.0))
        except ModelFailed as error:
            return inconclusive(f"the judge could not be asked: {plain(str(error), 300)}")

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
            **({"faults": list(Schedule.of(trial.scenario).lines)} if trial.scenario.chaos else {}),
            **({} if self.boundary.draws is None else {"draws": self.boundary.draws.header}),
            "started_at": self.world.now(),
            **self.facts,
        }


def _given(text: str, change: Callable[[str], str]) -> str:
    """What the agent is asked, where that is changed on its way: of a conversation, its first turn."""
    return text.changed(0, change) if isinstance(text, Conversation) else change(text)


def refused(trial: Trial, error: AgentError | None) -> bool:
    """Whether this was an attack on HTTP itself, and the agent turned it away, as it should."""
    mutation = trial.mutation
    attacked = mutation is not None and mutation.change is not None and mutation.kind == "attack"
    return attacked and error is not None and error.kind == "http" and error.message.startswith(_TURNED_AWAY)


def _info(trial: Trial, status: Literal["sent", "not applicable"]) -> MutationInfo | None:
    m = trial.mutation
    return None if m is None else MutationInfo(m.type, m.operator, str(m.original), m.kind, status, m.number)


def _kept(judged: Judged, redactor: Redactor) -> Judged:
    """What may go into reports: the agent was judged by what it really said, but secrets are not passed on."""
    run, text = judged.run, redactor.text
    clean = replace(
        run,
        input=text(run.input),
        turns=tuple(redacted(turn, redactor) for turn in run.turns),
        mutation=run.mutation and replace(run.mutation, original=text(run.mutation.original)),
        output=cleaned(run.output, redactor),
        error=redactor.maybe(run.error),
        fired=tuple(replace(each, detail=text(each.detail)) for each in run.fired),
        masked=tuple(replace(each, detail=text(each.detail)) for each in run.masked),
        reproduce=text(run.reproduce),
        seen=tuple(map(text, run.seen)),
        remarks=tuple(map(text, run.remarks)),
    )
    verdicts = tuple((each, replace(verdict, reason=text(verdict.reason))) for each, verdict in judged.verdicts)
    return replace(judged, run=clean, verdicts=verdicts)


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


def _seen(sites: Sites, recorder: Recorder) -> tuple[str, ...]:
    """The tools and unnamed hosts that were called, then those the models spoke of."""
    from flakestorm.tape.tools import tools_named
    from flakestorm.wire.mcp import housekeeping

    called = [name for name in sites.seen("tool", "mcp", "http") if not housekeeping(name)]
    return tuple(dict.fromkeys((*called, *tools_named(recorder.exchanges))))


def _sites(recorder: Recorder) -> tuple[Site, ...]:
    from flakestorm.tape.tools import sites_of

    return sites_of(recorder.exchanges)


def _unseen(recorder: Recorder) -> tuple[str, ...]:
    from flakestorm.tape.unseen import unseen

    return unseen(recorder.exchanges)


def _bill(recorder: Recorder) -> tuple[int | None, float | None]:
    """Tokens and US dollars of the run's model calls; unknown where nothing crossed the boundary."""
    if not recorder.exchanges:
        return None, None
    if not any(exchange.kind == "llm" and exchange.sent for exchange in recorder.exchanges):
        return 0, 0.0
    from flakestorm.tape.billing import bill  # and with it all that reads usage

    found = bill(recorder.exchanges)
    return found.tokens, found.cost


def _verdict(invariant: Invariant, view: RunView, world: World) -> Verdict | None:
    """A pattern from a config may backtrack for ever over what a hostile agent said; nothing else waits for that."""
    try:
        with world.limited(CHECK_LIMIT_S):
            return judge(invariant, view)
    except TimeoutError:
        return inconclusive(f"the check took longer than {CHECK_LIMIT_S:g} s and was ended; simplify its pattern")


def baselines_of(calm: Iterable[Judged]) -> dict[int, str]:
    """What the agent said to each prompt without chaos: the first output there was.

    Args:
        calm: runs without chaos, in plan order.
    """
    found: dict[int, str] = {}
    for judged in calm:
        if judged.run.error is None and judged.run.mutation is None:
            found.setdefault(judged.trial.prompt, judged.run.output)
        if judged.run.error is None:
            found.setdefault(judged.trial.prompt, judged.view.output)
    return found


def _in_order(firings: Iterable[Firing]) -> tuple[Firing, ...]:
    """By fault and site: the order of happening depends on the agent's own concurrency, and is on the tape."""
    return tuple(sorted(firings, key=lambda firing: (firing.fault, firing.site)))


def judged(
    trial: Trial, run: RunResult, view: RunView, world: World, *, known: Mapping[str, Verdict] | None = None
) -> Judged:
    """Judge a finished run; also used on runs read back from an earlier, interrupted report.

    Args:
        trial, run, view: the run.
        world: limits how long judging may take.
        known: verdicts that are not worked out again, by the invariant's id.
    """
    before = known or {}
    found = ((i, before.get(str(i.id)) or _verdict(i, view, world)) for i in trial.invariants)
    verdicts = tuple((invariant, verdict) for invariant, verdict in found if verdict is not None)
    bare = replace(view, exchanges=())
    if view.chaos or not view.exchanges:
        return Judged(trial, run, bare, verdicts)
    from flakestorm.tape.tools import calls_of, tool_results_of

    return Judged(trial, run, bare, verdicts, calls_of(view.exchanges), tool_results_of(view.exchanges))
