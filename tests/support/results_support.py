"""A run around an agent of the test's own: its pipeline as the runner builds it, with what it recorded at hand."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from flakestorm.boundary.session import Crossing
from flakestorm.config.model import Chaos, ContextAttack, LlmFault, ToolFault
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import chain
from flakestorm.core.site import Sites
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.model import Exchange
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify

__all__ = ["Run", "run_of"]


@dataclass(frozen=True)
class Run:
    """One run: its crossing, and what came of it."""

    crossing: Crossing
    ledger: Ledger
    recorder: Recorder

    @property
    def fired(self) -> list[tuple[str, str, str]]:
        """Site, mode and the call by way of which, of everything that fired."""
        return [(str(f.site), f.mode, str(f.via or "")) for f in self.ledger.fired]

    @property
    def exchanges(self) -> list[Exchange]:
        return self.recorder.exchanges


def run_of(
    *faults: ToolFault | LlmFault | ContextAttack, tools: tuple[tuple[str, str], ...] = (), seed: int = 1
) -> Run:
    """A run under these faults.

    Args:
        faults: its schedule.
        tools: (name, URL glob) pairs that name plain-HTTP tools.
        seed: of its draws.
    """
    ledger, ticks = Ledger(), itertools.count()
    recorder = Recorder(None, clock=lambda: float(next(ticks)), ledger=ledger, header={})
    chaos = Chaos(
        tool_faults=[f for f in faults if isinstance(f, ToolFault)],
        llm_faults=[f for f in faults if isinstance(f, LlmFault)],
        context_attacks=[f for f in faults if isinstance(f, ContextAttack)],
    )
    schedule = Schedule.of(chaos)
    pipeline = chain(
        classify(tools=tools, sites=Sites()),
        recorder.outer,
        schedule.stage(Choices(seed, "scenario", 0, 1), ledger, noted=lambda: recorder.exchanges),
        recorder.inner,
    )
    return Run(Crossing("r-0001", pipeline), ledger, recorder)
