"""What the decisions promise about their own errors, tried in seeded simulations."""

import random
import statistics

import pytest

from compare_support import pair_of
from flakestorm.engine.compare import rule
from flakestorm.stats.intervals import wilson
from flakestorm.stats.sequential import pairs_needed, regression_evidence, sameness_evidence

ALPHA = 0.05


def first_alarm(rng: random.Random, base: float, head: float, *, pairs: int, shared: bool) -> int | None:
    """After how many pairs the gate, asked after each of them, calls a regression; None if it never does."""
    lost = won = 0
    for n in range(1, pairs + 1):
        luck = rng.random()
        before, after = luck < base, (luck if shared else rng.random()) < head
        lost += before and not after
        won += after and not before
        if regression_evidence(lost, won) >= 1 / ALPHA:
            return n
    return None


def test_equal_versions_are_called_worse_at_most_one_time_in_twenty() -> None:
    rng = random.Random(1)
    alarms = [first_alarm(rng, 0.7, 0.7, pairs=150, shared=False) for _ in range(2000)]
    assert sum(alarm is not None for alarm in alarms) / len(alarms) <= ALPHA


def test_a_drop_from_eight_to_six_in_ten_is_found_within_sixty_pairs_of_shared_seeds() -> None:
    rng = random.Random(2)
    alarms = [first_alarm(rng, 0.8, 0.6, pairs=400, shared=True) for _ in range(1000)]
    assert statistics.median(alarm or 400 for alarm in alarms) <= 60


def test_what_got_worse_by_the_margin_is_called_the_same_at_most_one_time_in_twenty() -> None:
    rng, margin, runs, wrong = random.Random(3), 0.1, 1500, 0
    for _ in range(runs):
        counts = {"lost": 0, "won": 0, "tied": 0}
        for n in range(1, 201):
            luck = rng.random()
            counts["lost" if luck < 0.15 else "won" if luck < 0.2 else "tied"] += 1
            if n % 10 == 0 and sameness_evidence(**counts, margin=margin) >= 1 / ALPHA:
                wrong += 1
                break
    assert wrong / runs <= ALPHA


def test_the_pairs_said_to_be_needed_are_about_those_that_are() -> None:
    rng, needed, said = random.Random(4), [], []
    for _ in range(150):
        counts = {"lost": 0, "won": 0, "tied": 0}
        for n in range(1, 2000):
            luck = rng.random()
            counts["lost" if luck < 0.1 else "won" if luck < 0.2 else "tied"] += 1
            if n == 60:
                said.append(n + (pairs_needed(**counts, margin=0.1, alpha=ALPHA) or 0))
            if n % 5 == 0 and sameness_evidence(**counts, margin=0.1) >= 1 / ALPHA:
                needed.append(n)
                break
    assert 0.5 < statistics.median(said) / statistics.median(needed) < 2


def test_intervals_of_rates_cover_as_they_say() -> None:
    rng, runs = random.Random(5), 20_000
    covered = 0
    for _ in range(runs):
        rate, n = rng.uniform(0.05, 0.95), rng.randint(10, 60)
        interval = wilson(sum(rng.random() < rate for _ in range(n)), n)
        assert interval is not None
        covered += interval[0] <= rate <= interval[1]
    assert 0.94 <= covered / runs <= 0.97


def concluded(rng: random.Random, base: float, head: float, *, invariants: int, pairs: int, shared: bool) -> int | None:
    """After how many pairs `compare`, looking every five of them, says regression; None if it never does."""
    made = []
    for n in range(1, pairs + 1):
        luck = [rng.random() for _ in range(invariants)]
        other = luck if shared else [rng.random() for _ in range(invariants)]
        made.append(pair_of([x < base for x in luck], [x < head for x in other], trial=n))
        if n % 5 == 0 and rule(made, alpha=ALPHA, delta=0.1).conclusion == "regression":
            return n
    return None


@pytest.mark.parametrize("invariants", [1, 4])
def test_a_version_compared_with_itself_is_seldom_called_worse(invariants: int) -> None:
    rng, tries = random.Random(6), 400
    alarms = [concluded(rng, 0.8, 0.8, invariants=invariants, pairs=80, shared=False) for _ in range(tries)]
    assert sum(alarm is not None for alarm in alarms) / tries <= ALPHA


def test_compare_finds_a_drop_from_eight_to_six_in_ten_within_sixty_pairs() -> None:
    rng = random.Random(7)
    alarms = [concluded(rng, 0.8, 0.6, invariants=1, pairs=200, shared=True) for _ in range(200)]
    assert statistics.median(alarm or 200 for alarm in alarms) <= 60
