"""Searching the schedules of faults for the smallest ones that make an agent break a promise.

    1  A run without faults shows the calls that can be broken.
    2  Each run breaks as many of them at once as promise to pass (`ground.py`); what fails is shrunk at once
       (`shrink.py`), remembered, never scheduled again, and tried at calls that are alike.
    3  It ends when each fault and each pair was tried, or the runs are used up.
    4  Faults that last are tried by lineage (`lineage.py`): what kept the agent alive is what is broken next.

The search decides and runs nothing: `steps` is a generator that yields runs to make and is sent what they showed. It
may be closed at any moment, and what it found until then stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from flakestorm.core.choices import Draw
from flakestorm.core.site import Site
from flakestorm.engine.asking import FRESH, Asker
from flakestorm.engine.atoms import Asking, Atom, Atoms, Failure, Outcome, SizeOf, measure
from flakestorm.engine.found import Findings, Found
from flakestorm.engine.ground import Coverage, Ground, bits
from flakestorm.engine.lineage import Lineage
from flakestorm.engine.packing import SUSPECT, Packer
from flakestorm.engine.shrink import reduce, smaller, weaken

__all__ = ["Search"]

BATCH = 4
"""How many runs are planned at most before any of them is known. It is fixed, so that a search does not depend on how
many runs may be under way at once."""
CHANCE = 0.5
"""No more are planned than are as likely as this to pass all together: what a run that fails shows changes the plan."""
MANY = 4
"""A failure that takes more faults of one kind than this is told as one fault that lasts."""


@dataclass(slots=True)
class Search:
    """The search for one prompt.

    Args:
        faults: gives the faults to try at a call.
        lasting: gives those of them that are also tried at all calls of a name.
        draw: makes the random choices.
        measure: says which schedule is the smaller one.
    """

    faults: Callable[[Site], Sequence[str]]
    lasting: Callable[[Site], Sequence[str]]
    draw: Draw
    measure: SizeOf = measure
    asker: Asker = field(default_factory=Asker)
    findings: Findings = field(default_factory=Findings)
    unjudged: list[Atoms] = field(default_factory=list)
    calm: Outcome | None = None
    finished: bool = False
    ground: Ground = field(init=False)
    packer: Packer = field(init=False)
    _probes: list[Atoms] = field(default_factory=list)
    _learnt: int = 0
    _believed: int = 0
    _led: int = 0

    def __post_init__(self) -> None:
        self.ground = Ground(self.faults, self.draw)
        self.packer = Packer(self.ground)

    @property
    def coverage(self) -> Coverage:
        return self.ground.coverage()

    def steps(self) -> Asking[None]:
        """The search itself."""
        if not (yield from self._begin()):
            return
        while batch := self._batch():
            outcomes = yield from self._ask(batch)
            for outcome in outcomes:
                yield from self._explain(outcome)
            yield from self._leads()
            yield from self._doubts()
        yield from self._last()
        yield from self._doubts()
        self.finished = True

    def _begin(self) -> Asking[bool]:
        """The runs without faults; whether there is something to search."""
        outcomes = yield from self.asker.ask([frozenset()])
        again = yield from self.asker.again(frozenset())
        both = [*outcomes, again]
        passing = [outcome for outcome in both if outcome.passed]
        if len(passing) == 1:
            yield from self.asker.measure()
            passing += [o for o in self.asker.runs if o.passed]
        self.calm = passing[0] if passing else both[0]
        calm = sum(o.passed for o in self.asker.runs)
        if 2 * calm <= len(self.asker.runs):
            return False
        self.ground.base(self.calm.sites)
        self._probes = [self.ground.set_of(1 << i) for i in bits(self.ground.delays)]
        self._learn()
        return True

    def _learn(self) -> None:
        """What the runs since then have shown."""
        for outcome in self.asker.runs[self._learnt :]:
            if outcome.text is None:
                self.ground.learn(outcome)
        self._learnt = len(self.asker.runs)

    def _ask(self, batch: Sequence[Atoms]) -> Asking[list[Outcome]]:
        outcomes = yield from self.asker.ask(batch)
        made = {id(outcome) for outcome in self.asker.runs[self._learnt :]}
        self._learn()
        for atoms, outcome in zip(batch, outcomes, strict=True):
            if id(outcome) not in made:
                self.ground.known(atoms, outcome)
        return outcomes

    def _batch(self) -> list[Atoms]:
        """The next schedules: what is suspected, else what covers most, else pairs that would not meet otherwise."""
        batch: list[Atoms] = []
        later: list[Atoms] = []
        while self._probes and len(batch) < BATCH:
            probe = self._probes.pop(0)
            mask = self.ground.mask(probe)
            if mask & self.ground.idle or self.ground.forbidden(mask) or self._settled(probe):
                continue
            if len(probe) > 1 and self.ground.untried & ~self.ground.shy:
                later.append(probe)  # most of what it would be filled with is not known yet
            else:
                batch.append(self._filled(probe))
        self._probes += later
        if batch:
            return batch
        taken: list[tuple[int, int, list[int]]] = []
        passes = 1.0
        for _ in range(BATCH):
            packed = self.packer.pack()
            if not packed:
                break
            passes *= self.packer.passes(packed)
            if batch and passes < CHANCE:
                break
            batch.append(packed)
            taken.append(self._pretend(packed))
            if self.ground.untried and any(self.packer.doubt(self.ground.at[a]) == SUSPECT for a in packed):
                break  # what it shows decides what to doubt
        for tried, mask, done in reversed(taken):
            self.ground.tried = tried
            for i, before in zip((self.ground.at[a] for a in self.ground.set_of(mask)), done, strict=True):
                self.ground.done[i] = before
        return batch or self._exact()

    def _filled(self, probe: Atoms) -> Atoms:
        return self.packer.fill(probe, frozenset()) if self.asker.steady else probe

    def _pretend(self, packed: Atoms) -> tuple[int, int, list[int]]:
        """Take a schedule for covered while the others of its batch are chosen; gives what was known before."""
        ground, mask = self.ground, self.ground.mask(packed)
        members = [ground.at[atom] for atom in ground.set_of(mask)]
        before = (ground.tried, mask, [ground.done[i] for i in members])
        ground.tried |= mask
        for i in members:
            ground.done[i] |= mask & ~(1 << i)
        return before

    def _exact(self) -> list[Atoms]:
        """Faults, and pairs of them, that would not take effect in larger schedules, by themselves."""
        ground = self.ground
        for i in list(bits(ground.untried)):
            alone = ground.set_of(1 << i)
            known = self.asker.predicted_for(alone)
            if known is None and ground.atoms[i].site in ground.bases:
                return [alone]
            if known is not None or not ground.openers.get(ground.atoms[i].site):
                ground.idle |= 1 << i
        for i, j in list(ground.pairs_left()):
            both = ground.set_of(1 << i | 1 << j)
            known = self.asker.predicted_for(both)
            if known is None:
                return [both]
            if known.fired != both or not known.passed:
                ground.rule_out(i, j)
            else:
                ground.learn(known)
        for i in list(bits(ground.untried)):
            ground.idle |= 1 << i
        return []

    def _explain(self, outcome: Outcome) -> Asking[None]:
        """Find what makes this run fail, once for each way in which it does."""
        for failure in outcome.failures:
            if any(set(f.schedule) <= outcome.asked and f.failure == failure for f in self.findings.every()):
                continue
            if any(bad and bad <= outcome.fired for bad in map(self.ground.set_of, self.ground.bad)):
                continue  # another failure of the same faults
            if not self._alike(outcome.fired, failure):
                yield from self._find(outcome, failure)

    def _leads(self) -> Asking[None]:
        """Runs that failed on the way to a finding, and do not hold it."""
        while self._led < len(self.asker.runs):
            outcome = self.asker.runs[self._led]
            self._led += 1
            if self.asker.steady and outcome.failures and outcome.text is None and outcome.fired:
                yield from self._explain(outcome)

    def _alike(self, fired: Atoms, failure: Failure) -> bool:
        """Whether this is taken for a finding with other modes at its calls, without asking further.

        Three calls have hundreds of them. Only what is promised, faults alone and two by two, is told apart by runs:
        nothing less than the whole is taken for tried.
        """
        for known in self.findings.every():
            places = {atom.site for atom in known.schedule}
            same = frozenset(atom for atom in fired if atom.site in places)
            if known.failure == failure and len(places) > 2 and len(same) == len(places):
                self.ground.avoid(known.schedule)
                self.ground.avoid(same)
                return True
        return False

    def _find(self, outcome: Outcome, failure: Failure) -> Asking[None]:
        for _ in range(3):
            shown = yield from self._smallest(outcome, failure)
            if shown is None and not self.asker.steady:
                return
            if shown is None:  # it fails though nothing was broken
                yield from self.asker.measure()
                self._learn()
                continue
            known = any(found.failure == failure for found in self.findings)
            # Chance looks like a bug that takes many faults: no part of them shows it.
            fresh = 2 * FRESH if len(shown.fired) > 2 else 1 if known else FRESH
            sure = yield from self.asker.confirm(shown.fired, failure, fresh=fresh)
            self._learn()
            if sure:
                break  # else chance had a hand in it, here or on the way
        else:
            return
        minimal = shown.fired
        if not failure.invariant:
            self._keep(shown, failure, minimal)
            return
        while True:
            fill = self._fill if self.asker.steady else None
            weaker = yield from weaken(self.asker, shown, failure, smaller(self.faults), self._settled, fill)
            fewer = (yield from reduce(self.asker, weaker, failure, self.draw)) if weaker is not shown else weaker
            self._learn()
            if len(fewer.fired) >= len(minimal) or not (yield from self._sure(fewer, failure)):
                break
            self._keep(fewer, failure, fewer.fired)  # another bug, which a weaker fault shows by itself
        if weaker.fired != minimal and not (yield from self._sure(weaker, failure)):
            weaker = shown
        self._keep(weaker, failure, minimal)

    def _sure(self, outcome: Outcome, failure: Failure) -> Asking[bool]:
        """Whether a weaker schedule fails like the one that was confirmed; a steady agent is taken at its word."""
        if self.asker.steady:
            return True
        sure = yield from self.asker.confirm(outcome.fired, failure)
        self._learn()
        return sure

    def _doubts(self) -> Asking[None]:
        """What was found while the agent was taken for steady is confirmed once more when it turns out not to be."""
        while not self.asker.steady and self._believed < len(self.findings):
            found = self.findings[self._believed]
            if (yield from self.asker.confirm(frozenset(found.schedule), found.failure)):
                self._believed += 1
            else:
                self.ground.acquit(self.findings.drop(self._believed))
            self._learn()

    def _smallest(self, outcome: Outcome, failure: Failure) -> Asking[Outcome | None]:
        if not self.asker.steady:
            (outcome,) = yield from self.asker.ask([outcome.fired or outcome.asked], failure)
        if not outcome.shows(failure) or not outcome.fired:
            return None
        shown = yield from reduce(
            self.asker, outcome, failure, self.draw, fill=self._fill if self.asker.steady else None
        )
        self._learn()
        return shown if shown.fired else None

    def _fill(self, atoms: Atoms, without: Atoms) -> Atoms:
        self._learn()
        return self.packer.fill(atoms, without)

    def _settled(self, atoms: Atoms) -> bool:
        """Whether these were tried together in a run that passed, or hold what makes a run fail without the rest."""
        ground = self.ground
        if any(bad < atoms for bad in map(ground.set_of, ground.bad)):
            return True
        mask = ground.mask(atoms)
        if mask.bit_count() != len(atoms) or len(atoms) > 2:
            return False
        first, *more = (ground.at[atom] for atom in atoms)
        return bool(ground.tried >> first & 1) and all(ground.done[first] >> i & 1 for i in more)

    def _keep(self, shown: Outcome, failure: Failure, minimal: Atoms) -> None:
        """Remember it, and look for the like of it."""
        for atoms in {minimal, shown.fired}:
            self.ground.convict(atoms)
            self._look_for_twins(atoms)
        if not failure.invariant:
            if shown.fired not in self.unjudged:
                self.unjudged.append(shown.fired)
            return
        schedule = tuple(dict.fromkeys(atom for atom, _ in shown.firings))
        also = () if minimal == shown.fired else (tuple(sorted(minimal)),)
        before, all_sure = len(self.findings), self._believed == len(self.findings)
        gone = self.findings.take(Found(schedule, failure, shown.run, also), shown)
        self._believed -= sum(n < self._believed for n in gone)
        if not self.asker.steady and all_sure and len(self.findings) > before - len(gone):
            self._believed += 1

    def _look_for_twins(self, atoms: Atoms) -> None:
        """The same faults, one of them at a call that is alike or of another mode; three would have too many."""
        if len(atoms) > 2:
            return
        for atom in sorted(atoms):
            rest = atoms - {atom}
            for other in self.ground.atoms:
                if other.site[:2] != atom.site[:2] or (other.site != atom.site and other.fault != atom.fault):
                    continue
                if other not in atoms and not any(other.conflicts(each) for each in rest):
                    self._probes.append(rest | {other})

    def _last(self) -> Asking[None]:
        """Faults that last."""
        names = {site[:2]: site for site in reversed(list(self.ground.here)) if self.ground.here[site]}
        lineage = Lineage(list(reversed(names.values())))
        for site in lineage.names:
            for fault in self.lasting(site):
                if not self._fails_once(site, fault):
                    yield from self._outage(frozenset({Atom(Site(*site[:2], 1), fault, lasting=True)}), lineage)
        while (names_ := lineage.next()) is not None:
            faults = [(site, self.lasting(site)) for site in names_]
            if all(each for _, each in faults):
                atoms = frozenset(Atom(Site(*site[:2], 1), each[0], lasting=True) for site, each in faults)
                yield from self._outage(atoms, lineage)
            else:
                lineage.fails(names_)

    def _fails_once(self, site: Site, fault: str) -> bool:
        return any(f.site[:2] == site[:2] and f.fault == fault for f in self.ground.set_of(self.ground.guilty))

    def _outage(self, atoms: Atoms, lineage: Lineage) -> Asking[None]:
        (outcome,) = yield from self.asker.ask([atoms])
        names = [atom.site for atom in atoms]
        if not outcome.failures:
            lineage.passes(names, outcome)
            return
        lineage.fails(names)
        for failure in outcome.failures:
            pinned = frozenset(Atom(site, atom.fault) for atom, site in outcome.firings)
            if any(set(f.schedule) <= (pinned | atoms) and f.failure == failure for f in self.findings.every()):
                continue
            if self._alike(pinned, failure):
                continue
            shown = outcome
            if len(pinned) <= MANY * max(len(atoms), 1) * 3:
                (exact,) = yield from self.asker.ask([pinned], failure)
                if exact.shows(failure):
                    reduced = yield from reduce(self.asker, exact, failure, self.draw)
                    if len(reduced.fired) <= MANY:
                        shown = reduced
            if (yield from self.asker.confirm(shown.asked if shown is outcome else shown.fired, failure)):
                self._keep(shown, failure, shown.fired)
