"""What a search has found, and which of it is told as one bug.

A fault that is answered with a retry moves all later calls of that name on by one. So whatever breaks an agent at a
call also breaks it one call later, behind such a fault, and no part of those two does: a minimal schedule, and yet
nothing new. It is told beside the smaller one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

from flakestorm.core.site import Site
from flakestorm.engine.atoms import Atom, Failure, Outcome

__all__ = ["Findings", "Found", "is_later"]

_MOST = 1000
"""Where there are more ways to take the additional faults out of a schedule, it is not compared call by call."""


@dataclass(frozen=True, slots=True)
class Found:
    """A minimal schedule that makes the agent fail.

    Args:
        schedule: its faults, in order of happening.
        failure: how it fails.
        run: the id of a run that shows it.
        also: the same otherwise: schedules with stronger faults that shrink to this one, and such as break the same
            calls after a retry.
        text: the input that it needs; None for the prompt as it stands.
    """

    schedule: tuple[Atom, ...]
    failure: Failure
    run: str
    also: tuple[tuple[Atom, ...], ...] = ()
    text: str | None = None


def is_later(shown: Outcome, known: Outcome) -> bool:
    """Whether a run breaks nothing but the calls that another one breaks, some retries later.

    It has the same faults and some more. Where the calls that these hit are left out, and those that are left are
    counted anew, both runs must have made the same calls, with the same faults at the same ones, up to the last fault;
    and each call that is left out must have been made again before a fault of the other run hit one of that name.

    Args:
        shown: a run with more faults.
        known: a run that failed in the same way.
    """
    more = len(shown.firings) - len(known.firings)
    if more < 1 or not known.firings or comb(len(shown.firings), more) > _MOST:
        return False
    if any(atom.lasting for atom, _ in (*shown.firings, *known.firings)):
        return False
    hit = {site: atom.fault for atom, site in known.firings}
    ends = max((place for place, site in enumerate(known.sites) if site in hit), default=-1)
    told = [(site, hit.get(site)) for site in known.sites[: ends + 1]]
    return any(
        _is_retried(shown, gone) and _without(shown, gone)[: len(told)] == told
        for gone in combinations([site for _, site in shown.firings], more)
    )


def _is_retried(shown: Outcome, gone: Collection[Site]) -> bool:
    """Whether each of these calls was made again before a fault hit one of its name."""
    kept = [site for _, site in shown.firings if site not in gone]
    return all(any(site[:2] == each[:2] and site.occurrence < each.occurrence for each in kept) for site in gone)


def _without(shown: Outcome, gone: Collection[Site]) -> list[tuple[Site, str | None]]:
    """The calls of a run but for these, counted anew, each with the fault that hit it."""
    hit = {site: atom.fault for atom, site in shown.firings}
    counts: Counter[tuple[str, str]] = Counter()
    told: list[tuple[Site, str | None]] = []
    for site in shown.sites:
        if site not in gone:
            counts[site[:2]] += 1
            told.append((Site(*site[:2], counts[site[:2]]), hit.get(site)))
    return told


class Findings(list[Found]):
    """What was found, each bug once. `beside` are those of which another one tells."""

    def __init__(self) -> None:
        self.beside: list[Found] = []
        self._shown: dict[frozenset[Atom], Outcome] = {}

    def every(self) -> list[Found]:
        """All minimal schedules that were found, told by themselves or not."""
        return [*self, *self.beside]

    def take(self, found: Found, shown: Outcome) -> list[int]:
        """Take in what was found: beside what it is one bug with, or what is one bug with it beside that.

        Args:
            found: the finding; of one that is known already, only what else it tells of is new.
            shown: the run that shows it.

        Returns:
            The places of those that are not told by themselves any more, the last first.
        """
        self._shown[frozenset(found.schedule)] = shown
        if (n := self._teller(found)) is not None:
            more = tuple(each for each in found.also if each not in self[n].also)
            self[n] = replace(self[n], also=(*self[n].also, *more))
            return []
        alike = [(n, known, run) for n, known in enumerate(self) if (run := self._run_of(known, found)) is not None]
        for n, known, run in alike:
            if is_later(shown, run):
                self[n] = replace(known, also=(*known.also, found.schedule, *found.also))
                self.beside.append(found)
                return []
        gone = [(n, known) for n, known, run in reversed(alike) if is_later(run, shown)]
        for n, known in gone:
            found = replace(found, also=(*found.also, known.schedule, *known.also))
            self.beside.append(known)
            del self[n]
        self.append(found)
        return [n for n, _ in gone]

    def drop(self, n: int) -> list[tuple[Atom, ...]]:
        """It was chance, and so may be what it tells of. Gives all these schedules."""
        found = self.pop(n)
        self.beside = [each for each in self.beside if each.failure != found.failure or each.schedule not in found.also]
        return [found.schedule, *found.also]

    def _teller(self, found: Found) -> int | None:
        """The place of what tells of this very schedule already."""
        same = [each for each in self.every() if set(each.schedule) == set(found.schedule)]
        for n, known in enumerate(self):
            if known.failure == found.failure and any(e is known or e.schedule in known.also for e in same):
                return n
        return None

    def _run_of(self, known: Found, found: Found) -> Outcome | None:
        """The run that shows a finding which may be one with another: both fail alike, with the same input."""
        if known.failure != found.failure or known.text != found.text:
            return None
        return self._shown.get(frozenset(known.schedule))
