"""Which step caused a failure: the value curve is bisected, then its jump is confirmed on fresh continuations.

V(k) is the rate of failure when the first k events are as recorded and the rest is live. An event whose pinning makes
the failure likelier has its share in it: V(k) - V(k-1), and the shares sum to V(n) - V(0). Both sides of a jump are
measured: at k, the event is answered by its own recorded reply, which is the control; at k - 1 it is live.

Looking for the largest jump finds one in noise too. So what was seen while searching only says where to look, and a
step is blamed by continuations that were made after it was chosen.

The search is a generator: it yields what it wants continued and is sent what came of it, so a simulated world and a
real agent are asked in the same way. Given the same outcomes it asks the same, so an interrupted search goes on by
being told again what it knew.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from flakestorm.engine.blamed import BUDGET, Conclusion
from flakestorm.stats.changes import Change, Count, changes
from flakestorm.stats.difference import Difference, agresti_caffo
from flakestorm.stats.intervals import wilson

__all__ = ["Cause", "Finding", "Point", "Search", "Seen", "Terms", "Wanted", "search"]

SURE = 0.8
"""How likely a place must be before it is put to the test; the test itself is fresh, so this only saves work."""

FEW = 3
"""Continuations of one point, where equal ones never differed."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How much is asked, and what counts.

    Args:
        budget: the most continuations.
        eps: a rise of V that is looked for; smaller ones are not.
        least: a step is blamed if the interval of its jump lies above this; as there may be `attempts` of them, each
            is `z` wide (two-sided 95% for three together), and what is shown is the 95% interval.
        first: continuations with nothing pinned; probe: at each point of the search, more where that is not enough.
        confirm: fresh ones on each side of a jump; steady: the same, where equal continuations never differed.
        systemic: with a rate surely above this with nothing pinned, there is no step to look for.
        attempts: how many jumps are put to the test, of which `causes` may be found.
    """

    budget: int = BUDGET
    eps: float = 0.3
    least: float = 0.05
    first: int = 16
    probe: int = 8
    confirm: int = 24
    steady: int = 6
    systemic: float = 0.8
    attempts: int = 3
    causes: int = 2
    z: float = 2.394


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one continuation.

    Args:
        failed: whether it failed as the recorded run did; None if it could not be judged.
        said: a digest of all that was said in it, to tell whether equal continuations are equal.
    """

    failed: bool | None
    said: str = ""


Wanted: TypeAlias = Mapping[int, int]
"""How many continuations are wanted with so many events pinned."""

Search: TypeAlias = Generator[Wanted, Mapping[int, Sequence[Seen]], "Finding"]


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the curve: with `k` events pinned, `failed` of `judged` continuations failed."""

    k: int
    failed: int
    judged: int

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the rate of failure; 0 to 1 where nothing was judged."""
        return wilson(self.failed, self.judged) or (0.0, 1.0)

    @property
    def value(self) -> float:
        """The rate of failure, 0..1; one half where nothing was judged."""
        return self.failed / self.judged if self.judged else 0.5


@dataclass(frozen=True, slots=True)
class Cause:
    """A step that is blamed.

    Args:
        k: the event's number, from 1.
        jump: V(k) - V(k-1), on fresh continuations alone.
        before, after: how many of them failed on each side.
    """

    k: int
    jump: Difference
    before: Point
    after: Point


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out.

    Args:
        conclusion: which of the four; why: in words.
        causes: the steps that are blamed, the one with the largest jump first.
        curve: all points that were measured.
        spent, unjudged: continuations that were made, and how many of them could not be judged.
        steady: whether equal continuations never differed.
        doubted: the largest jump that was put to the test and not confirmed.
        within: the narrowest known range of events (after one, up to another) that the failure came about in.
    """

    conclusion: Conclusion
    why: str
    causes: tuple[Cause, ...] = ()
    curve: tuple[Point, ...] = ()
    spent: int = 0
    unjudged: int = 0
    steady: bool = False
    doubted: Cause | None = None
    within: tuple[int, int] | None = None


def search(n: int, terms: Terms | None = None) -> Search:
    """Look for the step that caused a failure.

    Args:
        n: how many events there are, at least one.
        terms: how much is asked.

    Raises:
        ValueError: there is no event.
    """
    if n < 1:
        raise ValueError("there is no event to blame")
    return (yield from _Searching(n, terms or Terms()).run())


@dataclass(slots=True)
class _Known:
    """What was seen at one point."""

    failed: int = 0
    judged: int = 0
    unjudged: int = 0
    said: set[str] = field(default_factory=set)

    def add(self, seen: Sequence[Seen]) -> None:
        for each in seen:
            if each.failed is None:
                self.unjudged += 1
                continue
            self.failed += each.failed
            self.judged += 1
            self.said.add(each.said or f"{each.failed}:{self.judged}")

    @property
    def rate(self) -> float:
        return self.failed / self.judged if self.judged else 0.5


class _Broken(Exception):
    """The search cannot go on; says why."""


class _Searching:
    def __init__(self, n: int, terms: Terms) -> None:
        self.n, self.terms = n, terms
        self.known: dict[int, _Known] = {}
        self.fresh: dict[int, _Known] = {}
        self.spent = 0
        self.causes: list[Cause] = []
        self.doubted: Cause | None = None
        self.tried: set[int] = set()

    def run(self) -> Search:
        try:
            over = yield from self._begin()
            if over is not None:
                return over
            for _ in range(self.terms.attempts):
                rise = yield from self._descend()
                if rise is None or len(self.causes) >= self.terms.causes:
                    break
                yield from self._confirm(rise.likeliest[0])
        except _Broken as broken:
            return self._told("step" if self.causes else "cannot_tell", "" if self.causes else str(broken))
        if self.causes:
            return self._told("step", "")
        return self._told("no_single_step", self._why_none())

    def _begin(self) -> Generator[Wanted, Mapping[int, Sequence[Seen]], Finding | None]:
        """Does the recording lead to its outcome again, and does it fail as often with nothing pinned?"""
        yield from self._ask({self.n: 2})
        end = self.known[self.n]
        if end.failed < end.judged or end.judged < 2:
            raise _Broken(
                f"replayed to its end, the recording led to its failure in {end.failed} of "
                f"{end.judged + end.unjudged} replays, so more than what is on the tape decides"
            )
        yield from self._ask({0: 2})
        start = self.known[0]
        if start.judged:  # else there is no world to be live in
            yield from self._ask({0: 2})
            if start.failed or not self.steady:  # equal runs that pass are as good as many
                yield from self._ask({0: self.terms.first - 4})
        self._demand(start, "with nothing pinned")
        low, _ = Point(0, start.failed, start.judged).interval
        if low > self.terms.systemic:
            why = (
                f"{start.failed} of {start.judged} runs fail with nothing pinned: no single step, but the task, the "
                "prompt or the model"
            )
            return self._told("systemic", why)
        return None

    def _descend(self) -> Generator[Wanted, Mapping[int, Sequence[Seen]], Change | None]:
        """Try where the largest rise most likely lies, until that is one event; None where there is no rise left."""
        while True:
            rise = self._rise()
            if rise is None:
                return None
            k, chance = rise.likeliest
            if chance < SURE:
                yield from self._probe(rise.middle)
            elif missing := [at for at in (k - 1, k) if self._judged(at) < self._enough]:
                yield from self._probe(missing[0])
            else:
                return rise

    def _probe(self, k: int) -> Generator[Wanted, Mapping[int, Sequence[Seen]], None]:
        """A new point; where equal continuations are equal, few are enough."""
        few = min(FEW, self.terms.probe)
        if self.steady:
            yield from self._ask({k: few})
            if self.steady:
                return
            yield from self._ask({k: max(1, self.terms.probe - few)})
        else:
            yield from self._ask({k: self.terms.probe})
        self._demand(self.known[k], f"with {k} events pinned")

    def _confirm(self, k: int) -> Generator[Wanted, Mapping[int, Sequence[Seen]], None]:
        """Both sides of a jump again, by continuations that had no part in choosing it; more if it is close."""
        self.tried.add(k)
        times = self.terms.steady if self.steady else self.terms.confirm
        fresh = {k - 1: _Known(), k: _Known()}
        cause = yield from self._tested(k, fresh, times)
        if not self._stands(cause) and cause.jump.value >= 0.7 * self.terms.eps and self._left >= 2 * times:
            cause = yield from self._tested(k, fresh, times)
        if self._stands(cause):
            self.causes.append(cause)
            yield from self._look_again()
        elif self.doubted is None or self.doubted.jump.value < cause.jump.value:
            self.doubted = cause

    def _tested(
        self, k: int, fresh: Mapping[int, _Known], times: int
    ) -> Generator[Wanted, Mapping[int, Sequence[Seen]], Cause]:
        seen = yield from self._made(dict.fromkeys(fresh, times))
        for at, known in fresh.items():
            known.add(seen.get(at, ()))
            self._keep(at, seen.get(at, ()))
            self._demand(known, f"with {at} events pinned")
        before, after = (Point(at, known.failed, known.judged) for at, known in fresh.items())
        gap = agresti_caffo(before.failed, before.judged, after.failed, after.judged)
        if gap is None:
            raise _Broken("no continuation could be judged")
        return Cause(k, gap, before, after)

    def _stands(self, cause: Cause) -> bool:
        before, after = cause.before, cause.after
        gap = agresti_caffo(before.failed, before.judged, after.failed, after.judged, self.terms.z)
        return gap is not None and gap.low > self.terms.least

    def _look_again(self) -> Generator[Wanted, Mapping[int, Sequence[Seen]], None]:
        """With that step mended, does it fail more often than with nothing pinned? Then there is a second cause."""
        more = 2 * self.terms.first - self._judged(0)
        if not self.steady and more > 0 and self._left >= more:
            yield from self._ask({0: more})

    def _rise(self) -> Change | None:
        """The largest rise of V that was not put to the test yet, of those that are looked for."""
        counts = [self._count(k) for k in sorted(self.known) if self.known[k].judged]
        rises = [each for each in changes(counts) if each.rise >= 0.7 * self.terms.eps]
        rises = [each for each in rises if each.likeliest[0] not in self.tried]
        return max(rises, key=lambda each: each.rise, default=None)

    def _count(self, k: int) -> Count:
        """The end is known better than by its few replays: nothing is live there. And one of those that are always
        equal tells as much as many."""
        known = self.known[k]
        weight = 1.0
        if k == self.n or self.steady:
            weight = max(1.0, self.terms.first / known.judged)
        return Count(k, known.failed * weight, known.judged * weight)

    def _judged(self, k: int) -> int:
        return self.known[k].judged if k in self.known else 0

    @property
    def _left(self) -> int:
        return self.terms.budget - self.spent

    @property
    def _enough(self) -> int:
        return FEW if self.steady else self.terms.probe

    @property
    def steady(self) -> bool:
        return all(len(known.said) <= 1 for known in self.known.values())

    def _ask(self, wanted: Wanted) -> Generator[Wanted, Mapping[int, Sequence[Seen]], None]:
        seen = yield from self._made(wanted)
        for k in wanted:
            self._keep(k, seen.get(k, ()))

    def _made(self, wanted: Wanted) -> Generator[Wanted, Mapping[int, Sequence[Seen]], Mapping[int, Sequence[Seen]]]:
        """Continuations, as far as the budget goes."""
        if self.spent + sum(wanted.values()) > self.terms.budget:
            raise _Broken(f"the budget of {self.terms.budget} continuations is spent")
        seen = yield wanted
        made = sum(len(each) for each in seen.values())
        self.spent += made
        if made < sum(wanted.values()):
            for k, each in seen.items():
                self._keep(k, each)
            raise _Broken("it was ended before enough continuations were made")
        return seen

    def _keep(self, k: int, seen: Sequence[Seen]) -> None:
        self.known.setdefault(k, _Known()).add(seen)

    def _demand(self, known: _Known, where: str) -> None:
        """Most of what was made must have been judged."""
        if known.judged < 2 or known.unjudged > known.judged:
            raise _Broken(
                f"{known.unjudged} of {known.unjudged + known.judged} continuations {where} could not be judged"
            )

    def _why_none(self) -> str:
        if self.doubted is not None:
            jump = self.doubted.jump
            return (
                f"the largest rise, {jump.value:+.2f} [{jump.low:+.2f}, {jump.high:+.2f}] at event {self.doubted.k}, "
                "was not confirmed"
            )
        return f"no single event makes the failure likelier by {self.terms.eps:g} or more"

    def _within(self) -> tuple[int, int] | None:
        """The shortest range over which V is known to rise by half of its whole rise."""
        at = sorted(k for k, known in self.known.items() if known.judged)
        if 0 not in at or self.n not in at:
            return None
        half = (1.0 - self.known[0].rate) / 2
        ranges = [(b - a, a, b) for a in at for b in at if a < b and self.known[b].rate - self.known[a].rate >= half]
        return min(ranges)[1:] if ranges else None

    def _told(self, conclusion: Conclusion, why: str) -> Finding:
        causes = tuple(sorted(self.causes, key=lambda cause: -cause.jump.value))
        curve = tuple(Point(k, known.failed, known.judged) for k, known in sorted(self.known.items()) if known.judged)
        unjudged = sum(known.unjudged for known in self.known.values())
        steady = self.steady and sum(known.judged for known in self.known.values()) > self.terms.first
        return Finding(conclusion, why, causes, curve, self.spent, unjudged, steady, self.doubted, self._within())
