"""A synthetic agent for searches: calls with faults, of which some make it fail alone, some two together.

It makes one call after another. A fault that ends runs lets no later call be made, so it masks what was planned there;
some faults lead to a call that is not made otherwise (a retry). It can be moody: fail by chance.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from flakestorm.core.site import Site
from flakestorm.engine.atoms import Ask, Atom, Atoms, Failure, Outcome

MODES = ("error", "timeout", "malformed", "empty")
BROKEN = Failure("keeps its promise", "it did not")


@dataclass
class World:
    """One synthetic agent.

    Args:
        seed: makes it.
        sites: how many calls it makes; each has four faults.
        singles, pairs: how many faults and pairs of faults break it.
        ending: how many faults end its runs.
        flake: how often it fails by chance.
    """

    seed: int
    sites: int = 30
    singles: int = 2
    pairs: int = 2
    ending: int = 4
    flake: float = 0.0
    planted: list[Atoms] = field(default_factory=list)
    runs: int = 0

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self._luck = random.Random(self.seed + 1)
        self.calls = [Site("tool", f"t{n:02}", 1) for n in range(self.sites)]
        atoms = [Atom(site, mode) for site in self.calls for mode in MODES]
        order = {site: n for n, site in enumerate(self.calls)}
        self.atoms = atoms
        self.enders = frozenset(rng.sample(atoms, self.ending))
        free = [atom for atom in atoms if atom not in self.enders]
        rng.shuffle(free)
        self.planted = [frozenset([free.pop()]) for _ in range(self.singles)]
        while len(self.planted) < self.singles + self.pairs:
            a = free.pop()
            b = next(atom for atom in free if atom.site != a.site)
            free.remove(b)
            self.planted.append(frozenset((a, b)))
        self._order = order

    def run(self, ask: Ask) -> Outcome:
        """One run."""
        self.runs += 1
        chosen = {atom.site: atom for atom in ask.atoms}
        met, firings = [], []
        for site in self.calls:
            met.append(site)
            atom = chosen.get(site)
            if atom is not None:
                firings.append((atom, site))
                if atom in self.enders:
                    break
        fired = {atom for atom, _ in firings}
        fails = any(bug <= fired for bug in self.planted) or self._luck.random() < self.flake
        return Outcome(ask.atoms, tuple(firings), tuple(met), (BROKEN,) if fails else (), run=f"r-{self.runs}")

    def answer(self, asks: Sequence[Ask]) -> list[Outcome]:
        """The runs that were asked for."""
        return [self.run(ask) for ask in asks]

    def found(self, schedules: Sequence[Atoms]) -> bool:
        """Whether all that is planted is among these."""
        return all(bug in schedules for bug in self.planted)
