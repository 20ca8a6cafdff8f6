"""What a search is made of: one fault at one call (an atom), a set of them, and what a run with it showed.

A search decides and never runs anything. It is a generator that yields `Ask`s and is sent an `Outcome` for each, so the
same code serves an agent on an event loop and a simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

from flakestorm.core.site import Kind, Site
from flakestorm.faults.order import schedule_size, size
from flakestorm.faults.planned import Planned, parse_fault

__all__ = ["Ask", "Asking", "Atom", "Atoms", "Failure", "Outcome", "SizeOf", "measure", "planned_of", "small"]

T = TypeVar("T")


class Atom(NamedTuple):
    """One fault at one call.

    Args:
        site: the call.
        fault: what is done to it, as behind `=` in `--inject`, e.g. `error:503`.
        lasting: whether it is done to every call of that name from this one on.
    """

    site: Site
    fault: str
    lasting: bool = False

    @property
    def line(self) -> str:
        """The fault in one line, as `--inject` takes it."""
        if not self.lasting:
            return f"{self.site.exact}={self.fault}"
        kind: Kind = "llm" if self.site.kind == "llm" else "tool"
        return f"{str(Site(kind, self.site.name, 1)).removesuffix('#1')}={self.fault}"

    @property
    def mode(self) -> str:
        """The fault's mode, e.g. `error`."""
        return planned_of(self).mode

    def conflicts(self, other: Atom) -> bool:
        """Whether both are for one call, so that only one of them could be told from the other."""
        if self.lasting or other.lasting:
            return self.site[:2] == other.site[:2]
        return self.site == other.site


Atoms: TypeAlias = frozenset[Atom]


class Failure(NamedTuple):
    """How a run failed: two runs that fail alike are taken to show the same bug.

    Args:
        invariant: the rule that was broken; empty where the run could not be judged.
        kind: the reason, without what differs from run to run.
    """

    invariant: str
    kind: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run with certain faults showed.

    Args:
        asked: the faults that were planned.
        firings: those that took effect, with the call they hit, in order of happening.
        sites: the calls that were made, in order of arrival.
        failures: the rules that were broken, the most severe first; empty for a pass.
        judged: whether a rule could be judged at all.
        run: the run's id.
        text: the input, where it is not the prompt as it stands.
    """

    asked: Atoms
    firings: tuple[tuple[Atom, Site], ...] = ()
    sites: tuple[Site, ...] = ()
    failures: tuple[Failure, ...] = ()
    judged: bool = True
    run: str = ""
    text: str | None = None

    @property
    def fired(self) -> Atoms:
        """The faults that took effect."""
        return frozenset(atom for atom, _ in self.firings)

    @property
    def passed(self) -> bool:
        """Whether something was judged and nothing failed."""
        return self.judged and not self.failures

    def shows(self, failure: Failure | None) -> bool:
        """Whether it failed like this; with None, at all."""
        return bool(self.failures) if failure is None else failure in self.failures


class Ask(NamedTuple):
    """A run to be made: with these faults and, where it is not None, with this input instead of the prompt.

    A `fresh` one is to confirm what another has shown, so nothing of it may be taken from another.
    """

    atoms: Atoms
    text: str | None = None
    fresh: bool = False


Asking: TypeAlias = Generator[Sequence[Ask], Sequence[Outcome], T]
"""What a search is: it yields runs that may be made side by side, and is sent what each of them showed."""

SizeOf = Callable[[Iterable[Atom]], Any]


@lru_cache(maxsize=65536)
def planned_of(atom: Atom) -> Planned:
    """The fault itself.

    Raises:
        Misuse: no such fault is available.
    """
    return parse_fault(atom.line)


def measure(atoms: Iterable[Atom]) -> Any:
    """A key to sort schedules by, the smallest first (`faults/order.py`)."""
    return schedule_size(planned_of(atom) for atom in atoms)


def small(atoms: Iterable[Atom]) -> list[Atom]:
    """The atoms, the smallest first."""
    return sorted(atoms, key=lambda atom: size(planned_of(atom)))
