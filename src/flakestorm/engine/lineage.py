"""Which outages to try: those that break everything a run was kept alive by.

A run that passed although something was down passed because of other calls: its *support*. To make it fail, an outage
must hit every support that is known; the smallest ones that do are tried next, and each that passes shows a further
support. This is the idea of lineage-driven fault injection (P. Alvaro et al., SIGMOD 2015), with names of tools and
models for what may be down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from flakestorm.core.site import Site
from flakestorm.engine.atoms import Outcome

__all__ = ["Lineage"]

DEEPEST = 3
"""How many names may be down at once."""

_Name = tuple[str, str]


@dataclass(slots=True)
class Lineage:
    """What is known of outages.

    Args:
        names: what may be down, each by its first call.
    """

    names: list[Site]
    _supports: list[frozenset[_Name]] = field(default_factory=list)
    _closed: list[frozenset[_Name]] = field(default_factory=list)
    _tried: set[frozenset[_Name]] = field(default_factory=set)

    def passes(self, down: Iterable[Site], outcome: Outcome) -> None:
        """A run passed with these down; what it was answered is its support."""
        names = frozenset(_names(down))
        broken = {site for _, site in outcome.firings}
        support = frozenset(_names(site for site in outcome.sites if site not in broken))
        self._tried.add(names)
        if support:
            self._supports.append(support)
        if not support or not outcome.firings:  # it needs nothing more, or there was nothing to break
            self._closed.append(names)
        for site in outcome.sites:
            if site[:2] not in {known[:2] for known in self.names}:
                self.names.append(Site(site.kind, site.name, 1))

    def fails(self, down: Iterable[Site]) -> None:
        """A run failed with these down, so with more of them it says nothing new."""
        names = frozenset(_names(down))
        self._tried.add(names)
        self._closed.append(names)

    def next(self) -> Sequence[Site] | None:
        """The smallest outage that is not tried and hits every support; None when there is none."""
        for size in range(2, DEEPEST + 1):
            for down in combinations(self.names, size):
                names = frozenset(_names(down))
                if names in self._tried or any(closed <= names for closed in self._closed):
                    continue
                if all(names & support for support in self._supports):
                    return down
        return None


def _names(sites: Iterable[Site]) -> list[_Name]:
    return [(site.kind, site.name) for site in sites]
