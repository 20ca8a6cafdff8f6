"""From judged runs to a verdict: cells, scores, the gate's ruling, and what only the whole scenario can tell.

The rules themselves live in `contracts/` (`cells.py`, `gate.py`); this is where they meet the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView, on_tape
from flakestorm.contracts.cells import (
    Cell,
    CellRate,
    mark_also_fails,
    mark_also_unmutated,
    never_applied,
    never_found,
    tools_found,
)
from flakestorm.contracts.evidence import brief
from flakestorm.contracts.gate import (
    Ruling,
    contract_gate,
    contract_score,
    replay_gate,
    replay_score,
    run_score,
    score_gate,
)
from flakestorm.contracts.judging import trusted
from flakestorm.contracts.matrix import applicable
from flakestorm.core.ledger import Ledger
from flakestorm.core.record import Record
from flakestorm.core.verdict import Outcome, Verdict, inconclusive
from flakestorm.engine.accounting import Account, account
from flakestorm.engine.events import CellResult, InvariantInfo, RunResult, ScenarioInfo, Score
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import Plan, Trial
from flakestorm.engine.rounds import groups_of
from flakestorm.engine.steadiness import unsteady_prompts
from flakestorm.faults.schedule import Schedule
from flakestorm.stats.early import RISK, decided

__all__ = ["UNHELD", "Gate", "Judgement", "assemble"]

UNHELD = (
    "no call of the agent crossed the boundary, so no fault could reach it: flakestorm did not start this agent, which "
    "must therefore send its calls through a gateway. Run `flakestorm gateway` in this folder, start the agent with "
    "the variables that it prints, and run this command again; or give agent.start"
)
"""Said of an agent that somebody else started, when nothing was seen of it."""

UNSEEN = (
    "no call of the agent crossed the boundary in any run, so {rules} passed only because nothing was seen: make sure "
    "with `flakestorm verify` that the agent's calls can be seen (Node's fetch, for one, heeds no proxies)"
)
"""Said of an agent that flakestorm started, when rules about calls passed for want of any."""


class Gate(Record, frozen=True):
    """When a command fails.

    Args:
        rule: `mutation`: as `chaos`, by the robustness score; `contract`: on any failing cell, unless `min_score`
            decides about those that are not critical; `chaos`: on a critical failure or below `min_score`; `single`:
            one run with chosen faults, on any failing cell, or as `chaos` where `min_score` is given; `replay`: on any
            failing session.
        min_score: on the scale of the command's score; None is the rule's default.
    """

    rule: Literal["contract", "chaos", "single", "mutation", "replay"]
    min_score: float | None = None


class Judgement(Record, frozen=True):
    """What the runs add up to; the fields are those of `Report`."""

    verdict: Outcome
    exit_code: int
    headline: str
    scores: dict[str, Score]
    cells: tuple[CellResult, ...]
    invariants: tuple[InvariantInfo, ...]
    notes: tuple[str, ...]
    runs: tuple[RunResult, ...]
    scenarios: tuple[ScenarioInfo, ...]
    missing: int = 0
    saved: int = 0


def assemble(
    plan: Plan,
    judged: Sequence[Judged],
    gate: Gate,
    *,
    interrupted: bool = False,
    notes: Sequence[str] = (),
    stopped: str = "",
    early: bool = False,
    resets: bool = True,
) -> Judgement:
    """Judge the whole from its runs.

    Args:
        plan: what was to be run.
        judged: what was run, controls included, in plan order.
        gate: when the command fails.
        interrupted: whether runs of the plan are missing because somebody pressed Ctrl-C.
        notes: things already known that a reader must know.
        stopped: the limit of the budget that was reached, if one was.
        early: whether trials were left out where the verdicts of their cells were decided.
        resets: whether something sets the agent back before each run.
    """
    schedules = {scenario.name: Schedule.of(scenario) for scenario in plan.scenarios}
    accounts = _accounts(schedules, judged)
    cells, found = _cells(plan, judged, accounts)
    groups = groups_of(plan.trials, judged)
    left = [group for group in groups if group.left]
    saved = sum(len(group.left) for group in left if group.settled()) if early else 0
    cut = [t for group in left for t in group.left if not (early and group.settled())] if stopped else []
    unmade = [_unmade(trial, i, stopped) for trial in cut for i in trial.invariants if applicable(i, _ahead(trial))]
    every = [*cells, *unmade]
    ruling, scores = _robustness(plan, gate, every) if gate.rule == "mutation" else _rule(gate, every)
    exit_code, verdict, headline = ruling.exit_code, ruling.verdict, ruling.headline
    if cut and not (exit_code == 1 and _surely_failed(gate, ruling, unmade)):
        exit_code, verdict = 3, "inconclusive"
    if cut:
        made = len(plan.trials) - len(cut)
        headline = (
            f"the budget was reached ({stopped}), {made} of {len(plan.trials)} runs were made; so far: {headline}"
        )
    if saved:
        found.append(_savings(saved, len(plan.trials)))
    unsteady, said = ((), []) if resets else unsteady_prompts(judged)
    found += said
    cells = [replace(cell, unsteady=True) if cell.prompt in unsteady else cell for cell in (*cells, *unmade)]
    if not judged:
        headline = brief(next(iter(notes), "nothing was run"), 600)
    told = {j.run.id: j.run for found_in in accounts.values() for j in found_in.runs}
    run_of = {(j.trial.scenario.name, j.trial.prompt, j.trial.number): j.run.id for j in judged}
    made_runs = set(run_of.values())
    run_of |= {(t.scenario.name, t.prompt, t.number): t.run for t in cut}
    if interrupted:
        missing = plan.count - sum(t.run in made_runs for t in plan.runs) - saved
        verdict = "fail" if verdict == "fail" else "inconclusive"
        headline = f"interrupted, {missing} of {plan.count} runs were not made; so far: {headline}"
    return Judgement(
        verdict=verdict,
        exit_code=130 if interrupted else exit_code,
        headline=" ".join(headline.split()),
        scores=scores,
        cells=tuple(_result(cell, run_of[cell.run]) for cell in cells),
        invariants=tuple(_info(invariant) for invariant in plan.invariants),
        notes=(*notes, *found),
        runs=tuple(told.get(j.run.id, j.run) for j in judged),
        scenarios=tuple(ScenarioInfo(name, s.lines, accounts[name].tallies) for name, s in schedules.items()),
        missing=len(cut),
        saved=saved,
    )


def _unmade(trial: Trial, invariant: Invariant, stopped: str) -> Cell:
    """The cell of a run that the budget did not allow."""
    reason = f"budget: {stopped} was reached before this run"
    rate = 1.0 if invariant.min_pass_rate is None else invariant.min_pass_rate
    name = trial.scenario.name
    return Cell(name, str(invariant.id), invariant.severity, trial.prompt, trial.number, inconclusive(reason), rate)


def _ahead(trial: Trial) -> RunView:
    """The run as far as the plan knows it."""
    ledger = Ledger()
    Schedule.of(trial.scenario).enter(ledger)
    return RunView(trial.text, scenario=trial.scenario.name, chaos=trial.scenario.chaos, ledger=ledger)


def _surely_failed(gate: Gate, ruling: Ruling, unmade: Sequence[Cell]) -> bool:
    """Whether the gate would have failed whatever the runs that were not made had said."""
    left: Counter[tuple[str, str, int]] = Counter((c.scenario, c.invariant, c.prompt) for c in unmade)

    def sure(cell: CellRate) -> bool:
        trials = cell.conclusive + left[cell.scenario, cell.invariant, cell.prompt]
        return decided(cell.passed, cell.failed, trials=trials, rate=cell.min_pass_rate, risk=0) == "fail"

    by_score = gate.rule == "chaos" or gate.min_score is not None
    return any(sure(cell) for cell in ruling.failing if cell.severity == "critical" or not by_score)


def _savings(saved: int, trials: int) -> str:
    return (
        f"{saved} of {trials} runs were not made, because the verdicts of their cells were decided (each would have "
        f"come out otherwise with a chance below {RISK:.1%}). That decides verdicts and not rates: what fails is left "
        "sooner, so scores and rates of this report, and their intervals, are not those of all trials. --all-trials "
        "makes them all, and then pass^k and the flake rate are given too"
    )


def _accounts(schedules: Mapping[str, Schedule], judged: Sequence[Judged]) -> dict[str, Account]:
    """By the scenario's name."""
    calm = [j for j in judged if not j.trial.scenario.chaos]
    runs: dict[str, list[Judged]] = {name: [] for name in schedules}
    for j in judged:
        if j.trial.scenario.name in runs:  # controls are of none that was planned
            runs[j.trial.scenario.name].append(j)
    return {name: account(schedule, runs[name], calm) for name, schedule in schedules.items()}


def _remarks(judged: Sequence[Judged]) -> list[str]:
    """What readers of tapes should know, each with the first run it is about."""
    first: dict[str, str] = {}
    for j in judged:
        for line in j.run.remarks:
            first.setdefault(line, j.run.id)
    return [f"{line} (first in {run})" for line, run in first.items()]


def _cells(plan: Plan, judged: Sequence[Judged], accounts: Mapping[str, Account]) -> tuple[list[Cell], list[str]]:
    """The planned cells, with what only whole scenarios can tell, and notes about it."""
    trials = {trial.run for trial in plan.trials}
    cells = [_cell(j, i, v) for j in judged if j.trial.run in trials for i, v in j.verdicts]
    notes: list[str] = []
    if judged and not plan.users and not any(j.view.held for j in judged) and _matters(plan):
        notes.append(UNHELD)
    elif judged and not plan.users and not any(sum(j.run.calls.values()) for j in judged):
        on_calls = {str(i.id) for i in plan.invariants if i.type in on_tape}
        if quiet := dict.fromkeys(
            c.invariant for c in cells if c.verdict.outcome == "pass" and c.invariant in on_calls
        ):
            notes.append(UNSEEN.format(rules=", ".join(quiet)))
    for name, found in accounts.items():
        if unfound := [planned for planned in found.unfound if planned.family == "tool" and planned.particular]:
            lost = [planned.describe() for planned in unfound]
            seen = tuple(dict.fromkeys(name for j in found.runs for name in j.run.seen))
            near = [name for name in seen if any(planned.names(name) for planned in unfound)]
            cells = never_found(cells, scenario=name, faults=lost, seen=seen, unreached=near)
            notes.append(f"scenario {name}: {', '.join(lost)} never found its tool; {tools_found(seen, near)}")
        for planned in found.impossible:
            if planned not in found.unfound:
                notes.append(f"scenario {name}: {planned.describe()} waits for a call that no run makes")
            elif planned not in unfound:
                notes.append(f"scenario {name}: {planned.describe()} found no call to act on in any run")
        notes += [
            f"scenario {name}: {tally.fault} was masked in every run, because other faults came before it"
            for tally in found.tallies
            if tally.masked == tally.runs
        ]
    unused = never_applied([str(i.id) for i in plan.invariants], cells) if judged else ()
    notes += [f"{name} applied to no run, so nothing is known about it; see its `when` and `probes`" for name in unused]
    notes += [*_remarks(judged), *_unlike(judged)]
    cells, doubts = trusted(cells, plan.invariants, [j.view for j in judged])
    notes += doubts
    controls = [_cell(j, i, v) for j in judged if not j.trial.scenario.chaos for i, v in j.verdicts]
    as_is = [_cell(j, i, v) for j in judged if _as_it_is(j.trial) for i, v in j.verdicts]
    mutated = {
        (t.scenario.name, t.prompt, t.number)
        for t in plan.trials
        if t.mutation is not None and t.mutation.kind == "benign"
    }
    return mark_also_unmutated(mark_also_fails(cells, controls), as_is, mutated), notes


def _as_it_is(trial: Trial) -> bool:
    return trial.mutation is None and not trial.scenario.chaos


def _matters(plan: Plan) -> bool:
    """Whether anything here depends on the boundary."""
    return any(s.chaos for s in plan.scenarios) or any(i.type in on_tape for i in plan.invariants)


def _rule(gate: Gate, cells: Sequence[Cell]) -> tuple[Ruling, dict[str, Score]]:
    if gate.rule == "contract":
        return contract_gate(cells, min_score=gate.min_score), {"contract": contract_score(cells)}
    if gate.rule == "replay":
        return replay_gate(cells), {"replay": replay_score(cells)}
    numbers = run_score(cells)
    if gate.rule == "single" and gate.min_score is None:
        return contract_gate(cells), {"chaos": numbers}
    return score_gate(cells, numbers, min_score=gate.min_score or 0.0), {"chaos": numbers}


def _robustness(plan: Plan, gate: Gate, cells: Sequence[Cell]) -> tuple[Ruling, dict[str, Score]]:
    """The score of all mutations, which decides, and those of benign ones and of attacks apart."""
    tests = {(t.scenario.name, t.prompt, t.number): t.mutation for t in plan.trials if t.mutation is not None}
    weights = {test: mutation.weight for test, mutation in tests.items() if mutation.weight > 0}
    judged = [cell for cell in cells if cell.run in weights]
    numbers = run_score(judged, weights=weights)
    parts = {"benign": "benign", "resistance": "attack"}
    apart = {
        name: run_score([cell for cell in judged if tests[cell.run].kind == kind], weights=weights)
        for name, kind in parts.items()
        if any(mutation.kind == kind for mutation in tests.values())
    }
    ruling = score_gate(cells, numbers, min_score=gate.min_score or 0.0)
    return ruling, {"robustness": numbers, **apart}


def _unlike(judged: Sequence[Judged]) -> list[str]:
    """What became of mutations of the request that were not judged like others."""
    notes = []
    idle = [j.run.mutation.type for j in judged if j.run.mutation and j.run.mutation.status == "not applicable"]
    if idle:
        types = ", ".join(dict.fromkeys(idle))
        notes.append(f"not applicable: {types}: they transform an HTTP request, and this agent is asked by none")
    turned_away = sum(j.view.refused for j in judged)
    if turned_away:
        notes.append(
            f"{turned_away} attacks on the request were turned away (4xx, 501, 505), which is a proper answer; rules "
            "about the output do not apply to them"
        )
    return notes


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
        also_fails_unmutated=cell.also_fails_unmutated,
        min_pass_rate=cell.min_pass_rate,
        unsteady=cell.unsteady,
    )


def _info(invariant: Invariant) -> InvariantInfo:
    return InvariantInfo(
        str(invariant.id), invariant.type, invariant.severity, invariant.description or "", invariant.when
    )
