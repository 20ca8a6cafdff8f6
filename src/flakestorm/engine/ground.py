"""The ground a search covers: which faults there are to try, alone and two by two, and which of them have been.

A fault counts as tried when it took effect in a run that passed, or when it is known to make runs fail. Two faults
count together when both took effect in one run that passed. So what the search says at its end is a certificate: every
schedule of at most two faults was tried, is known to fail, or cannot happen.

Sets of atoms are bits of an integer, because a hundred atoms have five thousand pairs, which are looked at for every
schedule that is weighed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from flakestorm.core.choices import Draw
from flakestorm.core.site import Site
from flakestorm.engine.atoms import Atom, Atoms, Outcome

__all__ = ["Coverage", "Ground", "bits"]

DELAYS = frozenset(("slow", "slow_stream"))
TRIES = 3
"""After so many runs in which two faults did not meet, they are tried by themselves."""


def bits(mask: int) -> Iterator[int]:
    """The places of the ones."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the ground is covered.

    Args:
        sites, singles, pairs: how many calls were hit, faults tried alone, and pairs of faults tried together.
        all_sites, all_singles, all_pairs: how many of each there are, as far as the search got to know them.
    """

    sites: int = 0
    singles: int = 0
    pairs: int = 0
    all_sites: int = 0
    all_singles: int = 0
    all_pairs: int = 0

    @property
    def complete(self) -> bool:
        """Whether no single fault and no pair is left."""
        return self.all_sites > 0 and (self.singles, self.pairs) == (self.all_singles, self.all_pairs)

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(
            self.sites + other.sites,
            self.singles + other.singles,
            self.pairs + other.pairs,
            self.all_sites + other.all_sites,
            self.all_singles + other.all_singles,
            self.all_pairs + other.all_pairs,
        )


@dataclass(slots=True)
class Ground:
    """What there is to try, and what was tried.

    Args:
        faults: gives the faults to try at a call.
        draw: makes the random choices.
    """

    faults: Callable[[Site], Sequence[str]]
    draw: Draw
    atoms: list[Atom] = field(default_factory=list)
    at: dict[Atom, int] = field(default_factory=dict)
    bases: dict[Site, int] = field(default_factory=dict)  # the calls that are made without faults, in order
    here: dict[Site, int] = field(default_factory=dict)  # the atoms at a call
    goal: list[int] = field(default_factory=list)  # with which others an atom is to be tried
    done: list[int] = field(default_factory=list)  # with which others it was tried
    tried: int = 0  # atoms that took effect in a run that passed
    idle: int = 0  # atoms that cannot take effect
    guilty: int = 0  # atoms that make a run fail by themselves
    bad: list[int] = field(default_factory=list)  # minimal sets that make a run fail
    walls: dict[frozenset[Site], dict[Site, int]] = field(
        default_factory=dict
    )  # atoms one of which at each call does so
    cuts: dict[int, set[Site]] = field(default_factory=dict)  # the calls that are not made any more after an atom
    openers: dict[Site, int] = field(default_factory=dict)  # atoms after which a call is made that else is not
    delays: int = 0  # atoms that only change the order in which things happen
    shy: int = 0  # atoms that do not take effect in a larger schedule
    hard: set[tuple[int, int]] = field(default_factory=set)  # pairs that do not meet in a larger schedule
    missed: Counter[tuple[int, int]] = field(default_factory=Counter)

    def base(self, sites: Iterable[Site]) -> None:
        """The calls of a run without faults."""
        for site in sites:
            self.bases.setdefault(site, len(self.bases))
        for site in list(self.bases):
            self._open(site)
        everything = (1 << len(self.atoms)) - 1
        for i, atom in enumerate(self.atoms):
            self.goal[i] = everything & ~self.here[atom.site]

    def _open(self, site: Site) -> None:
        if site in self.here:
            return
        self.here[site] = 0
        for fault in self.faults(site):
            i = len(self.atoms)
            self.atoms.append(Atom(site, fault))
            self.at[self.atoms[i]] = i
            self.goal.append(0)
            self.done.append(0)
            self.here[site] |= 1 << i
            if self.atoms[i].fault.partition(":")[0] in DELAYS:
                self.delays |= 1 << i
                self.shy |= 1 << i

    def mask(self, atoms: Iterable[Atom]) -> int:
        """These atoms as bits; those that are not of this ground are left out."""
        found = 0
        for atom in atoms:
            if (i := self.at.get(atom)) is not None:
                found |= 1 << i
        return found

    def set_of(self, mask: int) -> Atoms:
        """The atoms of these bits."""
        return frozenset(self.atoms[i] for i in bits(mask))

    def learn(self, outcome: Outcome) -> None:
        """A run that was made: what it covered, which calls it made and did not make."""
        fired, asked = self.mask(outcome.fired), self.mask(outcome.asked)
        met = set(outcome.sites)
        for i in bits(asked & ~fired):
            if self.atoms[i].site in met:  # one fault at each call, so no other one kept it from acting
                self.idle |= 1 << i
        self._new_sites(outcome, fired)
        self._note_cut(outcome, met)
        if outcome.passed:
            # Other faults undo a change of order, so a delay says something only by itself.
            self.tried |= fired if fired.bit_count() == 1 else fired & ~self.delays
            for i in bits(fired):
                self.done[i] |= fired & ~(1 << i)
        elif outcome.failures:
            return
        self._miss(asked, fired, 1)

    def known(self, asked: Atoms, outcome: Outcome) -> None:
        """A schedule that need not be run: what it does not cover is left for schedules of its own."""
        self._miss(self.mask(asked), self.mask(outcome.fired) if outcome.passed else 0, TRIES)

    def _miss(self, asked: int, fired: int, times: int) -> None:
        """Count what was asked for and did not take effect."""
        for i in bits(asked & ~self.idle):
            if not fired >> i & 1:
                self.missed[i, i] += times
                if self.missed[i, i] >= TRIES:
                    self.shy |= 1 << i
            for j in bits(asked & self.goal[i] & ~self.done[i] & ~self.idle & ((1 << i) - 1)):
                if not (fired >> i & 1 and fired >> j & 1):
                    self.missed[j, i] += times
                    if self.missed[j, i] >= TRIES:
                        self.hard.add((j, i))

    def convict(self, atoms: Iterable[Atom]) -> None:
        """These faults, and none less, make a run fail: nothing that holds them is tried again."""
        found = self.mask(atoms)
        if not found:
            return
        self.bad.append(found)
        if found.bit_count() == 1:
            self.guilty |= found
        else:
            self.tried |= found  # none of them does so by itself

    def avoid(self, atoms: Iterable[Atom]) -> None:
        """Nothing that holds all of these is tried again, nor what differs from it only in modes that were avoided here
        before; of less than all this says nothing."""
        listed = list(atoms)
        wall = self.walls.setdefault(frozenset(atom.site for atom in listed), {})
        for atom in listed:
            wall[atom.site] = wall.get(atom.site, 0) | self.mask([atom])

    def acquit(self, schedules: Iterable[Iterable[Atom]]) -> None:
        """These were taken for such faults, and it was chance."""
        self.walls.clear()
        cleared = {self.mask(atoms) for atoms in schedules}
        self.bad = [mask for mask in self.bad if mask not in cleared]
        self.guilty = 0
        for mask in self.bad:
            self.guilty |= mask if mask.bit_count() == 1 else 0

    def forbidden(self, mask: int) -> bool:
        """Whether this holds faults that are known to make a run fail."""
        if mask & self.guilty or any(bad & mask == bad for bad in self.bad):
            return True
        return any(all(mask & modes for modes in wall.values()) for wall in self.walls.values())

    def rule_out(self, i: int, j: int) -> None:
        """These two cannot both take effect."""
        self.goal[i] &= ~(1 << j)
        self.goal[j] &= ~(1 << i)
        self.hard.discard((min(i, j), max(i, j)))

    @property
    def alive(self) -> int:
        """Atoms that can take effect, and by themselves make no run fail."""
        return ((1 << len(self.atoms)) - 1) & ~self.idle & ~self.guilty

    def left(self, i: int) -> int:
        """With which others this atom is still to be tried."""
        return self.goal[i] & ~self.done[i] & self.alive

    def pairs_left(self) -> Iterator[tuple[int, int]]:
        """The pairs that are still to be tried."""
        for i in bits(self.alive):
            for j in bits(self.left(i) >> (i + 1)):
                if not self.forbidden(1 << i | 1 << (i + 1 + j)):
                    yield i, i + 1 + j

    @property
    def untried(self) -> int:
        """Atoms that have not been tried yet."""
        return self.alive & ~self.tried

    def coverage(self) -> Coverage:
        """How much is covered."""
        alive, pairs, both = self.alive, 0, 0
        for i in bits(alive):
            mine = self.goal[i] & alive
            both += mine.bit_count()
            done = mine & self.done[i]
            for bad in self.bad:
                if bad >> i & 1 and bad.bit_count() == 2:
                    done |= mine & bad
            pairs += done.bit_count()
        count = alive | self.guilty
        tried = (self.tried & alive) | self.guilty
        hit = sum(bool(mask & tried) for mask in self.here.values())
        reachable = sum(bool(mask & count) for mask in self.here.values())
        return Coverage(hit, tried.bit_count(), pairs // 2, reachable, count.bit_count(), both // 2)

    def _new_sites(self, outcome: Outcome, fired: int) -> None:
        """Calls that are made under faults only join the ground, to be tried with the faults that lead to them."""
        last = [(self.at[atom], site) for atom, site in outcome.firings if atom in self.at]
        for place, site in enumerate(outcome.sites):
            if site in self.bases:
                continue
            before = set(outcome.sites[:place])
            causes = [i for i, where in last if where in before]
            if not causes:
                continue
            alike = [i for i in causes if self.atoms[i].site[:2] == site[:2]]
            opener = (alike or causes)[-1]
            self._open(site)
            if not self.openers.get(site, 0) >> opener & 1:
                self.openers[site] = self.openers.get(site, 0) | 1 << opener
                for i in bits(self.here[site]):
                    if self.atoms[opener].site != site:
                        self.goal[i] |= 1 << opener
                        self.goal[opener] |= 1 << i

    def _note_cut(self, outcome: Outcome, met: set[Site]) -> None:
        """The last fault that took effect is what kept later calls from being made."""
        based = [(self.bases[site], atom) for atom, site in outcome.firings if site in self.bases]
        if not based or outcome.firings[-1][0] not in self.at:
            return
        place, last = max(based, key=lambda pair: pair[0])
        missing = {site for site, order in self.bases.items() if order > place and site not in met}
        i = self.at.get(last)
        if i is not None:
            known = self.cuts.get(i)
            self.cuts[i] = missing if known is None else known & missing
