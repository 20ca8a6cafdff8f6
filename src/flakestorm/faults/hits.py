"""One fault at one call or one result: what is written into the ledger about it, and when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Canary, Firing, Ledger
from flakestorm.core.site import Site
from flakestorm.faults.drawing import Noticed, again, told
from flakestorm.faults.planned import Planned

__all__ = ["Hit"]


@dataclass(slots=True, eq=False)
class Hit:
    """A fault whose triggers agreed at a site.

    Args:
        at: the fault's place in the schedule.
        planned: the fault.
        site: the call or result it is for.
        ledger: the run's.
        entered: whether the call has reached the fault.
        fired: whether it has taken effect.
        settled: whether it is known that it will not.
    """

    at: int
    planned: Planned
    site: Site
    ledger: Ledger
    entered: bool = False
    fired: bool = False
    settled: bool = False
    _masked: Firing | None = field(default=None, init=False)

    def fire(self, detail: str, *, via: Site | None = None, canary: Canary | None = None) -> None:
        """It takes effect now. Only the first time counts; that it was masked before does not any more.

        Args:
            detail: what it does, in words.
            via: the call in which it does so, where that is not `site`.
            canary: what it plants by that.
        """
        if self.fired:
            return
        self.fired = True
        if canary is not None:
            self.ledger.canaries.append(canary)
        if self._masked is not None:
            self.ledger.masked.remove(self._masked)
        self.ledger.fired.append(self._firing(detail, via))

    def draws(self, choices: Choices) -> Choices:
        """What it draws from at its site, which is written down where it does.

        Args:
            choices: scoped to the run.

        Raises:
            Misuse: it is to make choices that there are not.
        """
        spec, index = self.planned.spec, self.planned.index
        if spec.draws is not None:
            return again(spec.draws, self.site)
        drawn, whose = self.ledger.drawn, told(choices, index)
        if not whose:
            return choices.within("fault", index, self.site)

        def made() -> None:
            drawn[index, self.site] = whose

        return Noticed(choices.seed, *choices.scope, "fault", index, self.site, made=made)

    def mask(self, by: str) -> None:
        """Faults of these modes kept it from taking effect."""
        if self._masked is None:
            self._masked = self._firing(f"masked by {by}")
            self.ledger.masked.append(self._masked)

    def idle(self, why: str) -> None:
        """It has nothing to do here, and this is why. Only the first reason is kept, and none if it fires."""
        if not self.fired and not any(known.site == self.site for known in self._idle()):
            self.ledger.idle.append(self._firing(why))

    def also(self, site: Site, detail: str) -> None:
        """It takes effect at this call too."""
        self.ledger.fired.append(replace(self._firing(detail), site=site))

    def _idle(self) -> list[Firing]:
        return [known for known in self.ledger.idle if known.fault == self.planned.index]

    def _firing(self, detail: str, via: Site | None = None) -> Firing:
        return Firing(self.site, self.planned.mode, self.planned.family, detail, self.planned.index, via)
