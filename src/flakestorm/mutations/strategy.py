"""Where to spend runs: `strategy: adaptive`.

A bandit whose arms are the operators of each type. Every arm is tried before any is tried twice, those of types that
have failed first; after that Thompson sampling (W. R. Thompson, "On the likelihood that one unknown probability exceeds
another", Biometrika 25, 1933) prefers arms that keep finding something. A failure like one that the arm has shown
before, but for its quotations and numbers, soon counts as nothing found: the third proof of one bug teaches no more.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from flakestorm.core.choices import Choices
from flakestorm.mutations.base import Mutation

__all__ = ["BATCH", "PROOFS", "Arm", "Bandit", "arm_of", "signature"]

Arm: TypeAlias = tuple[str, str]
"""A type and an operator."""

BATCH = 8
"""Runs between two decisions. It does not follow the concurrency, so that the same seed makes the same runs."""

PROOFS = 2
"""How many alike failures of an arm count as found."""

_VARIABLE = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|[\d.,]+")


def arm_of(mutation: Mutation) -> Arm:
    """The arm that a mutation is a pull of."""
    return mutation.type, mutation.operator


def signature(failures: Iterable[tuple[str, str]]) -> str:
    """What near-identical failures have in common.

    Args:
        failures: the failing invariants of a run, each with its reason.
    """
    return "; ".join(sorted(f"{name}: {_VARIABLE.sub('*', reason)[:160]}" for name, reason in failures))


@dataclass(slots=True)
class Bandit:
    """Chooses arms and learns from what they gave.

    Args:
        choices: every draw follows from them.
    """

    choices: Choices
    _won: Counter[Arm] = field(default_factory=Counter)
    _lost: Counter[Arm] = field(default_factory=Counter)
    _failed: Counter[str] = field(default_factory=Counter)
    _tried: Counter[str] = field(default_factory=Counter)
    _known: dict[Arm, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _turn: int = 0

    def choose(self, left: Mapping[Arm, int], count: int = BATCH) -> list[Arm]:
        """The arms to pull next, at most so many, each at most as often as it has mutations left."""
        self._turn += 1
        draw, pulls, chosen = self.choices.stream("pull", self._turn), Counter[Arm](), list[Arm]()
        while len(chosen) < count:
            open_arms = [arm for arm in left if left[arm] > pulls[arm]]
            if not open_arms:
                break
            scores = {}
            for arm in open_arms:
                kind, _ = arm
                if not (self._won[arm] or self._lost[arm] or pulls[arm]):
                    known = self._tried[kind] - self._failed[kind]
                    scores[arm] = 1 + draw.betavariate(1 + self._failed[kind], 1 + known)
                else:
                    scores[arm] = draw.betavariate(1 + self._won[arm], 1 + self._lost[arm] + pulls[arm])
            best = max(open_arms, key=scores.__getitem__)
            pulls[best] += 1
            chosen.append(best)
        return chosen

    def learn(self, arm: Arm, failures: Sequence[tuple[str, str]]) -> bool:
        """Take in what a pull gave: its failing invariants with their reasons; none if it passed.

        Returns:
            Whether it found something: a failure that the arm had not proven before.
        """
        said = signature(failures)
        fresh = bool(failures) and self._known[arm][said] < PROOFS
        self._known[arm][said] += 1
        (self._won if fresh else self._lost)[arm] += 1
        self._tried[arm[0]] += 1
        self._failed[arm[0]] += bool(failures)
        return fresh
