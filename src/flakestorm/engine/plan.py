"""The plan: which runs will be made, and which invariants judge each of them.

A plan is a value, made before anything is started, so the number of agent runs is known (and can be shown, priced or
refused) up front. Invariants share runs: the number of runs is scenarios x prompts x trials, plus probes, whatever the
number of invariants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flakestorm.config.model import Invariant, Scenario

__all__ = ["BASELINE", "Plan", "Trial", "make_plan"]

BASELINE = Scenario(name="no chaos")
"""The agent's world as it is."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run to be made.

    Args:
        run: its id, `r-0001` counting in plan order.
        scenario: under which faults.
        prompt: index into `Plan.prompts`; text: what is sent.
        number: which repetition of this cell, from 1.
        invariants: what it is judged by; empty for a control run, which is judged against the others' invariants.
    """

    run: str
    scenario: Scenario
    prompt: int
    text: str
    number: int
    invariants: tuple[Invariant, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a judging command is going to do.

    Args:
        command: as the user knows it, e.g. `contract run`.
        scenarios, invariants, prompts: the axes; prompts are the golden ones followed by the probes.
        golden: how many of the prompts are golden.
        trials: the runs, scenario by scenario.
    """

    command: str
    scenarios: tuple[Scenario, ...]
    invariants: tuple[Invariant, ...]
    prompts: tuple[str, ...]
    golden: int
    trials: tuple[Trial, ...]

    def judges(self, prompt: int) -> tuple[Invariant, ...]:
        """The invariants that judge this prompt: those with this probe, or, for a golden prompt, those without any."""
        if prompt < self.golden:
            return tuple(i for i in self.invariants if not i.probes)
        return tuple(i for i in self.invariants if self.prompts[prompt] in i.probes)

    def controls(self, prompts: Iterable[int]) -> tuple[Trial, ...]:
        """One run without chaos for each of these prompts, numbered on from the planned ones.

        They are made when a failure needs a control and the matrix has none. Their scenario's name is nobody else's.
        """
        start = len(self.trials)
        name, taken = BASELINE.name, {scenario.name for scenario in self.scenarios}
        while name in taken:
            name += " (control)"
        control = Scenario(name=name)
        return tuple(
            Trial(_run_id(start + i), control, prompt, self.prompts[prompt], 1, self.judges(prompt))
            for i, prompt in enumerate(sorted(set(prompts)))
        )


def make_plan(
    command: str,
    *,
    scenarios: Sequence[Scenario],
    invariants: Sequence[Invariant],
    prompts: Sequence[str],
    trials: int = 1,
    only: Iterable[int] | None = None,
) -> Plan:
    """Lay out the runs.

    Args:
        command: for the report.
        scenarios: the columns of the matrix, at least one.
        invariants: what is judged; those with `probes` are judged on the probes instead of the golden prompts.
        prompts: the golden prompts.
        trials: repetitions of each cell.
        only: indexes of the golden prompts to run; all of them, and the probes, when None.
    """
    probes = tuple(dict.fromkeys(probe for invariant in invariants for probe in invariant.probes))
    texts = (*prompts, *(() if only is not None else probes))
    plan = Plan(command, tuple(scenarios), tuple(invariants), texts, len(prompts), ())
    chosen = [p for p in (range(len(texts)) if only is None else only) if plan.judges(p) or only is not None]
    cells = [(s, p, t) for s in scenarios for p in chosen for t in range(1, trials + 1)]
    runs = tuple(Trial(_run_id(i), s, p, texts[p], t, plan.judges(p)) for i, (s, p, t) in enumerate(cells))
    return Plan(command, plan.scenarios, plan.invariants, texts, plan.golden, runs)


def _run_id(index: int) -> str:
    return f"r-{index + 1:04d}"
