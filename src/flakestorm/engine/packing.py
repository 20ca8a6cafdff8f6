"""Filling schedules: as many faults in one run as promise to show something.

A schedule of its own is filled until it is likely enough to fail. A query that is about a few faults only (does this
half of a failing schedule fail too?) is filled with faults that passed alone, in pairs that did not meet yet: the same
run then answers the query and covers new ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flakestorm.core.site import Site
from flakestorm.engine.atoms import Atoms
from flakestorm.engine.ground import Ground, bits

__all__ = ["SUSPECT", "Packer"]

CANDIDATES = 30
"""How many random schedules are weighed against one another for each run."""
FILLINGS = 6
"""How many random ways to fill a query are."""
SINGLE = 1000
"""A fault that was never tried is worth so many pairs that were not."""
DOUBT = 0.02
"""How likely an atom of which nothing is known makes a run fail."""
SUSPECT = 0.5
"""The same where the like of it does."""
PAIR_DOUBT = 0.0005
"""How likely a pair of which nothing is known does, where neither does alone."""
SURVIVES = 0.4
"""A schedule is filled until it is less likely than this to pass, because a failing run covers nothing."""


@dataclass(slots=True)
class Packer:
    """Fills schedules.

    Args:
        ground: what there is to try, and what was tried.
    """

    ground: Ground

    def doubt(self, i: int) -> float:
        """How likely this atom makes a run fail by itself."""
        ground = self.ground
        if ground.tried >> i & 1:
            return 0.0
        site, fault = ground.atoms[i].site, ground.atoms[i].fault
        for bad in bits(ground.guilty):
            other = ground.atoms[bad]
            if other.site == site or (other.site[:2] == site[:2] and other.fault == fault):
                return SUSPECT
        return DOUBT

    def passes(self, atoms: Atoms) -> float:
        """How likely a run with these passes, as far as is known."""
        mask, likely = self.ground.mask(atoms), 1.0
        for i in bits(mask):
            likely *= (1 - self.doubt(i)) * (1 - PAIR_DOUBT) ** ((self.ground.left(i) & mask).bit_count() / 2)
        return likely

    def pack(self) -> Atoms:
        """The schedule that would cover most, of some random ones; empty if none would cover anything."""
        best, most = 0, 0
        ground = self.ground
        doubts = [self.doubt(i) for i in range(len(ground.atoms))]
        ending = [i for i in bits(ground.alive) if ground.cuts.get(i)]
        for n in range(CANDIDATES):
            chosen, worth = self._candidate(doubts, ending if n % 2 else [])
            if worth > most:
                best, most = chosen, worth
        return ground.set_of(best)

    def fill(self, atoms: Atoms, without: Atoms) -> Atoms:
        """These and, at other calls, faults that passed alone and are to be tried with them or with one another.

        Args:
            atoms: what the run is about.
            without: what must not be added to it.
        """
        ground, about = self.ground, self.ground.mask(atoms)
        if about.bit_count() != len(atoms) or about & ground.delays:
            return atoms  # of another ground, or not to be crowded
        gone = {site for i in bits(about) for site in ground.cuts.get(i, ())}
        known = ground.alive & ground.tried & ~ground.shy & ~ground.mask(without)
        taken = {atom.site for atom in atoms}
        best, most = about, 0
        for _ in range(FILLINGS):
            chosen, worth = about, 0
            for site in self._order():
                if site in taken or site in gone or (site in ground.openers and not ground.openers[site] & chosen):
                    continue
                i, gain = self._best_at(site, chosen, 0, known)
                if gain:
                    chosen |= 1 << i
                    worth += gain
            if worth > most:
                best, most = chosen, worth
        return ground.set_of(best)

    def _order(self) -> list[Site]:
        """The calls in an order to fill them: those that are always made first, as the others follow from faults."""
        ground = self.ground
        based = [site for site in ground.here if site in ground.bases]
        derived = [site for site in ground.here if site not in ground.bases]
        ground.draw.shuffle(based)
        ground.draw.shuffle(derived)
        return [*based, *derived]

    def _candidate(self, doubts: Sequence[float], ending: Sequence[int]) -> tuple[int, int]:
        """One schedule, filled greedily, and what it is worth. Of faults that end runs it has one at most, the last."""
        ground = self.ground
        chosen, worth, passes = 0, 0, 1.0
        gone: set[Site] = set()
        untried = ground.untried & ~ground.shy
        if ending:
            last = ground.draw.choice([i for i in ending if untried >> i & 1 or self._useful(i)] or [-1])
            if last < 0:
                return 0, 0
            gone, passes = ground.cuts[last] | {ground.atoms[last].site}, 1 - doubts[last]
            chosen, worth = 1 << last, SINGLE * (untried >> last & 1)
        for site in self._order():
            if site in gone or (site in ground.openers and not ground.openers[site] & chosen):
                continue
            i, gain = self._best_at(site, chosen, untried, ground.alive)
            if i < 0 or (chosen and passes * (1 - doubts[i]) < SURVIVES):
                continue
            if gain == 0 and passes < 1:
                continue
            passes *= 1 - doubts[i]
            chosen |= 1 << i
            worth += gain
        return chosen, worth

    def _useful(self, i: int) -> bool:
        ground = self.ground
        return any((min(i, j), max(i, j)) not in ground.hard for j in bits(ground.left(i)))

    def _best_at(self, site: Site, chosen: int, untried: int, among: int) -> tuple[int, int]:
        """The atom at this call that adds most to the schedule, and how much; -1 if there is none."""
        ground = self.ground
        best, most, gained = -1, (-1, -1), 0
        options = [i for i in bits(ground.here[site] & among) if not ground.cuts.get(i)]
        ground.draw.shuffle(options)
        for i in options:
            if ground.forbidden(chosen | 1 << i):
                continue
            left = ground.left(i)
            pairs = left & chosen
            for a, b in ground.hard if pairs else ():
                if i in (a, b):
                    pairs &= ~(1 << (b if i == a else a))
            gain = SINGLE * (untried >> i & 1) + pairs.bit_count()
            if (gain, left.bit_count()) > most:
                best, most, gained = i, (gain, left.bit_count()), gain
        return best, gained
