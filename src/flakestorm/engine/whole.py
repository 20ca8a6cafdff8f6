"""The whole of several phases: what `ci` makes of the reports of mutation, chaos, contract, replay and load.

Runs, scenarios, invariants and prompts of the phases stand side by side in one report, so each gets a name that is
nobody else's: run ids carry their phase, and a scenario or invariant whose name an earlier phase has taken does too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Literal

from flakestorm.core.verdict import Outcome
from flakestorm.engine.events import (
    CellResult,
    InvariantInfo,
    PhaseResult,
    Report,
    RunResult,
    ScenarioInfo,
    Score,
)
from flakestorm.engine.loaded import Loaded
from flakestorm.engine.pacing import together
from flakestorm.stats.intervals import in_places

__all__ = ["PHASES", "Names", "Whole", "overall", "rule"]

PHASES: Mapping[str, str] = {
    "mutation": "robustness", "chaos": "chaos", "contract": "contract", "replay": "replay", "load": "contract",
}  # fmt: skip
"""The phases in the order they are run, each with the score it gives. That of load is of the contract under load: it
stays with its phase, for the whole has one of that name already, and is no part of the overall score."""

_FULL = {"contract": 100.0, "load": 100.0}


@dataclass(frozen=True, slots=True)
class Names:
    """What a phase's things are called in the whole.

    Args:
        phase: its name.
        scenarios, invariants: new name by old one.
        prompts: index in the whole, by index in the phase.
    """

    phase: str
    scenarios: dict[str, str]
    invariants: dict[str, str]
    prompts: Sequence[int]

    def run(self, run: RunResult) -> RunResult:
        """The run, as the whole has it."""
        return replace(
            run,
            id=f"{self.phase}/{run.id}",
            scenario=self.scenarios.get(run.scenario, run.scenario),
            prompt=self.prompts[run.prompt],
        )

    def load(self, load: Loaded) -> Loaded:
        """How the levels went, as the whole has them."""
        levels = (replace(each, scenario=self.scenarios.get(each.scenario, each.scenario)) for each in load.levels)
        return replace(load, levels=tuple(levels))

    def cell(self, cell: CellResult) -> CellResult:
        """The cell, as the whole has it."""
        return replace(
            cell,
            run=f"{self.phase}/{cell.run}",
            scenario=self.scenarios.get(cell.scenario, cell.scenario),
            invariant=self.invariants.get(cell.invariant, cell.invariant),
            prompt=self.prompts[cell.prompt],
        )


@dataclass(slots=True)
class Whole:
    """Gathers phases in the order they are run.

    Args:
        golden: how many golden prompts there are; every phase counts its prompts from them.
    """

    golden: int
    _scenarios: dict[str, ScenarioInfo] = field(default_factory=dict)
    _invariants: dict[str, InvariantInfo] = field(default_factory=dict)
    _prompts: list[str] = field(default_factory=list)
    _names: dict[str, Names] = field(default_factory=dict)
    _reports: dict[str, Report] = field(default_factory=dict)

    def names(self, phase: str, outline: Report) -> Names:
        """What this phase's things are called, from a report of it that need not hold any run yet.

        A later report of the same phase may know more scenarios; what has a name keeps it.
        """
        known = self._names.get(phase, Names(phase, {}, {}, ()))
        scenarios = {
            s.name: _free(s.name, phase, self._scenarios) for s in outline.scenarios if s.name not in known.scenarios
        }
        self._scenarios |= {scenarios[s.name]: s for s in outline.scenarios if s.name in scenarios}
        invariants = {
            i.id: i.id if self._invariants.get(i.id) == i else _free(i.id, phase, self._invariants)
            for i in outline.invariants
            if i.id not in known.invariants
        }
        self._invariants |= {invariants[i.id]: i for i in outline.invariants if i.id in invariants}
        prompts = [self._place(prompt) for prompt in enumerate(outline.prompts)]
        self._names[phase] = Names(phase, known.scenarios | scenarios, known.invariants | invariants, prompts)
        return self._names[phase]

    def known(self, phase: str) -> Names | None:
        """What this phase's things are called, if that is known already."""
        return self._names.get(phase)

    def add(self, phase: str, report: Report) -> None:
        """A phase's report, whole or interrupted."""
        self.names(phase, report)
        self._reports[phase] = report

    def report(self, outline: Report, phases: Sequence[PhaseResult], *, min_score: float = 0.0) -> Report:
        """The report of all phases so far.

        Args:
            outline: command, seed, times and whatever else does not follow from the phases.
            phases: what became of each, in order.
            min_score: of the overall score, 0..1.
        """
        named = [(self._names[phase], report) for phase, report in self._reports.items()]
        scores = {k: score for names, report in named if names.phase != "load" for k, score in report.scores.items()}
        whole = overall(phases)
        exit_code, headline = rule(phases, whole, min_score=min_score)
        verdict: Outcome = {0: "pass", 1: "fail"}.get(exit_code, "inconclusive")  # type: ignore[assignment]
        if exit_code == 130 and any(phase.verdict == "fail" for phase in phases):
            verdict = "fail"
        return replace(
            outline,
            verdict=verdict,
            exit_code=exit_code,
            headline=headline,
            interrupted=exit_code == 130,
            scores={**scores, **({} if whole is None else {"overall": whole})},
            cells=tuple(names.cell(cell) for names, report in named for cell in report.cells),
            runs=tuple(names.run(run) for names, report in named for run in report.runs),
            scenarios=tuple(replace(s, name=name) for name, s in self._scenarios.items()),
            invariants=tuple(replace(i, id=name) for name, i in self._invariants.items()),
            prompts=tuple(self._prompts),
            notes=tuple(f"{names.phase}: {note}" for names, report in named for note in report.notes),
            phases=tuple(phases),
            planned=sum(report.planned for _, report in named),
            stopped=next((report.stopped for _, report in named if report.stopped), ""),
            saved=sum(report.saved for _, report in named),
            pacing=together(report.pacing for _, report in named),
            load=next((names.load(report.load) for names, report in named if report.load is not None), None),
        )

    def _place(self, numbered: tuple[int, str]) -> int:
        """Where a prompt stands in the whole: golden ones at their own place, probes after them."""
        at, text = numbered
        if at == len(self._prompts) and at < self.golden:
            self._prompts.append(text)
        if at < self.golden:
            return at
        if text not in self._prompts[self.golden :]:
            self._prompts.append(text)
        return self._prompts.index(text, self.golden)


def overall(phases: Sequence[PhaseResult]) -> Score | None:
    """The weighted mean of the phases that have a score, 0..1 to 4 places; None where there is none.

    The interval is Zou and Donner's (2008, "MOVER") for a linear combination of independent estimates: the distances
    of each phase's own limits from its value, weighted, added as squares.
    """
    scored = [(p, p.score, p.weight) for p in phases if p.weight > 0 and p.score and p.score.value is not None]
    total = sum(weight for _, _, weight in scored)
    if not scored or total <= 0:
        return None
    value = below = above = 0.0
    for phase, score, weight in scored:
        full, share = _FULL.get(phase.name, 1.0), weight / total
        at = (score.value or 0.0) / full
        value += share * at
        below += (share * (at - (at if score.low is None else score.low / full))) ** 2
        above += (share * ((at if score.high is None else score.high / full) - at)) ** 2
    if all(score.value == _FULL.get(phase.name, 1.0) for phase, score, _ in scored):
        value = 1.0  # and not what sums of shares come to in binary
    return Score(
        in_places(value, 4),
        round(max(value - sqrt(below), 0.0), 4),
        round(min(value + sqrt(above), 1.0), 4),
        sum(score.passed for _, score, _ in scored),
        sum(score.conclusive for _, score, _ in scored),
        sum(score.inconclusive for _, score, _ in scored),
        critical_failed=any(p.score.critical_failed for p in phases if p.score is not None),
    )


def rule(phases: Sequence[PhaseResult], whole: Score | None, *, min_score: float) -> tuple[Literal[0, 1, 3, 130], str]:
    """The gate of `ci`: its exit code, and one sentence that says why.

    A phase that failed its own gate (a critical failure, a failing session, a promise broken under load) fails it, and
    so does an overall score below `min_score`. A phase that is configured but could not be judged never counts as
    passed.
    """
    stopped = any(phase.status == "stopped" for phase in phases)
    if not stopped and any(phase.status in ("interrupted", "not run") for phase in phases):
        done = [phase.name for phase in phases if phase.status == "done"]
        return 130, f"interrupted; phases that had finished: {', '.join(done) or 'none'}"
    failed = [phase for phase in phases if phase.verdict == "fail"]
    if failed:
        more = f" (and {', '.join(phase.name for phase in failed[1:])})" if failed[1:] else ""
        return 1, f"{failed[0].name}: {failed[0].headline}{more}"
    if whole is not None and whole.value is not None and whole.value < min_score:
        return 1, f"the overall score {whole.value:g} is below the {min_score:g} asked for"
    unjudged = [phase for phase in phases if phase.verdict == "inconclusive"]
    if unjudged:
        more = f" (and {', '.join(phase.name for phase in unjudged[1:])})" if unjudged[1:] else ""
        return 3, f"{unjudged[0].name}: {unjudged[0].headline}{more}"
    passed = ", ".join(phase.name for phase in phases)
    if whole is None and min_score == 0 and phases and not any(phase.weight for phase in phases):
        return 0, f"the gate was met: {passed} passed; nothing here has a part in an overall score"
    if whole is None:
        return 3, "nothing was conclusive, so there is no overall score"
    return 0, f"the gate was met: overall {whole.value:g}, {passed} passed"


def _free(name: str, phase: str, taken: Mapping[str, object]) -> str:
    while name in taken:
        name = f"{name} ({phase})"
    return name
