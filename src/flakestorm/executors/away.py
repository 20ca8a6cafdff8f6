"""Runs that are made elsewhere: what must be told there, what comes back, and the runner that stays here.

The campaign, its budget and its reports stay in one process. Only `Runner.one` happens elsewhere, and what a run does
depends on nothing but its trial, the seed and what is said in an `Errand`: every random choice is keyed by scenario,
prompt and trial. So it does not matter where a run is made, nor whether it had to be begun again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from flakestorm.contracts.base import RunView
from flakestorm.core.answer import AgentError
from flakestorm.core.call import Call
from flakestorm.core.site import Site
from flakestorm.core.verdict import Verdict
from flakestorm.engine.events import RunResult
from flakestorm.engine.judged import Judged, judged
from flakestorm.engine.plan import Trial
from flakestorm.engine.runner import Runner, no_room
from flakestorm.errors import WorldFailed

__all__ = ["AwayRunner", "Carrier", "Errand", "Lost", "Outcome", "outcome_of"]


class Lost(WorldFailed):
    """A run could not be made, because whoever was to make it was lost each time."""


@dataclass(frozen=True, slots=True)
class Errand:
    """A run to be made elsewhere.

    Args:
        trial: the run.
        baseline: what the agent said to its prompt without chaos, where that is known.
        crossed: whether any call has crossed yet (`Runner.crossed`).
    """

    trial: Trial
    baseline: str | None = None
    crossed: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that was made elsewhere, without what is known here: as `Judged`, whose trial it leaves out.

    Args:
        run, view, calls, results, sites: as `Judged` has them.
        verdicts: by the invariant's id, in order.
        tape: the bytes of the tape; None where there is none.
        crossed: whether any call has crossed there.
    """

    run: RunResult
    view: RunView
    verdicts: tuple[tuple[str, Verdict], ...]
    calls: tuple[Call, ...]
    results: tuple[str, ...]
    sites: tuple[Site, ...]
    tape: bytes | None
    crossed: bool

    def judged(self, trial: Trial, tape: str) -> Judged:
        """The finished run of this trial, whose tape lies here."""
        by_id = {str(invariant.id): invariant for invariant in trial.invariants}
        verdicts = tuple((by_id[id_], verdict) for id_, verdict in self.verdicts)
        return Judged(trial, replace(self.run, tape=tape), self.view, verdicts, self.calls, self.results, self.sites)


def outcome_of(found: Judged, *, crossed: bool) -> Outcome:
    """What is sent of a finished run; its tape is read, and removed."""
    tape = Path(found.run.tape) if found.run.tape else None
    data = None if tape is None else tape.read_bytes()
    if tape is not None:
        tape.unlink()
    verdicts = tuple((str(invariant.id), verdict) for invariant, verdict in found.verdicts)
    return Outcome(found.run, found.view, verdicts, found.calls, found.results, found.sites, data, crossed)


class Carrier(Protocol):
    """Somebody who has runs made elsewhere."""

    async def carry(self, errand: Errand) -> Outcome:
        """Have this run made. Of several attempts exactly one counts: whatever a lost one may still do, nobody hears.

        Raises:
            Lost: it could not be made.
        """
        ...


class AwayRunner(Runner, eq=False, kw_only=True):
    """A runner whose runs are made elsewhere; their tapes are written here.

    Args:
        carrier: has them made.
    """

    carrier: Carrier

    async def one(self, trial: Trial, make_room: Callable[[], Awaitable[None]] = no_room) -> Judged:
        """Have this run made and judged; one that cannot be made is inconclusive."""
        errand = Errand(trial, self.baselines.get(trial.prompt), self.crossed)
        try:
            outcome = await self.carrier.carry(errand)
        except Lost as lost:
            return self._unmade(trial, str(lost))
        self.crossed = self.crossed or outcome.crossed
        if self.pacing is not None:  # which hears of it only now
            self.pacing.sent(trial.run, outcome.run.calls.get("llm", 0))
            for refusal in outcome.run.refusals:
                self.pacing.refused(trial.run, refusal)
        if outcome.tape is None:
            return outcome.judged(trial, "")
        path = self.world.tape_path(trial.run)
        path.write_bytes(outcome.tape)
        return outcome.judged(trial, str(path))

    def _applicable(self, trial: Trial) -> bool:
        """The agent that says so is elsewhere."""
        return True

    def _unmade(self, trial: Trial, why: str) -> Judged:
        error = AgentError("unreachable", why)
        scenario, text = trial.scenario, str(trial.text)
        at = trial.run, scenario.name, trial.prompt, trial.number
        run = RunResult(*at, text, "", str(error), 0.0, 0, (), (), {}, "", "")
        return judged(trial, run, RunView(text, error=error, scenario=scenario.name, chaos=scenario.chaos), self.world)
