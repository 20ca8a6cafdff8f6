"""Asking an agent that may be moody, and never asking what is known.

A query is a sequential test: the same run is made again until it is clear whether the faults make it fail, or chance.
An agent is taken for steady, so that one run decides, until two runs of the same schedule disagree; from then on the
rate at which it fails by itself is measured, and each query costs two or three runs.

A run is a function of what fired in it. So a schedule is known without a run where another run had every one of its
faults fire, or left out only those whose call that run did not make or could not be broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from flakestorm.engine.atoms import Ask, Asking, Atoms, Failure, Outcome
from flakestorm.stats.intervals import wilson
from flakestorm.stats.sequential import Sprt

__all__ = ["FRESH", "Asker"]

STEADY = Sprt(0.01, 0.99)
"""One run decides."""

MOODY_P1 = 0.8
SAMPLE = 12
"""How many runs without faults measure how often a moody agent fails by itself."""
FRESH = 2
"""How many fresh runs confirm what a steady agent did."""
ALARM = 0.001
"""How often chance may be told as a bug of a moody agent."""
MOST = 25
"""A query that is not decided after so many runs is taken for what it showed more often than not."""


@dataclass(slots=True)
class Asker:
    """Everything that was asked and answered, for one prompt.

    Args:
        runs: what was found out, in order.
        saved: how many runs did not have to be made.
        test: how a query is decided.
    """

    runs: list[Outcome] = field(default_factory=list)
    saved: int = 0
    test: Sprt = STEADY
    _known: dict[Ask, Outcome] = field(default_factory=dict)

    @property
    def steady(self) -> bool:
        """Whether the agent is taken to do the same each time."""
        return self.test is STEADY

    def ask(
        self, atoms: Sequence[Atoms], failure: Failure | None = None, *, text: str | None = None
    ) -> Asking[list[Outcome]]:
        """What the agent does under each of these schedules.

        Args:
            atoms: the schedules.
            failure: the failure that is looked for; any when None.
            text: the input, where it is not the prompt as it stands.
        """
        found: dict[int, Outcome] = {}
        open_: dict[int, list[Outcome]] = {}
        for at, schedule in enumerate(atoms):
            known = self.predicted(Ask(schedule, text), failure)
            if known is None:
                open_[at] = []
            else:
                found[at] = known
                self.saved += 1
        while open_:
            asks = [Ask(atoms[at], text, fresh=not self.steady) for at in open_]
            outcomes = yield asks
            for at, outcome in zip(list(open_), outcomes, strict=True):
                self.runs.append(outcome)
                open_[at].append(outcome)
                decided = self._decide(open_[at], failure)
                if decided is not None:
                    found[at] = decided
                    del open_[at]
                    self._note(Ask(atoms[at], text), decided)
        return [found[at] for at in range(len(atoms))]

    def again(self, atoms: Atoms, *, text: str | None = None) -> Asking[Outcome]:
        """One more run of this schedule, whatever is known of it."""
        (outcome,) = yield [Ask(atoms, text, fresh=True)]
        self.runs.append(outcome)
        return outcome

    def confirm(self, atoms: Atoms, failure: Failure, *, fresh: int = FRESH, text: str | None = None) -> Asking[bool]:
        """Whether this schedule fails in this way and not by chance: fresh runs, and more of them than a query takes.

        A search makes hundreds of queries, so now and then chance decides one; nothing is told that rests on a query
        alone. Where it was chance, what is known of this failure is forgotten.

        Args:
            atoms: the schedule.
            failure: how it fails.
            fresh: how many runs confirm it while the agent is taken for steady.
            text: the input, where it is not the prompt as it stands.
        """
        if self.steady:
            for _ in range(fresh):
                if not (yield from self.again(atoms, text=text)).shows(failure):
                    yield from self.measure()
                    return False
            return True
        calm = [outcome for outcome in self.runs if not outcome.asked]
        interval = wilson(sum(not outcome.passed for outcome in calm), len(calm))
        most = MOODY_P1 / 2 if interval is None else min(interval[1], MOODY_P1 / 2)
        test, hits, runs = Sprt(most, MOODY_P1, alpha=ALARM), 0, 0
        while (decided := test.decide(hits, runs - hits)) is None and runs < MOST:
            hits += (yield from self.again(atoms, text=text)).shows(failure)
            runs += 1
        if decided == "p1":
            return True
        self._known = {ask: outcome for ask, outcome in self._known.items() if not outcome.shows(failure)}
        return False

    def predicted_for(self, atoms: Atoms) -> Outcome | None:
        """What is known of these faults without a run, if anything."""
        return self.predicted(Ask(atoms))

    def predicted(self, ask: Ask, failure: Failure | None = None) -> Outcome | None:
        """What is known of this schedule without a run, if anything."""
        known = self._known.get(ask)
        if known is not None:
            return known
        for (atoms, text, _), outcome in self._known.items():
            fired = outcome.fired
            if text != ask.text or not fired <= ask.atoms or any(atom.lasting for atom in ask.atoms):
                continue
            met = set(outcome.sites)
            if all(atom.site not in met or atom in atoms for atom in ask.atoms - fired):
                return outcome
        return None

    def measure(self) -> Asking[float]:
        """Runs without faults tell how often this agent fails by itself; from now on it is taken for moody."""
        self._known.clear()
        outcomes = yield [Ask(frozenset())] * SAMPLE
        self.runs += outcomes
        calm = [outcome for outcome in self.runs if not outcome.asked]
        failed = sum(not outcome.passed for outcome in calm)
        rate = min((failed + 0.5) / (len(calm) + 1), MOODY_P1 / 2)
        self.test = Sprt(rate, MOODY_P1)
        return rate

    def _note(self, ask: Ask, outcome: Outcome) -> None:
        self._known[ask] = outcome
        if not any(atom.lasting for atom in ask.atoms):
            self._known.setdefault(Ask(outcome.fired, ask.text), outcome)

    def _decide(self, runs: Sequence[Outcome], failure: Failure | None) -> Outcome | None:
        """The run that stands for them all, once they are enough."""
        if self.steady:
            return runs[-1]
        # Chance fails in many ways, a bug in one: the way that was seen most often is what is tested.
        counts = Counter(f for run in runs for f in run.failures if failure in (None, f))
        common = counts.most_common(1)[0][0] if counts else None
        hits = 0 if common is None else counts[common]
        decided = self.test.decide(hits, len(runs) - hits)
        if decided is None and len(runs) < MOST:
            return None
        if decided == "p1" or (decided is None and 2 * hits > len(runs)):
            return next(run for run in runs if run.shows(common))
        fallback = [run for run in runs if not run.shows(common)] if common is not None else list(runs)
        # What it did by chance is nothing that the schedule did.
        return max(fallback or runs, key=lambda run: (run.passed, len(run.fired)))
