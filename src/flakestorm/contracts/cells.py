"""Cells, their rates, and what only the whole scenario can tell about them.

A cell is an invariant x scenario x prompt; it is judged once per trial. A single run knows whether a fault fired in it,
but that a fault named a tool which no run ever calls, or that a promise is broken without chaos too, shows only when
all runs are in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from flakestorm.config.model import Severity
from flakestorm.core.record import Record
from flakestorm.core.verdict import Verdict, inconclusive

__all__ = [
    "Cell",
    "CellRate",
    "mark_also_fails",
    "mark_also_unmutated",
    "never_applied",
    "never_found",
    "rates",
    "tools_found",
]


class Cell(Record, frozen=True):
    """One invariant judged on one run.

    Args:
        scenario, invariant: by name and id.
        severity: of the invariant.
        prompt: index of the prompt; trial: from 1.
        verdict: the judgement.
        min_pass_rate: the share of conclusive trials that must pass, 0..1.
        also_fails_without_chaos: the same prompt fails this invariant without chaos too.
        also_fails_unmutated: of a mutation, the golden prompt fails this invariant too, and without chaos.
        unsteady: equal runs of this prompt without chaos differed, and nothing sets the agent back between runs.
    """

    scenario: str
    invariant: str
    severity: Severity
    prompt: int
    trial: int
    verdict: Verdict
    min_pass_rate: float = 1.0
    also_fails_without_chaos: bool = False
    also_fails_unmutated: bool = False
    unsteady: bool = False

    @property
    def run(self) -> tuple[str, int, int]:
        """The run it was judged on; all invariants of a scenario are judged on the same runs."""
        return self.scenario, self.prompt, self.trial


class CellRate(Record, frozen=True):
    """One cell over its trials.

    Args:
        scenario, invariant, severity, prompt, min_pass_rate: as in `Cell`.
        passed, failed, inconclusive: how many trials ended so.
        reason: of the first trial that failed; if none did, of the first that was inconclusive; else of the first.
    """

    scenario: str
    invariant: str
    severity: Severity
    prompt: int
    min_pass_rate: float
    passed: int
    failed: int
    inconclusive: int
    reason: str

    @property
    def conclusive(self) -> int:
        """How many trials passed or failed."""
        return self.passed + self.failed

    @property
    def rate(self) -> float | None:
        """passed / conclusive, or None when no trial was conclusive."""
        return self.passed / self.conclusive if self.conclusive else None

    @property
    def failing(self) -> bool:
        """Whether its pass rate is below what was asked for. A cell without a conclusive trial does not fail."""
        return self.rate is not None and self.rate < self.min_pass_rate


def rates(cells: Iterable[Cell]) -> list[CellRate]:
    """The cells over their trials, in order of first appearance."""
    groups: dict[tuple[str, str, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.scenario, cell.invariant, cell.prompt), []).append(cell)
    return [_rate(group) for group in groups.values()]


def _rate(trials: Sequence[Cell]) -> CellRate:
    first = trials[0]
    by_outcome = {outcome: [c for c in trials if c.verdict.outcome == outcome] for outcome in _TELLING}
    telling = next(group for group in by_outcome.values() if group)[0]
    return CellRate(
        first.scenario,
        first.invariant,
        first.severity,
        first.prompt,
        first.min_pass_rate,
        passed=len(by_outcome["pass"]),
        failed=len(by_outcome["fail"]),
        inconclusive=len(by_outcome["inconclusive"]),
        reason=telling.verdict.reason,
    )


_TELLING = ("fail", "inconclusive", "pass")


def tools_found(seen: Sequence[str], unreached: Sequence[str]) -> str:
    """The tools that runs saw instead of the one a fault is for, in words; see `never_found`."""
    said = f"tools seen: {', '.join(seen) or 'none'}"
    if not unreached:
        return said
    return (
        f"{said}; the model spoke of {', '.join(unreached)}, but nothing could be broken there: name its URL in "
        "boundary.tools, register it in agent.tools, or use 'where: result' with a mode that has such a form"
    )


def never_found(
    cells: Iterable[Cell], *, scenario: str, faults: Sequence[str], seen: Sequence[str], unreached: Sequence[str] = ()
) -> list[Cell]:
    """The same cells, with every pass in this scenario inconclusive because a tool fault of it never found its tool.

    Args:
        cells: of any scenarios; those of others, and fails, stay as they are.
        scenario: the scenario's name.
        faults: its tool faults that matched no call in any of its runs, in words, e.g. `search=error`. None: no change.
        seen: names of the tools that its runs called, or whose model spoke of them.
        unreached: those of them that the faults are for: nothing of theirs was where the faults looked.
    """
    if not faults:
        return list(cells)
    names = ", ".join(repr(fault) for fault in faults)
    who = (
        f"tool fault {names} never found its tool"
        if len(faults) == 1
        else f"tool faults {names} never found their tools"
    )
    reason = f"{who}; {tools_found(seen, unreached)}"
    return [
        replace(cell, verdict=inconclusive(reason))
        if cell.scenario == scenario and cell.verdict.outcome == "pass"
        else cell
        for cell in cells
    ]


def mark_also_fails(cells: Iterable[Cell], controls: Iterable[Cell]) -> list[Cell]:
    """The same cells; a fail under chaos says so where the same prompt fails the same invariant without chaos.

    Args:
        cells: of any scenarios.
        controls: cells judged on runs without chaos. A control fails when its pass rate is below `min_pass_rate`, so
            one bad trial among many does not excuse the chaos.
    """
    controls = list(controls)
    calm = {cell.scenario for cell in controls}
    failing = {(c.invariant, c.prompt) for c in rates(controls) if c.failing}
    return [
        replace(cell, also_fails_without_chaos=True)
        if cell.verdict.outcome == "fail" and cell.scenario not in calm and (cell.invariant, cell.prompt) in failing
        else cell
        for cell in cells
    ]


def mark_also_unmutated(
    cells: Iterable[Cell], controls: Iterable[Cell], mutated: Collection[tuple[str, int, int]]
) -> list[Cell]:
    """The same cells; a failing mutation says so where its golden prompt fails the same invariant.

    Args:
        cells: of any scenarios; mutated: the runs (`Cell.run`) of mutations that ask what the golden prompt asks.
        controls: cells judged on golden prompts without chaos.
    """
    failing = {(c.invariant, c.prompt) for c in rates(controls) if c.failing}
    return [
        replace(cell, also_fails_unmutated=True)
        if cell.verdict.outcome == "fail" and cell.run in mutated and (cell.invariant, cell.prompt) in failing
        else cell
        for cell in cells
    ]


def never_applied(invariants: Iterable[str], cells: Iterable[Cell]) -> tuple[str, ...]:
    """Those of these invariants (by id) that applied to no run at all, so that nobody takes them for kept."""
    applied = {cell.invariant for cell in cells}
    return tuple(invariant for invariant in invariants if invariant not in applied)
