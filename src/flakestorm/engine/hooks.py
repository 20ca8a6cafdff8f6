"""Where a run can be entered: by what replays it, searches with it, or judges it by more than its ledger tells."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import field

from flakestorm.contracts.base import RunView
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Interceptor
from flakestorm.core.record import Record, Slate
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import Trial
from flakestorm.tape.model import Exchange

if TYPE_CHECKING:
    from flakestorm.engine.loaded import Pace

__all__ = ["Hooks", "Inside", "Within"]


class Inside(Record, frozen=True):
    """What the stages within a run may know of it.

    Args:
        ledger: is being written.
        heard: the stage that notes what the world said, for a fault among them: it is to stand right inside that.
        noted: gives what has been recorded so far.
    """

    ledger: Ledger
    heard: Interceptor
    noted: Callable[[], Sequence[Exchange]]


Within = Callable[[Trial, Inside], Sequence[Interceptor]]
"""Gives the stages of a trial that stand between its faults and the world."""


class Hooks(Slate):
    """What may take part in every run of a `Runner`; by default nothing does.

    Args:
        within: gives the stages of a trial that stand between its faults and the world, outermost first: what answers
            in the world's place, or changes what it is asked.
        holds: says of the trial that is to be started next how many seconds it is still to wait.
        begins: is awaited right before the agent is asked; nothing is when None.
        doubts: says of a trial that has ended why what it shows proves nothing, e.g. because what stood in for the
            world could not answer; None where it proves something.
        viewed: gives a run as its invariants are to see it, where `within` knows more of it than its ledger.
        reviewed: gives a judged run with the verdicts that it can bear.
        facts: more for the first line of every tape.
        paces: under load, how the runs of each scenario went by the clock, by its name, as far as they have ended.
        sites: whether finished runs say where faults could act in them.
    """

    within: Within = lambda _, __: ()
    holds: Callable[[Trial], float] = lambda _: 0.0
    begins: Callable[[Trial], Awaitable[object]] | None = None
    doubts: Callable[[Trial], str | None] = lambda _: None
    viewed: Callable[[Trial, RunView], RunView] = lambda _, view: view
    reviewed: Callable[[Judged], Judged] = lambda judged: judged
    facts: Mapping[str, object] = field(default_factory=dict)
    paces: Mapping[str, Pace] = field(default_factory=dict)
    sites: bool = False
