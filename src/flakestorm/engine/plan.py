"""The plan: which runs will be made, and which invariants judge each of them.

A plan is a value, made before anything is started, so the number of agent runs is known (and can be shown, priced or
refused) up front. Invariants share runs: the number of runs is scenarios x prompts x trials, plus probes, whatever the
number of invariants. Where scenarios are generated from what the agent does, the runs without chaos come first, and the
plan is extended by what they show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from flakestorm.config.model import Invariant, Scenario
from flakestorm.contracts.matrix import needs_baseline
from flakestorm.core.record import Record
from flakestorm.errors import Misuse
from flakestorm.faults.planned import scenario_with

if TYPE_CHECKING:  # most commands mutate nothing, and few are given faults
    from flakestorm.faults.line import Spec
    from flakestorm.mutations.base import Mutation

__all__ = ["BASELINE", "RUNS_LIMIT", "Plan", "Trial", "bounded", "injected", "make_plan", "pair_plan", "run_id"]

RUNS_LIMIT = 1_000_000
"""More runs than this are a slip of the keyboard: a plan is held in memory."""

BASELINE = Scenario(name="no chaos")
"""The agent's world as it is."""


def injected(faults: Sequence[Spec]) -> Scenario:
    """The scenario of a run with exactly these faults, which is the baseline where there are none.

    It has the same name wherever it is made: draws are keyed by it, so a printed `run --inject` shows the same again.
    """
    return scenario_with("injected", faults) if faults else BASELINE


class Trial(Record, frozen=True):
    """One run to be made.

    Args:
        run: its id, `r-0001` counting in plan order.
        scenario: under which faults.
        prompt: index into `Plan.prompts`; text: what is sent.
        number: which repetition of this cell, from 1.
        invariants: what it is judged by; empty for a control run, which is judged against the others' invariants.
        mutation: what has become of the golden prompt, if anything.
    """

    run: str
    scenario: Scenario
    prompt: int
    text: str
    number: int
    invariants: tuple[Invariant, ...]
    mutation: Mutation | None = None


class Plan(Record, frozen=True):
    """Everything a judging command is going to do.

    Args:
        command: as the user knows it, e.g. `contract run`.
        scenarios, invariants, prompts: the axes; prompts are the golden ones followed by the probes.
        golden: how many of the prompts are golden.
        trials: the runs, scenario by scenario.
        repeats: how many runs of each cell.
        generate: by which method scenarios are added; None for none.
        baseline: where scenarios are generated, or runs are compared with one without chaos, the runs without chaos
            that come before all others: one for each prompt that needs it. They are those of a scenario without faults
            where there is one, else runs of their own.
        notes: what is known to be missing before anything is run.
        budget: how many of the mutations are run, where they are chosen as runs finish; None for all.
        users: under load, how many runs of each scenario may be under way at once; the scenarios follow one another
            then.
        rates: where users come whether or not others have been answered, how many do in a second, by scenario.
        limits: under load, what percentiles of the latencies may be: percent, and milliseconds.
    """

    command: str
    scenarios: tuple[Scenario, ...]
    invariants: tuple[Invariant, ...]
    prompts: tuple[str, ...]
    golden: int
    trials: tuple[Trial, ...]
    repeats: int = 1
    generate: str | None = None
    baseline: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()
    budget: int | None = None
    users: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
    limits: tuple[tuple[int, float], ...] = ()

    @property
    def runs(self) -> tuple[Trial, ...]:
        """Everything to be run, the baseline first; each run once."""
        return tuple({trial.run: trial for trial in (*self.baseline, *self.trials)}.values())

    @property
    def count(self) -> int:
        """How many runs will be made."""
        unchosen = 0 if self.budget is None else sum(t.mutation is not None for t in self.trials) - self.budget
        return len(self.runs) - max(unchosen, 0)

    def extended(self, scenarios: Sequence[Scenario]) -> Plan:
        """The same plan with these scenarios at its end."""
        prompts = [trial.prompt for trial in self.baseline]
        added = _trials(self, scenarios, prompts, start=len(self.runs))
        return replace(self, scenarios=(*self.scenarios, *scenarios), trials=(*self.trials, *added))

    def judges(self, prompt: int) -> tuple[Invariant, ...]:
        """The invariants that judge this prompt: those with this probe, or, for a golden prompt, those without any."""
        if prompt < self.golden:
            return tuple(i for i in self.invariants if not i.probes)
        return tuple(i for i in self.invariants if self.prompts[prompt] in i.probes)

    def controls(self, prompts: Iterable[int]) -> tuple[Trial, ...]:
        """One run without chaos for each of these prompts, numbered on from the planned ones.

        They are made when a failure needs a control and the matrix has none. Their scenario's name is nobody else's.
        """
        name, taken = BASELINE.name, {scenario.name for scenario in self.scenarios}
        while name in taken:
            name += " (control)"
        single = replace(self, repeats=1)
        return _trials(single, [Scenario(name=name)], sorted(set(prompts)), start=len(self.runs))


def make_plan(
    command: str,
    *,
    scenarios: Sequence[Scenario],
    invariants: Sequence[Invariant],
    prompts: Sequence[str],
    trials: int = 1,
    only: Iterable[int] | None = None,
    generate: str | None = None,
) -> Plan:
    """Lay out the runs.

    Args:
        command: for the report.
        scenarios: the columns of the matrix, at least one.
        invariants: what is judged; those with `probes` are judged on the probes instead of the golden prompts.
        prompts: the golden prompts.
        trials: repetitions of each cell.
        only: indexes of the golden prompts to run; all of them, and the probes, when None.
        generate: see `Plan.generate`.
    """
    probes = tuple(dict.fromkeys(probe for invariant in invariants for probe in invariant.probes))
    texts = (*prompts, *(() if only is not None else probes))
    plan = Plan(command, tuple(scenarios), tuple(invariants), texts, len(prompts), (), trials, generate)
    chosen = [p for p in (range(len(texts)) if only is None else only) if plan.judges(p) or only is not None]
    calm = next((scenario.name for scenario in scenarios if not scenario.chaos), None)
    first = _first(plan, chosen)
    own = plan.controls(first) if first and calm is None else ()
    runs = _trials(plan, scenarios, chosen, start=len(own))
    if first and calm is not None:
        own = tuple(t for t in runs if t.scenario.name == calm and t.number == 1 and t.prompt in first)
    return replace(plan, trials=runs, baseline=own)


def pair_plan(
    command: str,
    pairs: Sequence[tuple[Scenario, str, Sequence[Invariant]]],
    *,
    prompts: Sequence[str] = (),
    trials: int = 1,
) -> Plan:
    """Lay out runs in which every scenario has an input and invariants of its own.

    Args:
        command: for the report.
        pairs: scenario, input, and the invariants that judge it.
        prompts: other prompts of the project, which come before these inputs in the numbering.
        trials: repetitions of each.
    """
    known = {str(i.id): i for _, _, invariants in pairs for i in invariants}
    texts = (*prompts, *(text for _, text, _ in pairs))
    scenarios = tuple(scenario for scenario, _, _ in pairs)
    bounded(len(pairs), trials)
    runs = [
        Trial(run_id(at * trials + number - 1), scenario, len(prompts) + at, text, number, tuple(invariants))
        for at, (scenario, text, invariants) in enumerate(pairs)
        for number in range(1, trials + 1)
    ]
    return Plan(command, scenarios, tuple(known.values()), texts, len(texts), tuple(runs), trials)


def _first(plan: Plan, chosen: Sequence[int]) -> list[int]:
    """The prompts that must be run without chaos before anything else."""
    if plan.generate is not None:
        return list(chosen)
    if not any(scenario.chaos for scenario in plan.scenarios):
        return []
    return [prompt for prompt in chosen if any(needs_baseline(invariant) for invariant in plan.judges(prompt))]


def _trials(plan: Plan, scenarios: Iterable[Scenario], prompts: Sequence[int], *, start: int) -> tuple[Trial, ...]:
    """The runs of these cells, numbered on from `start`."""
    scenarios = tuple(scenarios)
    bounded(len(scenarios) * len(prompts), plan.repeats)
    cells = [(s, p, t) for s in scenarios for p in prompts for t in range(1, plan.repeats + 1)]
    return tuple(
        Trial(run_id(start + i), s, p, plan.prompts[p], t, plan.judges(p)) for i, (s, p, t) in enumerate(cells)
    )


def bounded(groups: int, trials: int) -> None:
    """Refuse more runs than a plan can hold.

    Args:
        groups: how many scenarios x prompts there are, or mutations; trials: runs of each.

    Raises:
        Misuse: it is more than `RUNS_LIMIT` runs.
    """
    if groups * trials > RUNS_LIMIT:
        raise Misuse(
            f"{groups:,} x {trials:,} trials are more than the {RUNS_LIMIT:,} runs that one command can plan; "
            "ask for fewer trials"
        )


def run_id(index: int) -> str:
    """The id of the run with this index in plan order."""
    return f"r-{index + 1:04d}"
