"""What `blame` found out, as a report has it: the step, how sure it is, and the curve it was read off.

Field names are those of the `blame` key of the machine-readable form.
"""

from __future__ import annotations

from typing import Literal

from flakestorm.core.record import Record

__all__ = ["BUDGET", "BlamedEvent", "BlamedStep", "Blaming", "Conclusion", "Counted", "EventKind", "Jump", "Repair"]

Conclusion = Literal["step", "no_single_step", "systemic", "cannot_tell"]

BUDGET = 450
"""How many continuations are made at most, unless something else is asked for."""

EventKind = Literal["fault", "tool", "model", "input"]


class Jump(Record, frozen=True):
    """How much likelier the failure is with the event as recorded than with it live; with its 95% interval."""

    value: float
    low: float
    high: float


class Counted(Record, frozen=True):
    """So many of so many continuations."""

    failed: int
    judged: int


class Repair(Record, frozen=True):
    """Something else in the place of the blamed event, and how often the run is right then.

    Args:
        how: `resample` (live again), `healthy reply` (what the world had said before a fault changed it),
            `model NAME` (another one answers) or `edited prompt`.
        value, low, high: the rate of runs that do not fail, with its 95% interval; judged: of how many.
    """

    how: str
    value: float
    low: float
    high: float
    judged: int


class BlamedEvent(Record, frozen=True):
    """One event of the recorded run.

    Args:
        k: its number, from 1.
        site: where; kind: what decided there.
        fault: the mode of the fault that the tape says was injected here; empty where it says none.
        looks_like: the mode of the fault that the reply looks like, by itself; empty where it looks like none.
    """

    k: int
    site: str
    kind: EventKind
    fault: str = ""
    looks_like: str = ""


class BlamedStep(Record, frozen=True):
    """A step that is blamed.

    Args:
        event: which.
        jump: the share of the failure that is its.
        before, after: continuations with the event live, and with it as recorded: the control.
        repairs: what helps.
    """

    event: BlamedEvent
    jump: Jump
    before: Counted
    after: Counted
    repairs: tuple[Repair, ...] = ()


class Blaming(Record, frozen=True):
    """What was found out about one recorded run.

    Args:
        conclusion: `step`, `no_single_step`, `systemic` or `cannot_tell`; why: in words.
        invariant: the rule that the run breaks; tape, digest: the run; run: its id, where it is one of a report.
        events: everything that happened in it, in order.
        steps: those that are blamed, the largest jump first.
        curve: (k, value, low, high): the rate of failure with the first k events as recorded; counts: the same as
            (k, failed, judged).
        continuations, unjudged: how many runs were made, and how many of them could not be judged; budget: the most.
        eps: a smaller rise is not looked for.
        steady: whether equal continuations never differed.
        within: the shortest range of events known to hold half of the rise: after the first, up to the second.
    """

    conclusion: Conclusion
    why: str
    invariant: str
    tape: str
    digest: str
    run: str = ""
    events: tuple[BlamedEvent, ...] = ()
    steps: tuple[BlamedStep, ...] = ()
    curve: tuple[tuple[int, float, float, float], ...] = ()
    counts: tuple[tuple[int, int, int], ...] = ()
    continuations: int = 0
    unjudged: int = 0
    budget: int = 0
    eps: float = 0.0
    steady: bool = False
    within: tuple[int, int] | None = None

    @property
    def named(self) -> BlamedStep | None:
        """The step with the largest share, if one is blamed."""
        return self.steps[0] if self.conclusion == "step" and self.steps else None
