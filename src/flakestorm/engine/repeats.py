"""What repeated trials say: pass^k over tasks, and how often the same cell gives another verdict.

A task is a scenario and a prompt; one of its runs passes when it has conclusive verdicts and all of them are passes.
Trials that were left out because a verdict was decided leave a biased sample (what fails is left sooner), so nothing is
said then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flakestorm.core.record import Record
from flakestorm.core.verdict import Outcome
from flakestorm.engine.events import CellResult, Report
from flakestorm.stats.flake import Flakes, flake_rate
from flakestorm.stats.passk import PassK, pass_k

__all__ = ["Reliability", "pass_ks", "reliability", "repeated", "runs_passed"]

MOST_K = 10
"""pass^k is given up to this k."""


class Reliability(Record, frozen=True):
    """What the trials of one report say together.

    Args:
        pass_k: for k = 1, 2, ... as far as tasks have that many conclusive runs.
        flakes: over cells; None where no cell had two conclusive runs.
    """

    pass_k: tuple[PassK, ...]
    flakes: Flakes | None


def reliability(cells: Iterable[CellResult], *, saved: int = 0) -> Reliability | None:
    """What the cells of a report say about repeating; None where nothing was repeated, or trials were left out.

    Args:
        cells: of all trials.
        saved: how many trials were left out because verdicts were decided.
    """
    cells = list(cells)
    if saved or not any(cell.trial > 1 for cell in cells):
        return None
    counts: dict[tuple[str, str, int], list[int]] = {}
    for cell in cells:
        if cell.verdict != "inconclusive":
            count = counts.setdefault((cell.scenario, cell.invariant, cell.prompt), [0, 0])
            count[0] += cell.verdict == "pass"
            count[1] += 1
    flakes = flake_rate((passed, runs) for passed, runs in counts.values())
    return Reliability(pass_ks(runs_passed(cells)), flakes)


def repeated(report: Report) -> list[CellResult]:
    """The cells of a report whose trials tell of repeating: not those of runs that put load on the agent.

    The mutations of a prompt are different inputs, so each is a task of its own: its cells get a prompt and trials that
    no others have.
    """
    crowded = {level.scenario for level in (report.load.levels if report.load else ())}
    runs = {run.id: run for run in report.runs if run.mutation is not None}
    own: dict[tuple[object, ...], int] = {}
    trials: dict[int, dict[str, int]] = {}
    found = []
    for cell in report.cells:
        run = runs.get(cell.run)
        if run is not None and run.mutation is not None:
            task = (cell.scenario, cell.prompt, run.mutation.number or run.input)
            prompt = own.setdefault(task, -1 - len(own))
            made = trials.setdefault(prompt, {})
            cell = replace(cell, prompt=prompt, trial=made.setdefault(cell.run, len(made) + 1))
        if cell.scenario not in crowded:
            found.append(cell)
    return found


def runs_passed(cells: Iterable[CellResult]) -> list[tuple[int, int]]:
    """For each task with a conclusive run, how many of how many passed."""
    said: dict[tuple[str, int], dict[int, set[Outcome]]] = {}
    for cell in cells:
        said.setdefault((cell.scenario, cell.prompt), {}).setdefault(cell.trial, set()).add(cell.verdict)
    judged = [["fail" not in verdicts for verdicts in runs.values() if verdicts != {"inconclusive"}]
              for runs in said.values()]  # fmt: skip
    return [(sum(runs), len(runs)) for runs in judged if runs]


def pass_ks(tasks: Iterable[tuple[int, int]]) -> tuple[PassK, ...]:
    """pass^1, pass^2, ... of tasks given as (passed, runs), up to the runs of the most often run task."""
    known = list(tasks)
    most = min(max((runs for _, runs in known), default=0), MOST_K)
    return tuple(found for k in range(1, most + 1) if (found := pass_k(known, k)) is not None)
