"""Faults searched once more with other inputs: some bugs need both.

Each input is first given without faults; one that fails so is told and left, because faults are not its cause. Then
every fault that was survived with the prompt is tried with it, many in one run. What fails is reduced like any other
schedule, and tried with the prompt as it stands: only what passes there needs the input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from flakestorm.engine.atoms import Asking, Atoms, Failure, Outcome
from flakestorm.engine.explore import Search
from flakestorm.engine.found import Found
from flakestorm.engine.ground import bits
from flakestorm.engine.shrink import reduce

__all__ = ["Inputs"]

TRIES = 2
"""A fault that did not take effect in so many runs is not waited for any longer."""


@dataclass(slots=True)
class Inputs:
    """The search with other inputs than the prompt, once that one has been searched.

    Args:
        search: the search with the prompt; findings are added to it.
        texts: the other inputs.

    `alone` are the inputs that fail without faults; `given` those that faults were tried with, each with how many took
    effect in a run that passed or are known to make one fail.
    """

    search: Search
    texts: Sequence[str]
    alone: list[str] = field(default_factory=list)
    given: dict[str, int] = field(default_factory=dict)

    def steps(self) -> Asking[None]:
        """The search itself."""
        if not self.search.finished:
            return
        for text in self.texts:
            (calm,) = yield from self.search.asker.ask([frozenset()], text=text)
            if calm.passed:
                yield from self._with(text)
            else:
                self.alone.append(text)

    def _with(self, text: str) -> Asking[None]:
        ground, asker = self.search.ground, self.search.asker
        left, tried = ground.alive & ground.tried & ~ground.delays, 0
        known, waited = list[Atoms](), Counter[int]()
        self.given[text] = 0
        while left and (chosen := self._packed(left, known)):
            (outcome,) = yield from asker.ask([chosen], text=text)
            asked, fired = ground.mask(chosen), ground.mask(outcome.fired)
            if outcome.passed:
                tried |= fired
            for failure in outcome.failures[:1]:
                cause = (yield from self._cause(outcome, failure, text)) if failure.invariant else frozenset()
                if cause:
                    known.append(cause)
                    tried |= ground.mask(cause)
                else:
                    left &= ~asked
            waited.update(bits(asked & ~fired if outcome.judged else asked))
            left &= ~tried & ~sum(1 << i for i, times in waited.items() if times >= TRIES)
            self.given[text] = tried.bit_count()

    def _packed(self, left: int, known: Sequence[Atoms]) -> Atoms:
        """A schedule of faults that are still to be tried, at most one for each call."""
        ground, chosen = self.search.ground, 0
        for site in ground.here:
            options = list(bits(ground.here[site] & left))
            if not options or (site in ground.openers and not ground.openers[site] & chosen):
                continue
            i = self.search.draw.choice(options)
            atoms = ground.set_of(chosen | 1 << i)
            if not ground.forbidden(chosen | 1 << i) and not any(bad <= atoms for bad in known):
                chosen |= 1 << i
        return ground.set_of(chosen)

    def _cause(self, outcome: Outcome, failure: Failure, text: str) -> Asking[Atoms]:
        """The smallest part of a schedule that fails with this input; nothing where it was chance."""
        search = self.search
        for found in search.findings:  # another input has shown it
            if found.failure == failure and found.text is not None and set(found.schedule) <= outcome.fired:
                return frozenset(found.schedule)
        shown = yield from reduce(search.asker, outcome, failure, search.draw, text=text)
        if not shown.fired or not (yield from search.asker.confirm(shown.fired, failure, text=text)):
            return frozenset()
        (plain,) = yield from search.asker.ask([shown.fired], failure)
        schedule = tuple(dict.fromkeys(atom for atom, _ in shown.firings))
        if plain.shows(failure):
            search.findings.append(Found(schedule, failure, plain.run))
        else:
            search.findings.append(Found(schedule, failure, shown.run, text=text))
        return shown.fired
