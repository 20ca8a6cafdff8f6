"""Runs that a search asks for: schedules become trials of the agent under test, and trials become outcomes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from flakestorm.api.carrying import Work, in_words
from flakestorm.api.reusing import Reusing
from flakestorm.config.model import Invariant, Scenario
from flakestorm.contracts.matrix import wants_model
from flakestorm.core.conversation import turns_of
from flakestorm.core.verdict import Verdict
from flakestorm.engine.atoms import Ask, Atom, Atoms, Failure, Outcome, planned_of
from flakestorm.engine.events import CellResult, FaultAt, Listener, Note, Report, RunFinished, RunResult
from flakestorm.engine.judged import Judged, baselines_of, judged
from flakestorm.engine.plan import BASELINE, Trial, injected
from flakestorm.engine.ports import World
from flakestorm.engine.resume import view_of
from flakestorm.engine.runner import Runner
from flakestorm.errors import Misuse
from flakestorm.faults.schedule import Schedule

__all__ = ["Prober", "asides", "at", "command_line", "kind_of", "runs_of", "same_search"]

_SEVERITY = {"critical": 0, "high": 1, "medium": 2, "low": 3}
_ASIDE = re.compile(r"\([^()]*\)")
_QUOTE = re.compile(r"[\"'`]")
_VARIES = re.compile(r"https?://\S+|\b[0-9a-f]{8,}\b|\d+(?:[.,]\d+)*")
_RAISED = re.compile(r"\w+: the agent raised [\w.]+")
_WORDS = 14


def kind_of(reason: str) -> str:
    """A reason without what differs from run to run: its first words, up to a quotation, without numbers, sites and
    what stands in parentheses."""
    raised = _RAISED.match(reason)
    if raised is not None:
        return raised[0].lower()
    bare = _VARIES.sub("N", _QUOTE.split(_ASIDE.sub("", reason), maxsplit=1)[0])
    bare = re.sub(r"\b(?:llm|tool|mcp|http)/[^\s,;:)]+", "SITE", bare)
    return " ".join(bare.lower().split()[:_WORDS])


def asides(listener: Listener) -> Listener:
    """What a search's runner tells: notes alone, for the `Prober` tells of its runs."""
    return lambda event: listener(event) if isinstance(event, Note) else None


@dataclass(slots=True)
class Prober:
    """Makes the runs of one prompt or several.

    Args:
        work: the project.
        runner: carries out trials; is set to say where faults could act (`Hooks.sites`).
        seed: as the runner's.
        listener: is told of each finished run.
        done: every run that was made or taken over, in order.
        earlier: finished runs of an interrupted search; each answers one ask.
        world: limits how long judging may take.
        reusing: answers model calls by the run without faults, where it is wanted.
    """

    work: Work
    runner: Runner
    listener: Listener
    world: World
    done: list[Judged] = field(default_factory=list)
    earlier: dict[tuple[int, str, str], list[RunResult]] = field(default_factory=dict)
    reusing: Reusing | None = None
    _count: int = 0
    _others: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        ids = [int(run.id.rpartition("-")[2]) for runs in self.earlier.values() for run in runs if _numbered(run.id)]
        self._count = max(ids, default=0)
        self.runner.hooks.sites = True
        if self.reusing is not None:
            self.runner.hooks.within = self.reusing.within

    async def answer(self, asks: Sequence[tuple[int, str, tuple[Invariant, ...], Ask]]) -> list[Outcome]:
        """Make these runs, side by side as far as the runner allows.

        Args:
            asks: of each the prompt's index and text, what it is judged by, and the faults.
        """
        trials: list[Trial] = []
        found: dict[int, Judged] = {}
        places: dict[str, int] = {}
        for at, (prompt, text, invariants, ask) in enumerate(asks):
            scenario = scenario_of(ask.atoms)
            given = text if ask.text is None else ask.text
            known = self.earlier.get((prompt, given, _name(ask.atoms)))
            if known:
                self._others.update({known[0].id} if ask.text is not None else ())
                found[at] = again = self._taken_over(known.pop(0), prompt, given, invariants, scenario)
                if self.reusing is not None:
                    self.reusing.learn(again, passed=not outcome_of(again, ask).failures)
                continue
            self._count += 1
            run = f"r-{self._count:04d}"
            if ask.text is not None:
                self._others.add(run)
            places[run] = at
            if self.reusing is not None:
                self.reusing.begin(run, (prompt, given), ask)
            trials.append(Trial(run, scenario, prompt, given, 1, invariants))

        def finish(judged: Judged) -> None:
            at = places[judged.trial.run]
            named = replace(judged, run=replace(judged.run, scenario=_name(asks[at][3].atoms)))
            found[at] = named
            self.done.append(named)
            if self.reusing is not None:
                self.reusing.end(named, passed=not outcome_of(named, asks[at][3]).failures)
            self.listener(RunFinished(named.run, cells_of(named) if self.calm(named) else ()))

        await self.runner.carry_out(trials, finish)
        if not self.runner.baselines or any(not ask.atoms for *_, ask in asks):
            calm = [j for j in self.done if self.calm(j)]
            self.runner.baselines = baselines_of(calm)
        return [outcome_of(found[at], ask) for at, (*_, ask) in enumerate(asks)]

    def calm(self, judged: Judged) -> bool:
        """Whether this is a run of a prompt as it stands, and without faults."""
        return not judged.trial.scenario.chaos and judged.run.id not in self._others

    def _taken_over(
        self, run: RunResult, prompt: int, text: str, invariants: tuple[Invariant, ...], scenario: Scenario
    ) -> Judged:
        """A run of an earlier report, judged again by what its tape says."""
        from flakestorm.tape.reader import Tape
        from flakestorm.tape.tools import sites_of

        exchanges = Tape.open(Path(run.tape)).exchanges()
        trial = Trial(run.id, scenario, prompt, text, 1, invariants)
        baseline = self.runner.baselines.get(prompt)
        view = view_of(
            trial, replace(run, scenario=scenario.name), exchanges, self.runner.visible, self.runner.elsewhere, baseline
        )
        again = replace(judged(trial, run, view, self.world), sites=sites_of(exchanges))
        self.done.append(again)
        self.listener(RunFinished(run, ()))
        return again


def scenario_of(atoms: Atoms) -> Scenario:
    """The scenario that `flakestorm run --inject` makes of these faults."""
    return injected([planned_of(atom).spec for atom in sorted(atoms)])


def _name(atoms: Atoms) -> str:
    """A schedule's name in a report, which tells it in full."""
    return Schedule.of(scenario_of(atoms)).line if atoms else BASELINE.name


def outcome_of(judged: Judged, ask: Ask) -> Outcome:
    """What a finished run showed."""
    lines = {planned.index: planned.line for planned in Schedule.of(judged.trial.scenario).planned}
    by_line = {planned_of(atom).line: atom for atom in ask.atoms}
    ledger = judged.view.ledger
    firings = tuple((by_line[lines[firing.fault]], firing.site) for firing in ledger.fired)
    failing = [(i, v) for i, v in judged.verdicts if v.outcome == "fail"]
    failing.sort(key=lambda pair: _SEVERITY[pair[0].severity])
    failures = [Failure(str(i.id), kind_of(v.reason)) for i, v in failing]
    unreached = (judged.run.error or "").startswith("unreachable")
    # Where nothing was broken, a run that breaks no rule is as good as can be, though rules may say nothing about it.
    conclusive = bool(failing) or any(v.outcome == "pass" for _, v in judged.verdicts) or not (firings or unreached)
    if not conclusive:
        failures = [Failure("", kind_of(_first_reason(judged.verdicts)))]
    return Outcome(
        ask.atoms, firings, judged.sites, tuple(dict.fromkeys(failures)), conclusive, judged.run.id, ask.text
    )


def _first_reason(verdicts: Iterable[tuple[Invariant, Verdict]]) -> str:
    return next((verdict.reason for _, verdict in verdicts), "no invariant applied")


def cells_of(judged: Judged) -> tuple[CellResult, ...]:
    """The cells of a run, under its schedule's name."""
    return tuple(replace(cell, scenario=judged.run.scenario) for cell in judged.cells)


def command_line(work: Work, prompt: int, text: str | None, atoms: Iterable[Atom], seed: int) -> str:
    """The command line that makes a run again.

    Args:
        work: the project.
        prompt: the index of the golden prompt.
        text: the input, where it is no golden prompt; of a conversation, each turn is told.
        atoms: the faults.
        seed: of the run; named where the config does not say it.
    """
    words = [*(work.again or ("flakestorm", "run", "-c", str(work.path)))]
    if text is None:
        words += ["--prompt", str(prompt)]
    else:
        words += [word for turn in turns_of(text) for word in ("--input", turn)]
    if work.config.advanced.seed != seed:
        words += ["--seed", str(seed)]
    for atom in atoms:
        words += ["--inject", atom.line]
    return shlex.join(words)


def _numbered(run: str) -> bool:
    return run.rpartition("-")[2].isdigit()


def at(atom: Atom) -> FaultAt:
    """A fault as a report tells it."""
    planned = planned_of(atom)
    return FaultAt(planned.target, planned.mode, planned.fault)


def same_search(earlier: Report, command: str, work: Work, seed: int) -> None:
    """Make sure that a report to resume is of the same command, agent and seed.

    Raises:
        Misuse: it is not; the message says what differs.
    """
    if earlier.command != command:
        raise Misuse(f"the report to resume is of `{earlier.command}`, not of `{command}`")
    if earlier.seed != seed:
        raise Misuse(f"the report to resume was made with seed {earlier.seed}; resume it with that seed or none")
    if earlier.agent != in_words(work.config):
        raise Misuse("the report to resume was made with another agent; run the command without --resume")


def runs_of(earlier: Report | None, judges: Sequence[Invariant]) -> dict[tuple[int, str, str], list[RunResult]]:
    """The runs that need not be made again, by prompt, input and schedule; none where a model would be asked again."""
    found: dict[tuple[int, str, str], list[RunResult]] = {}
    if earlier is None or any(wants_model(invariant) for invariant in judges):
        return found
    for run in earlier.runs:
        if Path(run.tape).is_file() and not (run.error or "").startswith("unreachable"):
            found.setdefault((run.prompt, run.input, run.scenario), []).append(run)
    return found
