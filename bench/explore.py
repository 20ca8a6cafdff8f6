"""Faults searched in a synthetic world of 120: runs until all that is planted is found, beside the usual ways.

Two faults break the agent alone, and two pairs of faults do; four faults end its runs, so that what is planned behind
them does not happen. All ways but the exhaustive one are the search itself with other schedules, so they begin,
shrink, confirm and weaken with the same code, and every run of that counts. Random ways differ in what they remember:
nothing from one failure to the next; what was found, so that a run that holds it is not shrunk again; or all that the
search does, so that no such run is made and no fault is suspected that passed before.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from math import comb, log2
from typing import Literal, TypeAlias

from bench.explore_world import MODES, World
from bench.outcome import Claim, Outcome
from flakestorm.engine.atoms import Asking, Atom, Atoms
from flakestorm.engine.atoms import Outcome as Showed
from flakestorm.engine.explore import Search

LIMIT = 155
"""What the design asked for: the median number of runs."""
MOST = 10_000
SEEDS = 60
Memory: TypeAlias = Literal["nothing", "findings", "all"]


def measure(*, quick: bool) -> list[Outcome]:
    seeds = range(3 if quick else SEEDS)
    counts: dict[str, list[int]] = {}
    rows = []
    for name, way in WAYS.items():
        found = [way(World(seed), seed) for seed in seeds]
        counts[name] = [MOST if at is None else at for at in found]
        ratio = "" if name == OURS else _ratio(counts[OURS], counts[name])
        median = f"{statistics.median(counts[name]):.0f}{_interval(counts[name])}"
        rows.append((name, median, f"{max(counts[name])}", f"{sum(at is not None for at in found)}", ratio))
    medians = {name: statistics.median(each) for name, each in counts.items()}
    claims = [
        Claim(f"all that is planted is found after a median of at most {LIMIT} runs", medians[OURS] <= LIMIT),
        Claim(f"in at most a third of the runs of `{DENSE}`", medians[OURS] <= medians[DENSE] / 3),
        Claim(f"in at most a twentieth of the runs of `{SPARSE}`", medians[OURS] <= medians[SPARSE] / 20),
        Claim("in fewer runs than any of the others", medians[OURS] == min(medians.values())),
    ]
    return [
        Outcome(
            "Search: 120 faults, 2 single ones and 2 pairs planted",
            ("", "runs, median", "runs, most", f"found all, of {len(seeds)}", "ours to theirs"),
            rows,
            [] if quick else claims,
            f"Over {len(seeds)} worlds, given up after {MOST:,} runs; 95% intervals of the median by order statistics, "
            "and of the ratio of medians by resampling the worlds. A run tells pass or fail, one bit, and what is "
            f"planted can be chosen in 2^{_bits():.0f} ways, so no search at all can have a median of much less than "
            f"{_bits():.0f} runs.",
        )
    ]


class Random(Search):
    """The search with schedules by chance: each call is broken with the same probability, in one of its modes.

    Args:
        world: whose calls.
        share: that probability.
        memory: what is remembered.
    """

    def at(self, world: World, share: float, memory: Memory) -> Random:
        self._world, self._share, self._memory = world, share, memory
        return self

    def _batch(self) -> list[Atoms]:
        del self.asker.runs[: -1 if self._memory == "nothing" else -200]
        self._learnt = self._led = len(self.asker.runs)
        self.asker._known.clear()
        chosen = {Atom(site, self.draw.choice(MODES)) for site in self._world.calls if self.draw.random() < self._share}
        for found in self.findings if self._memory == "all" else ():
            if set(found.schedule) <= chosen:
                chosen -= {self.draw.choice(sorted(found.schedule))}
        return [frozenset(chosen)]

    def _explain(self, outcome: Showed) -> Asking[None]:
        if self._memory != "nothing":
            yield from super()._explain(outcome)
            return
        for failure in outcome.failures:
            yield from self._find(outcome, failure)

    def _leads(self) -> Asking[None]:
        yield from ()

    def _fill(self, atoms: Atoms, without: Atoms) -> Atoms:
        return atoms  # chance has no plan of what is still to be covered


def ours(world: World, seed: int) -> int | None:
    """The search itself."""
    return _until_found(world, Search(lambda _: MODES, lambda _: (), random.Random(seed)))


def by_chance(share: float, memory: Memory) -> Callable[[World, int], int | None]:
    """Random schedules."""

    def way(world: World, seed: int) -> int | None:
        search = Random(lambda _: MODES, lambda _: (), random.Random(seed))
        return _until_found(world, search.at(world, share, memory))

    return way


def exhaustive(world: World, seed: int) -> int:
    """Every single fault and every pair, in random order, until the last of what is planted had its turn."""
    rng = random.Random(seed)
    pairs = [frozenset((a, b)) for n, a in enumerate(world.atoms) for b in world.atoms[:n] if a.site != b.site]
    rng.shuffle(pairs)
    singles = [frozenset((atom,)) for atom in world.atoms]
    rng.shuffle(singles)
    order = {schedule: at for at, schedule in enumerate([*singles, *pairs], 1)}
    return max(order[bug] for bug in world.planted)


def _until_found(world: World, search: Search) -> int | None:
    def known() -> list[Atoms]:
        return [frozenset(each) for found in search.findings for each in (found.schedule, *found.also)]

    steps = search.steps()
    try:
        asks = next(steps)
        while world.runs < MOST:
            asks = steps.send(world.answer(asks))
            if world.found(known()):
                return world.runs
    except StopIteration:
        pass
    return world.runs if world.found(known()) else None


def _bits() -> float:
    """The logarithm to base 2 of how many ways there are to plant two faults and two pairs, as `World` does."""
    free = 30 * len(MODES) - 4  # those that end a run show at once
    pairs = comb(free - 2, 2) * comb(free - 4, 2) / 2 * (29 / 30) ** 2
    return log2(comb(free, 2) * pairs)


def _interval(counts: Sequence[int]) -> str:
    """The 95% interval of the median, by the order statistics that chance leaves on either side of it; of so few that
    these are none, nothing."""
    if 0.5 ** len(counts) > 0.025:
        return ""
    ordered, n = sorted(counts), len(counts)
    k, tail = 0, 0.5**n
    while k < n // 2 and tail + comb(n, k + 1) * 0.5**n <= 0.025:
        k += 1
        tail += comb(n, k) * 0.5**n
    return f" [{ordered[k]}, {ordered[n - 1 - k]}]"


def _ratio(mine: Sequence[int], theirs: Sequence[int]) -> str:
    """The ratio of the medians, with its 95% interval; of few, without."""
    whole = statistics.median(mine) / statistics.median(theirs)
    if len(mine) < 20:
        return f"{whole:.3g}"
    rng, n = random.Random(1), len(mine)
    drawn = []
    for _ in range(2000):
        at = [rng.randrange(n) for _ in range(n)]
        drawn.append(statistics.median([mine[i] for i in at]) / statistics.median([theirs[i] for i in at]))
    drawn.sort()
    return f"{whole:.3g} [{drawn[50]:.3g}, {drawn[1949]:.3g}]"


OURS = "flakestorm"
DENSE = "every call at random, nothing remembered"
SPARSE = "5% of calls at random, all remembered"
WAYS: dict[str, Callable[[World, int], int | None]] = {
    OURS: ours,
    DENSE: by_chance(1.0, "nothing"),
    "every call at random, findings remembered": by_chance(1.0, "findings"),
    "every call at random, all remembered": by_chance(1.0, "all"),
    "half the calls at random, nothing remembered": by_chance(0.5, "nothing"),
    SPARSE: by_chance(0.05, "all"),
    "one by one, then two by two": exhaustive,
}
