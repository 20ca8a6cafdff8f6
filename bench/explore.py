"""Faults searched in a synthetic world of 120: runs until all that is planted is found, beside the usual ways.

Two faults break the agent alone, and two pairs of faults do; four faults end its runs, so that what is planned behind
them does not happen. Every way has the same shrinker, and never schedules again what it knows to fail.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable

from bench.explore_world import BROKEN, MODES, World
from bench.outcome import Claim, Outcome
from flakestorm.engine.asking import Asker
from flakestorm.engine.atoms import Asking, Atom, Atoms
from flakestorm.engine.explore import Search
from flakestorm.engine.shrink import reduce

LIMIT = 155
"""What the design asked for: the median number of runs."""
MOST = 20_000


def measure(*, quick: bool) -> list[Outcome]:
    seeds = range(3 if quick else 20)
    rows, medians = [], {}
    for name, way in WAYS.items():
        found = [way(World(seed), seed) for seed in seeds]
        runs = [at for at in found if at is not None]
        medians[name] = statistics.median([MOST if at is None else at for at in found])
        rows.append((name, f"{medians[name]:.0f}", f"{max(runs, default=0)}", f"{len(runs)} of {len(found)}"))
    claims = [
        Claim(f"all that is planted is found after a median of at most {LIMIT} runs", medians["flakestorm"] <= LIMIT),
        Claim("in fewer runs than any of the others", medians["flakestorm"] == min(medians.values())),
    ]
    return [
        Outcome(
            "Search: 120 faults, 2 single ones and 2 pairs planted",
            ("", "runs, median", "runs, most", "found all"),
            rows,
            [] if quick else claims,
            f"Over {len(seeds)} worlds, given up after {MOST:,} runs.",
        )
    ]


def ours(world: World, seed: int) -> int | None:
    """The search itself."""
    search = Search(lambda _: MODES, lambda _: (), random.Random(seed))
    return _until_found(world, search.steps(), lambda: [frozenset(found.schedule) for found in search.findings])


def _random(share: float) -> Callable[[World, int], int | None]:
    def way(world: World, seed: int) -> int | None:
        rng, known = random.Random(seed), list[Atoms]()

        def schedules() -> Asking[None]:
            asker = Asker()
            while True:
                chosen = {Atom(site, rng.choice(MODES)) for site in world.calls if rng.random() < share}
                for bad in known:
                    if bad <= chosen:
                        chosen -= {rng.choice(sorted(bad))}
                (outcome,) = yield from asker.ask([frozenset(chosen)])
                if outcome.failures:
                    shown = yield from reduce(asker, outcome, BROKEN, rng)
                    if shown.fired not in known:
                        known.append(shown.fired)
                del asker.runs[:-200]
                asker._known.clear()

        return _until_found(world, schedules(), lambda: known)

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


def _until_found(world: World, steps: Asking[None], known: Callable[[], list[Atoms]]) -> int | None:
    try:
        asks = next(steps)
        while world.runs < MOST:
            asks = steps.send(world.answer(asks))
            if world.found(known()):
                return world.runs
    except StopIteration:
        pass
    return world.runs if world.found(known()) else None


WAYS: dict[str, Callable[[World, int], int | None]] = {
    "flakestorm": ours,
    "random, every call": _random(1.0),
    "random, 5% of calls": _random(0.05),
    "one by one, then two by two": exhaustive,
}
