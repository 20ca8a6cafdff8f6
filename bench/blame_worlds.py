"""Synthetic failures of which it is known what caused them: curves of how often a run fails with k events pinned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flakestorm.core.choices import Choices, Draw
from flakestorm.engine.blame import Finding, Seen, Terms, search

__all__ = ["STEPS", "WORLDS", "Tally", "World", "play", "tally"]

STEPS = 100


@dataclass(frozen=True)
class World:
    """A failure.

    Args:
        curve: V(0) to V(n).
        causes: the events that made it fail, counted from 1.
    """

    curve: list[float]
    causes: frozenset[int]


def clean(draw: Draw, n: int) -> World:
    """One step decides; without it, one run in ten fails."""
    at = draw.randrange(1, n + 1)
    return World([0.1 if k < at else 1.0 for k in range(n + 1)], frozenset({at}))


def leaky(draw: Draw, n: int) -> World:
    """One step does most of it, and every other step a little."""
    at = draw.randrange(1, n + 1)
    curve = [0.05 + 0.2 * k / n if k < at else 0.8 + 0.2 * k / n for k in range(n + 1)]
    return World([*curve[:-1], 1.0], frozenset({at}))


def two(draw: Draw, n: int) -> World:
    """Two steps, each of which does half of it."""
    first, second = sorted(draw.sample(range(1, n + 1), 2))
    curve = [0.05 if k < first else 0.5 if k < second else 0.97 for k in range(n + 1)]
    return World([*curve[:-1], 1.0], frozenset({first, second}))


def none(draw: Draw, n: int) -> World:
    """Every step does as little as any other."""
    start = draw.choice([0.05, 0.3, 0.5])
    return World([start + (1 - start) * k / n for k in range(n + 1)], frozenset())


def coin(draw: Draw, n: int) -> World:
    """No step has anything to do with it: the outcome is a coin that is tossed anew in each run."""
    return World([draw.choice([0.3, 0.5, 0.7])] * (n + 1), frozenset())


WORLDS: dict[str, Callable[[Draw, int], World]] = {
    "clean jump": clean,
    "leaky jump": leaky,
    "two causes": two,
    "no culprit": none,
    "coin flip": coin,
}


@dataclass
class Tally:
    """What became of many searches.

    Args:
        trials: how many; right: what is blamed is exactly what caused it; near: a cause was named, and nothing else.
        blamed: steps that were blamed without having caused anything, over all trials.
        named: trials in which a step was named.
        spent, most: continuations, of all trials and of the worst.
        covered, intervals: how many of the printed 95% intervals hold the truth.
    """

    trials: int = 0
    right: int = 0
    near: int = 0
    blamed: int = 0
    named: int = 0
    spent: int = 0
    most: int = 0
    covered: int = 0
    intervals: int = 0


def play(world: World, draw: Draw, terms: Terms) -> Finding:
    """One search in such a world."""
    seeking = search(len(world.curve) - 1, terms)
    wanted = next(seeking)
    while True:
        try:
            wanted = seeking.send(
                {k: [Seen(draw.random() < world.curve[k]) for _ in range(times)] for k, times in wanted.items()}
            )
        except StopIteration as end:
            finding: Finding = end.value
            return finding


def tally(name: str, trials: int, *, seed: int = 1, steps: int = STEPS, terms: Terms | None = None) -> Tally:
    """Many searches in worlds of one kind."""
    found = Tally()
    for trial in range(trials):
        draw = Choices(seed, "blame", name).stream(trial)
        world = WORLDS[name](draw, steps)
        finding = play(world, draw, terms or Terms())
        named = {cause.k for cause in finding.causes}
        found.trials += 1
        found.right += named == world.causes
        found.near += bool(named) and named <= world.causes
        found.blamed += len(named - world.causes)
        found.named += bool(named)
        found.spent += finding.spent
        found.most = max(found.most, finding.spent)
        for cause in finding.causes:
            found.intervals += 1
            found.covered += cause.jump.low <= world.curve[cause.k] - world.curve[cause.k - 1] <= cause.jump.high
    return found
