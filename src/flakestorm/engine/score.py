"""From judged runs to a verdict: cells, scores, the gate's ruling, and what only the whole scenario can tell.

The rules themselves live in `contracts/` (`cells.py`, `gate.py`); this is where they meet the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from flakestorm.config.model import Invariant
from flakestorm.contracts.cells import Cell, mark_also_fails, never_applied, never_found, tools_found
from flakestorm.contracts.gate import Ruling, ScoreNumbers, contract_gate, contract_score, run_score, score_gate
from flakestorm.core.verdict import Outcome, Verdict
from flakestorm.engine.events import CellResult, InvariantInfo, Score
from flakestorm.engine.plan import Plan
from flakestorm.engine.runner import Judged
from flakestorm.faults.schedule import Schedule

__all__ = ["Gate", "Judgement", "assemble"]


@dataclass(frozen=True, slots=True)
class Gate:
    """When a command fails.

    Args:
        rule: `contract`: on any failing cell, unless `min_score` decides about those that are not critical; `chaos`: on
            a critical failure or below `min_score`; `single`: one run with chosen faults, on any failing cell, or as
            `chaos` where `min_score` is given.
        min_score: on the scale of the command's score; None is the rule's default.
    """

    rule: Literal["contract", "chaos", "single"]
    min_score: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the runs add up to; the fields are those of `Report`."""

    verdict: Outcome
    exit_code: int
    headline: str
    scores: dict[str, Score]
    cells: tuple[CellResult, ...]
    invariants: tuple[InvariantInfo, ...]
    notes: tuple[str, ...]


def assemble(
    plan: Plan, judged: Sequence[Judged], gate: Gate, *, interrupted: bool = False, notes: Sequence[str] = ()
) -> Judgement:
    """Judge the whole from its runs.

    Args:
        plan: what was to be run.
        judged: what was run, controls included, in plan order.
        gate: when the command fails.
        interrupted: whether runs of the plan are missing because somebody pressed Ctrl-C.
        notes: things already known that a reader must know.
    """
    cells, found = _cells(plan, judged)
    ruling, scores = _rule(gate, cells)
    exit_code, verdict, headline = ruling.exit_code, ruling.verdict, ruling.headline
    if not judged:
        headline = next(iter(notes), "nothing was run")
    run_of = {(j.trial.scenario.name, j.trial.prompt, j.trial.number): j.run.id for j in judged}
    if interrupted:
        missing = len(plan.trials) - sum(t.run in run_of.values() for t in plan.trials)
        verdict = "fail" if verdict == "fail" else "inconclusive"
        headline = f"interrupted, {missing} of {len(plan.trials)} runs were not made; so far: {headline}"
    return Judgement(
        verdict=verdict,
        exit_code=130 if interrupted else exit_code,
        headline=" ".join(headline.split()),
        scores=scores,
        cells=tuple(_result(cell, run_of[cell.run]) for cell in cells),
        invariants=tuple(_info(invariant) for invariant in plan.invariants),
        notes=(*notes, *found),
    )


def _cells(plan: Plan, judged: Sequence[Judged]) -> tuple[list[Cell], list[str]]:
    """The planned cells, with what only whole scenarios can tell, and notes about it."""
    planned = {trial.run for trial in plan.trials}
    cells = [_cell(j, i, v) for j in judged if j.trial.run in planned for i, v in j.verdicts]
    notes = []
    for scenario in plan.scenarios:
        runs = [j for j in judged if j.trial.scenario.name == scenario.name]
        unmatched = Schedule.of(scenario).unmatched([j.view.ledger for j in runs]) if runs else ()
        if unmatched:
            lost = [planned.describe() for planned in unmatched]
            seen = tuple(dict.fromkeys(name for j in runs for name in j.run.seen))
            near = [name for name in seen if any(planned.names(name) for planned in unmatched)]
            cells = never_found(cells, scenario=scenario.name, faults=lost, seen=seen, unreached=near)
            notes.append(f"scenario {scenario.name}: {', '.join(lost)} never found its tool; {tools_found(seen, near)}")
        idle = [p for p in Schedule.of(scenario).planned if not any(p.index in j.view.ledger.matched for j in runs)]
        notes += [
            f"scenario {scenario.name}: {p.describe()} found no call to act on in any run"
            for p in idle
            if runs and p not in unmatched
        ]
    unused = never_applied([str(i.id) for i in plan.invariants], cells) if judged else ()
    notes += [f"{name} applied to no run, so nothing is known about it; see its `when` and `probes`" for name in unused]
    controls = [_cell(j, i, v) for j in judged if not j.trial.scenario.chaos for i, v in j.verdicts]
    return mark_also_fails(cells, controls), notes


def _rule(gate: Gate, cells: Sequence[Cell]) -> tuple[Ruling, dict[str, Score]]:
    if gate.rule == "contract":
        return contract_gate(cells, min_score=gate.min_score), {"contract": _score(contract_score(cells))}
    numbers = run_score(cells)
    if gate.rule == "single" and gate.min_score is None:
        return contract_gate(cells), {"chaos": _score(numbers)}
    return score_gate(cells, numbers, min_score=gate.min_score or 0.0), {"chaos": _score(numbers)}


def _score(numbers: ScoreNumbers) -> Score:
    return Score(**{field.name: getattr(numbers, field.name) for field in fields(numbers)})


def _cell(judged: Judged, invariant: Invariant, verdict: Verdict) -> Cell:
    rate = 1.0 if invariant.min_pass_rate is None else invariant.min_pass_rate
    trial = judged.trial
    return Cell(
        trial.scenario.name,
        str(invariant.id),
        invariant.severity,
        trial.prompt,
        trial.number,
        verdict,
        min_pass_rate=rate,
    )


def _result(cell: Cell, run: str) -> CellResult:
    return CellResult(
        scenario=cell.scenario,
        invariant=cell.invariant,
        severity=cell.severity,
        prompt=cell.prompt,
        trial=cell.trial,
        verdict=cell.verdict.outcome,
        reason=cell.verdict.reason,
        run=run,
        also_fails_without_chaos=cell.also_fails_without_chaos,
    )


def _info(invariant: Invariant) -> InvariantInfo:
    return InvariantInfo(
        str(invariant.id), invariant.type, invariant.severity, invariant.description or "", invariant.when
    )
