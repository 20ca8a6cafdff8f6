"""A schedule: which faults fire at which calls of a run.

It is a value: made from a scenario or from `--inject`, printed in reports, and staged afresh for each run, so nothing
one run counted or drew can reach another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flakestorm.config.model import Chaos, ContextAttack, LlmFault, ToolFault
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Family, Ledger
from flakestorm.core.pipeline import Interceptor
from flakestorm.faults.planned import Planned, parse_injection
from flakestorm.faults.staging import Stage

__all__ = ["Planned", "Schedule", "parse_injection"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Planned faults in config order: of several that hit one call, the first is outermost."""

    planned: tuple[Planned, ...] = ()

    @classmethod
    def of(cls, chaos: Chaos) -> Schedule:
        """The schedule of a scenario, a profile or a `chaos` block. Attacks that are not `enabled` are left out.

        Raises:
            Misuse: it names a mode that is not available in this version.
        """
        schedule = cls.written(chaos)
        for planned in schedule.planned:
            planned.check()
        return schedule

    @classmethod
    def written(cls, chaos: Chaos) -> Schedule:
        """As `of`, without asking whether this version can play it: for listing what a file says."""
        attacks = [attack for attack in chaos.context_attacks if attack.enabled]
        specs: list[ToolFault | LlmFault | ContextAttack] = [*chaos.tool_faults, *chaos.llm_faults, *attacks]
        return cls(tuple(Planned(index, _family(spec), spec) for index, spec in enumerate(specs)))

    @classmethod
    def injecting(cls, injections: Iterable[str]) -> Schedule:
        """Exactly these faults, each written `SITE=FAULT`.

        Raises:
            Misuse: one of them cannot be read or played.
        """
        return cls(tuple(parse_injection(text, index=index) for index, text in enumerate(injections)))

    def describe(self) -> tuple[str, ...]:
        """Each fault in one line, in order."""
        return tuple(planned.describe() for planned in self.planned)

    def stage(self, choices: Choices, ledger: Ledger) -> Interceptor:
        """The interceptor for one run. It stands inside classify, which gives every call its site.

        Args:
            choices: scoped to the run (scenario, prompt, trial).
            ledger: the run's; what is planned is written into it now, what fires as it happens.

        Raises:
            Misuse: a fault's glob or site is malformed.
        """
        ledger.planned = len(self.planned)
        ledger.tools_planned = sum(planned.family == "tool" for planned in self.planned)
        ledger.llms_planned = sum(planned.family == "llm" for planned in self.planned)
        return Stage(self.planned, choices, ledger)

    def unmatched(self, ledgers: Sequence[Ledger]) -> tuple[Planned, ...]:
        """The tool faults that name their tool, URL or site and found no such call in any of these runs.

        A scenario with one of them has not been put to the test, whatever else happened in it.
        """
        found = {index for ledger in ledgers for index in ledger.matched}
        return tuple(p for p in self.planned if p.family == "tool" and p.particular and p.index not in found)


def _family(spec: ToolFault | LlmFault | ContextAttack) -> Family:
    return "tool" if isinstance(spec, ToolFault) else "llm" if isinstance(spec, LlmFault) else "context"
