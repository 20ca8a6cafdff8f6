"""A schedule: which faults fire at which calls of a run.

It is a value: made from a scenario or from `--inject`, printed in reports, and staged afresh for each run, so nothing
one run counted or drew can reach another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from flakestorm.config.model import Chaos, ContextAttack, LlmFault, ToolFault
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.record import Record
from flakestorm.errors import Misuse
from flakestorm.faults.planned import Planned, parse_fault, parse_injection

if TYPE_CHECKING:
    from flakestorm.faults.staging import Stage
    from flakestorm.wire.conversation import Noted

__all__ = ["Planned", "Schedule", "parse_fault", "parse_injection"]


class Schedule(Record, frozen=True):
    """Planned faults in config order: of several that hit one call, the first is outermost."""

    planned: tuple[Planned, ...] = ()

    @classmethod
    def of(cls, chaos: Chaos) -> Schedule:
        """The schedule of a scenario, a profile or a `chaos` block. Attacks that are not `enabled` are left out.

        Raises:
            Misuse: a fault (`about`) is of a mode that is not in this version, or asks for what is not.
        """
        schedule = cls.written(chaos)
        for planned in schedule.planned:
            try:
                planned.check()
            except Misuse as error:
                error.about = planned.spec
                raise
        return schedule

    @classmethod
    def written(cls, chaos: Chaos) -> Schedule:
        """As `of`, without asking whether this version can play it: for listing what a file says."""
        attacks = [attack for attack in chaos.context_attacks if attack.enabled]
        specs: list[ToolFault | LlmFault | ContextAttack] = [*chaos.tool_faults, *chaos.llm_faults, *attacks]
        return cls(tuple(Planned.of(spec, index) for index, spec in enumerate(specs)))

    @classmethod
    def injecting(cls, injections: Iterable[str]) -> Schedule:
        """Exactly these faults, each written `SITE=FAULT`.

        Raises:
            Misuse: one of them cannot be read or played.
        """
        return cls(tuple(parse_injection(text, index=index) for index, text in enumerate(injections)))

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Read what `line` gives.

        Raises:
            Misuse: it is not of this form, or names what is not available.
        """
        lines = [line for line in text.split("; ") if line]
        return cls(tuple(parse_fault(line, index=index) for index, line in enumerate(lines)))

    @property
    def lines(self) -> tuple[str, ...]:
        """Each fault in one line that loses nothing, in order."""
        return tuple(planned.line for planned in self.planned)

    @property
    def line(self) -> str:
        """All of it in one line, losing nothing: `tool/search=error:503; llm/*=timeout,calls=2`."""
        return "; ".join(self.lines)

    def describe(self) -> tuple[str, ...]:
        """Each fault in one line for reading, in order."""
        return tuple(planned.describe() for planned in self.planned)

    def stage(self, choices: Choices, ledger: Ledger, *, noted: Callable[[], Sequence[Noted]] = tuple) -> Stage:
        """The interceptor for one run. It stands inside classify, which gives every call its site, and says what the
        agent is asked (`Stage.given`).

        Args:
            choices: scoped to the run (scenario, prompt, trial).
            ledger: the run's; what is planned is written into it now, what fires as it happens.
            noted: gives what the run's recorder has noted so far. Where a provider keeps the conversation, only earlier
                replies say which tool a result is of.

        Raises:
            Misuse: a fault's glob or site is malformed.
        """
        self.enter(ledger)
        from flakestorm.faults.staging import Stage  # and with it all that understands calls

        return Stage(self.planned, choices, ledger, noted)

    @property
    def on_input(self) -> bool:
        """Whether a fault changes what the agent is asked."""
        return any(planned.on_input for planned in self.planned)

    @property
    def transient(self) -> frozenset[int]:
        """The indexes of the faults that do not last, so that an agent that tries again can get past them."""
        return frozenset(p.index for p in self.planned if p.spec.transient)

    def enter(self, ledger: Ledger) -> None:
        """Write into a run's ledger what is planned."""
        ledger.planned = len(self.planned)
        ledger.tools_planned = sum(planned.family == "tool" for planned in self.planned)
        ledger.llms_planned = sum(planned.family == "llm" for planned in self.planned)
