"""A campaign: one judging command from plan to report.

It owns what has finished so far, so that an interruption loses nothing: `execute` may be cancelled at any moment and
`report` still tells everything that ended before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import field

from flakestorm.contracts.matrix import prepare
from flakestorm.core.record import Slate
from flakestorm.engine.accounting import undecided
from flakestorm.engine.events import Listener, Note, Planned, Report
from flakestorm.engine.judged import Judged, baselines_of
from flakestorm.engine.pacing import paced_by
from flakestorm.engine.plan import Plan, Trial
from flakestorm.engine.ports import World
from flakestorm.engine.rounds import groups_of, next_round
from flakestorm.engine.runner import Runner
from flakestorm.engine.score import Gate, assemble
from flakestorm.errors import AgentUnreachable
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.redact import Redactor
from flakestorm.version import __version__

__all__ = ["Campaign"]


def _still_asks_the_same(trial: Trial) -> bool:
    """Whether it is a mutation that its golden prompt is the control of; an attack asks for something else."""
    return trial.mutation is not None and trial.mutation.kind == "benign"


_CALM = ("always", "no_chaos", "input_benign")
"""The rules (`when`) that hold for a golden prompt without chaos, too."""


class Campaign(Slate, eq=False):
    """One judging command.

    Args:
        plan: what to run.
        runner: what runs it.
        gate: when it fails.
        world, listener: time, and who is told.
        config, agent: for the report: path of the config file, the agent in a few words.
        earlier: runs of an earlier, interrupted campaign with the same plan and seed; they are not run again.
        early: whether cells get no more trials once their verdict is decided.
        resets: whether something sets the agent back before each run.
    """

    plan: Plan
    runner: Runner
    gate: Gate
    world: World
    listener: Listener
    config: str = ""
    agent: str = ""
    earlier: tuple[Judged, ...] = ()
    early: bool = False
    resets: bool = True
    _done: dict[str, Judged] = field(default_factory=dict)
    _notes: list[str] = field(default_factory=list)
    _whole: list[str] = field(default_factory=list)
    _started_s: float = 0.0
    _started_at: str = ""
    _own: Redactor | None = None

    @property
    def _redactor(self) -> Redactor:
        if self._own is None:
            self._own = self.runner.redaction()
        return self._own

    async def execute(self) -> None:
        """Start the agent, make every run, then the control runs that failures call for.

        An agent that cannot be reached ends the campaign with nothing judged; the report says why.

        Raises:
            Misuse: the plan names faults or invariants that are not available; nothing has been started then.
        """
        prepare(self.plan.invariants)
        self.runner.prepare(self.plan.scenarios)
        self._started_s, self._started_at = self.world.monotonic(), self.world.now()
        self._done = {judged.trial.run: judged for judged in self.earlier}
        if self.runner.pacing is not None:
            self.runner.pacing.fresh()
        for said in self.plan.notes:
            self.note(said)
        self.listener(Planned(self.plan.command, self.plan.count - len(self._done), self.report(interrupted=True)))
        try:
            await self.runner.agent.start()
        except AgentUnreachable as error:
            self._notes.append(
                self._redactor.hidden(f"the agent could not be reached: {error}")
            )  # the verdict tells it
            return
        if self.plan.baseline:
            await self.runner.carry_out(self._left(self.plan.baseline), self._finish)
            calm = (self._done.get(trial.run) for trial in self.plan.baseline)
            self.runner.baselines = baselines_of(judged for judged in calm if judged is not None)
        if self.plan.generate is not None and not self._stopped:
            self._generate()
        await self._trials()
        controls = () if self._stopped else self.plan.controls(self._unexplained())
        if controls:
            await self.runner.carry_out(controls, self._finish, controls=True)

    async def _trials(self) -> None:
        """All trials at once, or, where cells may be left early, in rounds, or as they are chosen."""
        if self.plan.budget is not None:
            await self._chosen()
            return
        if self.plan.users:
            await self._levels()
            return
        if not self.early:
            await self.runner.carry_out(self._left(self.plan.trials), self._finish)
            return
        while not self._stopped:
            trials = next_round(groups_of(self.plan.trials, self._done.values()), self.runner.concurrency)
            if not trials:
                return
            await self.runner.carry_out(trials, self._finish)

    async def _levels(self) -> None:
        """One level of users after the other: each user's next run begins when the one before has ended."""
        for scenario, users in zip(self.plan.scenarios, self.plan.users, strict=True):
            if self._stopped:
                return
            self.runner.concurrency = users
            if left := self._left(t for t in self.plan.trials if t.scenario is scenario):
                await self.runner.carry_out(left, self._finish)
            if not self._stopped:
                self._whole.append(scenario.name)

    @property
    def _stopped(self) -> str:
        """The limit that was reached, if the budget has refused a run."""
        return "" if self.runner.budget is None else self.runner.budget.reached

    async def _chosen(self) -> None:
        """Of a plan with more trials than are to be made, those that what was seen speaks for."""
        from flakestorm.engine.adapting import NOTE, adapt  # few plans choose as they go

        async def run(trials: Sequence[Trial]) -> list[Judged]:
            await self.runner.carry_out(trials, self._finish)
            return [self._done[trial.run] for trial in trials if trial.run in self._done]

        self.note(NOTE)
        await adapt(self.plan, self.runner.seed, tuple(self._done.values()), run)

    def _left(self, trials: Iterable[Trial]) -> list[Trial]:
        return [trial for trial in trials if trial.run not in self._done]

    def _generate(self) -> None:
        """Extend the plan by what the runs without chaos have shown."""
        from flakestorm.engine.toolmaze import scenarios_for, tools_used  # few contracts ask for it

        tools = tools_used(self._done[trial.run] for trial in self.plan.baseline)
        self.plan = self.plan.extended(scenarios_for(tools, taken=[s.name for s in self.plan.scenarios]))
        self.runner.prepare(self.plan.scenarios)
        if not tools:
            self.note("no tool was used in the runs without chaos, so no scenarios could be generated")
        self.listener(Planned(self.plan.command, len(self._left(self.plan.trials)), self.report(interrupted=True)))

    @property
    def finished(self) -> list[Judged]:
        """The runs that have ended, controls included, in plan order."""
        return sorted(self._done.values(), key=lambda judged: (len(judged.trial.run), judged.trial.run))

    def report(self, *, interrupted: bool = False) -> Report:
        """What is known now: scores, verdict, cells and runs in plan order."""
        order = self.finished
        doubt = "" if self.runner.budget is None else self.runner.budget.doubt
        paced = paced_by(self.runner.pacing)
        judgement = assemble(
            self.plan,
            order,
            self.gate,
            interrupted=interrupted,
            notes=(*self._notes, *([doubt] if doubt else ()), *paced.lines),
            stopped=self._stopped,
            early=self.early,
            resets=self.resets,
        )
        load, code, verdict, headline = None, judgement.exit_code, judgement.verdict, judgement.headline
        if self.plan.users:
            from flakestorm.engine.latency import with_limits  # few commands put load on an agent
            from flakestorm.engine.load import loaded

            paces = {name: pace for name, pace in self.runner.hooks.paces.items() if name in self._whole}
            load = loaded(self.plan, judgement.runs, judgement.cells, paces)
            if order:
                code, verdict, headline = with_limits(load, code, verdict, headline)
                headline = f"{headline}; {load.why}"
        return Report(
            command=self.plan.command,
            verdict=verdict,
            exit_code=code,
            headline=headline,
            seed=self.runner.seed,
            started_at=self._started_at or self.world.now(),
            duration_ms=round((self.world.monotonic() - self._started_s) * 1000, 1) if self._started_at else 0.0,
            scores=judgement.scores,
            cells=judgement.cells,
            runs=judgement.runs,
            scenarios=judgement.scenarios,
            invariants=judgement.invariants,
            prompts=tuple(map(self._redactor.hidden, self.plan.prompts)),
            notes=judgement.notes,
            interrupted=interrupted,
            config=self.config,
            agent=self.agent,
            version=__version__,
            planned=self.plan.count,
            stopped="" if not judgement.missing else self._stopped,
            saved=judgement.saved,
            load=load,
            pacing=paced.known,
        )

    def _finish(self, judged: Judged) -> None:
        self._done[judged.trial.run] = judged

    def note(self, text: str) -> None:
        """Something a reader of the report must know."""
        text = self._redactor.hidden(text)
        self._notes.append(text)
        self.listener(Note(text))

    def _unexplained(self) -> Iterable[int]:
        """Prompts that were never run as they are, and need be: to tell whether chaos, or a mutation, is the cause of a
        failure, or whether a fault was kept from acting by another one or could not act at all.

        Rules that hold only under chaos (`when`) have nothing to be compared with.
        """
        done = self._done.values()
        controlled = {j.trial.prompt for j in done if not j.trial.scenario.chaos and j.trial.mutation is None}
        failed = {
            judged.trial.prompt
            for judged in done
            if judged.trial.scenario.chaos or _still_asks_the_same(judged.trial)
            if any(i.when in _CALM and verdict.outcome == "fail" for i, verdict in judged.verdicts)
        }
        for scenario in self.plan.scenarios:
            runs = [judged for judged in done if judged.trial.scenario.name == scenario.name]
            if undecided(Schedule.of(scenario), runs):
                failed |= {judged.trial.prompt for judged in runs}
        return failed - controlled
