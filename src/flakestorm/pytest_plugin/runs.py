"""What a test sees of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from flakestorm.core.ledger import Firing

if TYPE_CHECKING:
    from flakestorm.api.keeping import Asked
    from flakestorm.contracts.base import RunView
    from flakestorm.contracts.calls import ToolCall
    from flakestorm.tape.model import Exchange

__all__ = ["Run", "RunTape", "inconclusive", "refuse"]


def inconclusive(reason: str) -> NoReturn:
    """End the test, which can be neither passed nor failed."""
    raise pytest.fail.Exception(f"inconclusive: {reason}", pytrace=False) from None


def refuse(error: Exception) -> NoReturn:
    """End the test with an error that says itself what to do."""
    raise pytest.fail.Exception(str(error), pytrace=False) from None


@dataclass(frozen=True, slots=True)
class RunTape:
    """A run's calls.

    Args:
        path: the tape's file.
    """

    path: Path
    _view: RunView = field(repr=False)

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """Everything that crossed the boundary, in order of arrival."""
        return self._view.exchanges

    def calls(self, tool: str = "*") -> list[ToolCall]:
        """The calls of the tools that this name or glob means, faulted ones included, in order.

        Where the agent's calls are not known to have crossed the boundary, the test is inconclusive: then no call on
        the tape does not mean that none was made.
        """
        if not self._view.held:
            inconclusive(
                "no call of this agent crossed the boundary, so its tape proves nothing; give agent.start, or start "
                "the agent with the variables that `flakestorm gateway` prints"
            )
        return self._view.calls(tool)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the agent.

    Args:
        input: what it was given.
        output: its answer; empty where `error` is set.
        error: why there is no answer, or None.
        latency_ms: from input to answer, skipped delays included.
        tape: its calls.
        planned: each fault that was planned, in one line.
        fired: what took effect, at which sites.
        masked: what another fault kept from taking effect.
        chance: whether every planned fault was left to chance.
        seed: every random choice followed from it.
        reproduce: the command line that does this run again.
        seen: the tools that were seen.
    """

    input: str
    output: str
    error: str | None
    latency_ms: float
    tape: RunTape
    planned: tuple[str, ...]
    fired: tuple[Firing, ...]
    masked: tuple[Firing, ...]
    chance: bool
    seed: int
    reproduce: str
    seen: tuple[str, ...] = ()

    def __repr__(self) -> str:
        said = f"error={self.error!r}" if self.error else f"output={self.output!r}"
        return f"<run {said}, fired={[f'{f.site}={f.mode}' for f in self.fired]}>"

    @classmethod
    def of(cls, asked: Asked, seed: int, planned: tuple[str, ...], *, chance: bool) -> Run:
        """What the engine says, as a test sees it."""
        run = asked.run
        return cls(
            input=run.input,
            output=run.output,
            error=run.error,
            latency_ms=run.latency_ms,
            tape=RunTape(Path(run.tape), asked.view),
            planned=planned,
            fired=run.fired,
            masked=run.masked,
            chance=chance,
            seed=seed,
            reproduce=run.reproduce,
            seen=run.seen,
        )
