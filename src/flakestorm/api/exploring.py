"""`explore`: the search (`engine/explore.py`) meets the agent under test."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from flakestorm.api.carrying import (
    Work,
    hub_of,
    in_words,
    report_in,
    runner_of,
    seed_of,
)
from flakestorm.api.loops import in_a_loop
from flakestorm.api.mutating import benign
from flakestorm.api.options import Options
from flakestorm.api.probing import Prober, asides, at, cells_of, command_line, runs_of, same_search
from flakestorm.api.reusing import Reusing
from flakestorm.config.model import Invariant
from flakestorm.contracts.matrix import prepare
from flakestorm.core.choices import Choices
from flakestorm.core.verdict import Outcome
from flakestorm.engine.atoms import Ask, Asking
from flakestorm.engine.atoms import Outcome as Showed
from flakestorm.engine.events import (
    CoverageResult,
    Finding,
    Finished,
    InvariantInfo,
    Note,
    Planned,
    Progressed,
    Report,
    ScenarioInfo,
)
from flakestorm.engine.explore import Search
from flakestorm.engine.found import Found
from flakestorm.engine.ground import Coverage
from flakestorm.engine.inputs import Inputs
from flakestorm.engine.judged import Judged
from flakestorm.engine.pacing import Paced, paced_by
from flakestorm.engine.plan import BASELINE
from flakestorm.engine.repertoire import Repertoire
from flakestorm.errors import AgentUnreachable, Misuse
from flakestorm.executors.interruption import interruptible
from flakestorm.executors.world import LocalWorld
from flakestorm.version import __version__

__all__ = ["BUDGET", "Hunt", "explore"]

BUDGET = 200
"""Runs of the agent, unless the user says otherwise."""


@dataclass(slots=True)
class Hunt:
    """The search over one prompt.

    Args:
        prompt, text: which.
        invariants: what its runs are judged by.
        search: what decides.
        inputs: goes on with other inputs.
    """

    prompt: int
    text: str
    invariants: tuple[Invariant, ...]
    search: Search
    inputs: Inputs
    steps: Asking[None] | None = None
    asks: Sequence[Ask] = ()

    def begin(self) -> None:
        """Take the first step."""
        self.steps = self._whole()
        self.asks = next(self.steps)

    def _whole(self) -> Asking[None]:
        yield from self.search.steps()
        yield from self.inputs.steps()

    def go_on(self, outcomes: Sequence[Showed]) -> None:
        """Take the next step, with what the runs that were asked for have shown."""
        try:
            self.asks = self.steps.send(outcomes) if self.steps is not None else ()
        except StopIteration:
            self.asks = ()


@dataclass(slots=True)
class _Expedition:
    """Several prompts searched side by side, with runs in common."""

    work: Work
    options: Options
    hunts: list[Hunt]
    budget: int
    max_time_s: float | None
    world: LocalWorld
    seed: int
    earlier: Report | None = None
    prober: Prober | None = None
    started_s: float = 0.0
    started_at: str = ""
    notes: list[str] = field(default_factory=list)

    async def go(self, prober: Prober) -> None:
        """Search until every hunt is over, the runs are used up, or the time is."""
        self.prober = prober
        try:
            await prober.runner.agent.start()
        except AgentUnreachable as error:
            self._note(f"the agent could not be reached: {error}")
            return
        for hunt in self.hunts:
            hunt.begin()
        while open_ := [hunt for hunt in self.hunts if hunt.asks]:
            if self.max_time_s is not None and self.world.monotonic() - self.started_s > self.max_time_s:
                self._note(f"the search was ended after {self.max_time_s:g} s (--max-time)")
                return
            left = self.budget - len(prober.done)
            turn: list[Hunt] = []
            for hunt in sorted(open_, key=lambda hunt: len(hunt.search.asker.runs)):
                if len(hunt.asks) <= left:
                    turn.append(hunt)
                    left -= len(hunt.asks)
            if not turn:
                self._note(f"the search was ended after {len(prober.done)} runs (--budget {self.budget})")
                return
            asks = [(hunt.prompt, hunt.text, hunt.invariants, ask) for hunt in turn for ask in hunt.asks]
            outcomes = await prober.answer(asks)
            for hunt in turn:
                mine, outcomes = outcomes[: len(hunt.asks)], outcomes[len(hunt.asks) :]
                hunt.go_on(mine)
            self._tell()

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self.options.listener(Note(text))

    def _tell(self) -> None:
        covered, found = self.coverage, sum(len(hunt.search.findings) for hunt in self.hunts)
        self.options.listener(
            Progressed(
                f"sites {covered.sites}/{covered.all_sites}  singles {covered.singles}/{covered.all_singles}  "
                f"pairs {covered.pairs}/{covered.all_pairs}  found {found}"
            )
        )

    @property
    def coverage(self) -> Coverage:
        return sum((hunt.search.coverage for hunt in self.hunts), Coverage())

    def report(self, *, interrupted: bool = False) -> Report:
        """What is known now."""
        done = self.prober.done if self.prober is not None else []
        by_id = {judged.run.id: judged for judged in done}
        findings = [self._finding(hunt, found, by_id) for hunt in self.hunts for found in hunt.search.findings]
        verdict, code, headline = self._ruling(findings)
        covered = self.coverage
        shown = [] if self.prober is None else [judged for judged in done if self.prober.calm(judged)]
        shown += [by_id[finding.run] for finding in findings]
        names = dict.fromkeys(judged.run.scenario for judged in done)
        invariants = {str(i.id): i for hunt in self.hunts for i in hunt.invariants}
        return Report(
            command="explore",
            verdict="inconclusive" if interrupted and verdict == "pass" else verdict,
            exit_code=130 if interrupted else code,
            headline=f"interrupted; so far: {headline}" if interrupted else headline,
            seed=self.seed,
            started_at=self.started_at,
            duration_ms=round((self.world.monotonic() - self.started_s) * 1000, 1),
            scores={},
            cells=tuple(cell for judged in {j.run.id: j for j in shown}.values() for cell in cells_of(judged)),
            runs=tuple(judged.run for judged in sorted(done, key=lambda judged: (len(judged.run.id), judged.run.id))),
            scenarios=tuple(
                ScenarioInfo(name, () if name == BASELINE.name else tuple(name.split("; ")))
                for name in names
                if name in {judged.run.scenario for judged in shown}
            ),
            invariants=tuple(
                InvariantInfo(name, i.type, i.severity, i.description or "", i.when) for name, i in invariants.items()
            ),
            prompts=tuple(self.work.config.golden_prompts),
            notes=(*self.notes, *self._remarks()),
            interrupted=interrupted,
            config=str(self.work.path),
            agent=in_words(self.work.config),
            version=__version__,
            findings=tuple(findings),
            pacing=self._paced.known,
            coverage=CoverageResult(
                covered.sites,
                covered.singles,
                covered.pairs,
                {"sites": covered.all_sites, "singles": covered.all_singles, "pairs": covered.all_pairs},
                complete=bool(self.hunts) and all(hunt.search.finished for hunt in self.hunts),
                saved=sum(hunt.search.asker.saved for hunt in self.hunts),
            ),
        )

    def _finding(self, hunt: Hunt, found: Found, runs: dict[str, Judged]) -> Finding:
        judged = runs[found.run]
        said = {str(i.id): (i, verdict) for i, verdict in judged.verdicts}
        invariant, verdict = said[found.failure.invariant]
        return Finding(
            schedule=tuple(at(atom) for atom in found.schedule),
            invariant=found.failure.invariant,
            severity=invariant.severity,
            reason=verdict.reason,
            prompt=hunt.prompt,
            run=found.run,
            reproduce=command_line(self.work, hunt.prompt, found.text, found.schedule, self.seed),
            input=None if found.text is None else str(found.text),
            also=tuple(tuple(atom.line for atom in also) for also in found.also),
        )

    def _ruling(self, findings: Sequence[Finding]) -> tuple[Outcome, int, str]:
        if findings:
            first = min(findings, key=lambda finding: len(finding.schedule))
            faults = " and ".join(f"{fault.site}={fault.fault}" for fault in first.schedule)
            more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
            faults += "" if first.input is None else " with another input"
            return "fail", 1, f"a promise was broken: {faults} breaks {first.invariant}{more}"
        covered = self.coverage
        if not covered.singles:
            why = next(iter([*self.notes, *self._remarks()]), "no call was seen that could be broken")
            return "inconclusive", 3, f"nothing could be searched: {why}"
        broken = [hunt.prompt for hunt in self.hunts if _fails_anyway(hunt.search)]
        if broken:  # a promise that is broken anyway is not kept under faults, and was not looked at under any
            prompts = f"prompt{'' if len(broken) == 1 else 's'} {', '.join(map(str, broken))}"
            tried = f"{covered.singles} of {covered.all_singles} faults"
            why = f"could not be searched, for a promise is broken there without any fault; with the others, {tried}"
            return "inconclusive", 3, f"{prompts} {why} broke none"
        if all(hunt.search.finished for hunt in self.hunts) and covered.complete:
            return (
                "pass",
                0,
                f"no schedule of at most two of these faults breaks a promise: {covered.singles} faults at "
                f"{covered.sites} calls and all {covered.pairs} pairs that can meet were tried",
            )
        return (
            "pass",
            0,
            (
                f"no promise was broken by what was tried: {covered.singles} of {covered.all_singles} faults and "
                f"{covered.pairs} of {covered.all_pairs} pairs"
            ),
        )

    @property
    def _paced(self) -> Paced:
        return paced_by(None if self.prober is None else self.prober.runner.pacing)

    def _remarks(self) -> list[str]:
        """What a reader must know about single prompts."""
        said = []
        reusing = None if self.prober is None else self.prober.reusing
        if reusing is not None:
            said.append(f"{reusing.spared} of {reusing.all} model calls were answered as in the run without faults")
        said += self._paced.lines
        for hunt in self.hunts:
            search, name = hunt.search, f"prompt {hunt.prompt}"
            if search.calm is not None and not search.ground.bases:
                if _fails_anyway(search):
                    broken = ", ".join(dict.fromkeys(f.invariant or f.kind for f in search.calm.failures))
                    said.append(f"{name} was not searched, because it fails without any fault: {broken}")
                elif not search.calm.sites:
                    said.append(f"{name} was not searched, because no call crossed the boundary: check agent and tools")
            if hunt.inputs.texts:
                given, alone = len(hunt.inputs.given), len(hunt.inputs.alone)
                counts = hunt.inputs.given.values()
                most = f", each with up to {max(counts)} faults" if given else ""
                fails = f"; {alone} more fail without any fault: `flakestorm run` tells of those" if alone else ""
                said.append(
                    f"{name}: faults were tried with {given} of {len(hunt.inputs.texts)} other inputs{most}{fails}"
                )
            if search.unjudged:
                faults = "; ".join(" and ".join(atom.line for atom in sorted(atoms)) for atoms in search.unjudged)
                said.append(f"{name}: no invariant could be judged under {faults}")
            if not search.asker.steady:
                rate = search.asker.test.p0
                said.append(
                    f"{name}: the agent fails by itself in about {rate:.0%} of runs, so each query took several"
                )
        return said


def _fails_anyway(search: Search) -> bool:
    """Whether nothing was searched because the prompt fails without any fault."""
    return search.calm is not None and not search.ground.bases and bool(search.calm.failures)


def explore(
    work: Work,
    invariants: Sequence[Invariant],
    repertoire: Repertoire,
    options: Options,
    *,
    budget: int = BUDGET,
    max_time_s: float | None = None,
    prompts: Sequence[int] | None = None,
    inputs: int = 0,
    reuse: bool = False,
) -> Report:
    """Search the schedules of faults for the smallest ones that break a promise.

    Args:
        work: the project.
        invariants: the promises.
        repertoire: the faults to try.
        options: how.
        budget: at most so many runs.
        max_time_s: begin no further runs after this, in seconds.
        prompts: indexes of the golden prompts to search; None for all.
        inputs: how many mutations of each prompt are searched after it.
        reuse: whether a model call that asks what it asked without faults is answered as it was then.

    Raises:
        Misuse: the options do not fit one another, or the config names what is not available.
    """
    config = work.config
    prepare(invariants)
    earlier = None if options.resume is None else report_in(options.resume)
    seed = seed_of(config, options, None if earlier is None else earlier.seed)
    if earlier is not None:
        same_search(earlier, "explore", work, seed)
    golden = config.golden_prompts
    chosen = range(len(golden)) if prompts is None else prompts
    judges = tuple(i for i in invariants if not i.probes)
    hunts = []
    for p in chosen:
        searching = Search(repertoire.faults, repertoire.lasting, Choices(seed).stream("explore", p))
        texts = benign(config, golden[p], inputs, seed) if inputs else ()
        hunts.append(Hunt(p, golden[p], judges, searching, Inputs(searching, texts)))
    if reuse and any(invariant.type == "latency" for invariant in judges):
        raise Misuse("a model reply that is used again takes no time, so a 'latency' rule would judge what never was")
    reusing = Reusing(config.boundary.match) if reuse else None
    world = LocalWorld(options.tapes)
    hunt = _Expedition(work, options, hunts, budget, max_time_s, world, seed, earlier)
    hunt.started_s, hunt.started_at = world.monotonic(), world.now()
    options.listener(Planned("explore", budget, hunt.report(interrupted=True)))
    quiet = replace(options, listener=asides(options.listener))

    async def search() -> Report:
        interrupted = False
        with interruptible() as signals, world.reserved():
            async with runner_of(work, (), judges, quiet, seed, world, hub_of(config)) as runner:
                prober = Prober(
                    work, runner, options.listener, world, earlier=runs_of(earlier, judges), reusing=reusing
                )
                try:
                    await hunt.go(prober)
                except asyncio.CancelledError:
                    if not signals:
                        raise
                    interrupted = True
        report = hunt.report(interrupted=interrupted)
        options.listener(Finished(report))
        return report

    return in_a_loop(search)
