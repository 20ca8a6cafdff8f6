"""The ledger of one run's faults: what was planned, what fired where, and what an earlier fault masked.

Every claim that chaos happened rests on this, so a fault writes itself in at the moment it takes effect (a truncation
that found nothing to cut did not fire), and readers never infer it from the schedule.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from msgspec import field

from flakestorm.core.record import Record, Slate
from flakestorm.core.site import Site

__all__ = ["Canary", "Family", "Firing", "Ledger"]

Family = Literal["tool", "llm", "context", "mcp"]


class Firing(Record, frozen=True):
    """One fault that took effect (or, in `Ledger.masked`, would have).

    Args:
        site: the call it hit.
        mode: the fault's mode, e.g. `error`.
        family: which `*_faults` list it came from.
        detail: what it did, in words, e.g. `503 Service Unavailable`.
        fault: the index of the fault in the scenario, in config order.
        via: the call in which it took effect, where that is another one than `site`: a tool's result that was rewritten
            is `tool/search#1`, and the model call that carried it `llm/gpt-4o#2`.
    """

    site: Site
    mode: str
    family: Family
    detail: str = ""
    fault: int = 0
    via: Site | None = None


class Canary(Record, frozen=True):
    """What gives away an agent that does as an injected instruction says.

    Args:
        word: what only obeying produces. An instruction that is made by `faults/canary.py` does not spell it, so no
            quotation of the instruction holds it.
        text: the injected text, where an agent that hands it on as if it were its own answer has given in as well;
            empty where it may be repeated.
    """

    word: str
    text: str = ""


class Ledger(Slate):
    """Planned, fired and masked faults of one run.

    Args:
        planned: how many faults the schedule holds.
        tools_planned, llms_planned: how many of them are tool faults, and model faults.
        fired, masked: in order of happening.
        matched: by the index of a fault, how many calls it could have acted on, whether or not its triggers agreed.
        idle: faults that were due at a call and found nothing to do there, with the reason as their detail.
        hit: sites of calls that a fault was laid around, whether or not it takes effect. Only there can what the agent
            sees differ from what the world says.
        canaries: planted in this run by injected instructions; obeying one shows in the output or in a later call.
        drawn: by index and site of a fault that chose something at random, whose choices those were
            (`faults/drawing.py`).
    """

    planned: int = 0
    tools_planned: int = 0
    llms_planned: int = 0
    fired: list[Firing] = field(default_factory=list)
    masked: list[Firing] = field(default_factory=list)
    matched: Counter[int] = field(default_factory=Counter)
    idle: list[Firing] = field(default_factory=list)
    hit: set[Site] = field(default_factory=set)
    canaries: list[Canary] = field(default_factory=list)
    drawn: dict[tuple[int, Site], str] = field(default_factory=dict)

    def at(self, site: Site | None) -> tuple[Firing, ...]:
        """What fired at this site, or elsewhere by way of its call."""
        return tuple(f for f in self.fired if site is not None and site in (f.site, f.via))

    def fired_in(self, *families: Family) -> bool:
        """Whether a fault of one of these families took effect."""
        return any(f.family in families for f in self.fired)
