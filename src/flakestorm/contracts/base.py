"""What an invariant sees, and how one is written.

An invariant's check is a function from its settings and a finished run to a `Verdict`. Whether it applies (`when`),
its negation, crashes and runs without output are handled once, in `contracts/matrix.py`, so a check only answers its
own question::

    @invariants.add("contains")
    def contains(spec: Invariant, run: RunView) -> Verdict: ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from flakestorm.config.model import Invariant
from flakestorm.core.answer import AgentError
from flakestorm.core.ledger import Ledger
from flakestorm.core.registry import Registry
from flakestorm.core.verdict import Verdict
from flakestorm.tape.model import Exchange

__all__ = ["Check", "RunView", "demands", "invariants"]


@dataclass(frozen=True, slots=True)
class RunView:
    """One finished run, as invariants see it.

    Args:
        input: the text the agent was given.
        output: its answer; empty when `error` is set.
        error: why there is no answer, or None.
        latency_ms: from input to answer.
        scenario: the scenario's name; `chaos` says whether that scenario plans any fault at all.
        ledger: which faults were planned, fired, masked, and the canaries planted.
        exchanges: the run's tape, in order of arrival.
        baseline: the output of the same prompt without chaos, where there was such a run; else None.
    """

    input: str
    output: str = ""
    error: AgentError | None = None
    latency_ms: float = 0.0
    scenario: str = ""
    chaos: bool = False
    ledger: Ledger = field(default_factory=Ledger)
    exchanges: Sequence[Exchange] = ()
    baseline: str | None = None


Check = Callable[[Invariant, RunView], Verdict]

invariants: Registry[Check] = Registry("invariant type", "flakestorm.invariants")

demands: dict[str, Literal["requires", "forbids", "run"]] = {}
"""What each type asks of an output: `requires` something in it (no output: fail with the agent's error), `forbids`
something (no output: inconclusive), or judges the `run` and not the output (asked in any case). Negating a type swaps
`requires` and `forbids`. A type that is not listed counts as `requires`."""
