"""What became of every planned fault: each one is accounted for, in every run.

A fault *fired*; or it was *masked*, because another one at its call, or one that changed the run before its call was
made, kept it from acting; or it is *impossible*, because no run makes the call it is for, with or without chaos; or it
was *idle*: its call was there, and chance, or finding nothing to change, left it alone.

A run knows what fired in it, and what was masked at one call. The rest shows only when all runs are in: that a call
would have been made can be known from the run of the same prompt without chaos alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import field
from msgspec.structs import replace

from flakestorm.core.call import Call
from flakestorm.core.ledger import Firing
from flakestorm.core.record import Slate
from flakestorm.core.site import Sites
from flakestorm.engine.events import FaultTally
from flakestorm.engine.judged import Judged
from flakestorm.faults.planned import Planned
from flakestorm.faults.schedule import Schedule

__all__ = ["DECLINED", "NOT_MADE", "TOO_FEW", "Account", "account", "reach", "undecided"]


NOT_MADE = "the call it waits for was not made"
"""How the detail ends of what was masked by a fault that fired elsewhere."""


DECLINED = "its triggers did not agree, or it found nothing to change"
TOO_FEW = " of its calls made, too few for it"
"""What is said of an idle fault that has not said itself why it did nothing."""


def reach(schedule: Schedule, calls: Sequence[Call], results: Sequence[str]) -> Counter[int]:
    """How many calls or results each fault would have been for, in a run with these.

    Results count for faults that are for results only, and else where their tool's calls were not seen.

    Args:
        schedule: its faults, by index.
        calls: that crossed, in order of arrival.
        results: the tools of the results that models were told of, one by one.
    """
    if not calls and not results:
        return Counter(planned.index for planned in schedule.planned if planned.on_input)
    from flakestorm.faults.staging import matcher, result_matcher  # and with it all that understands calls

    crossed = {call.name for call in calls if call.kind in ("tool", "mcp")}
    met = Sites()
    sites = [met.next("tool", name) for name in results]
    found: Counter[int] = Counter()
    for planned in schedule.planned:
        found[planned.index] = 1 if planned.on_input else sum(map(matcher(planned), calls))
        matches = result_matcher(planned)
        if matches is not None:
            found[planned.index] += sum(
                matches(site) and (planned.on_results or site.name not in crossed) for site in sites
            )
    return +found


class Account(Slate):
    """One scenario's faults over its runs.

    Args:
        runs: the scenario's, with what was masked, impossible and idle filled in.
        impossible: the faults whose call no run makes, as far as is known.
        unfound: those of them for which no run makes any call at all.
        tallies: one for each fault, in order.
    """

    runs: list[Judged] = field(default_factory=list)
    impossible: tuple[Planned, ...] = ()
    unfound: tuple[Planned, ...] = ()
    tallies: tuple[FaultTally, ...] = ()


def account(schedule: Schedule, runs: Sequence[Judged], calm: Iterable[Judged]) -> Account:
    """Account for a scenario.

    Args:
        schedule: the scenario's.
        runs: the scenario's.
        calm: runs without chaos, of any prompt.
    """
    if not schedule.planned or not runs:
        return Account(runs=list(runs))
    would: dict[int, Counter[int]] = {}
    for judged in calm:
        known = would.setdefault(judged.trial.prompt, Counter())
        known |= reach(schedule, judged.calls, judged.results)
    everything = [judged.view.ledger.matched for judged in runs] + list(would.values())
    lost = {p.index for p in schedule.planned if not _reached(p, everything)}
    told = [_told(judged, schedule, would.get(judged.trial.prompt, Counter()), lost) for judged in runs]
    return Account(
        told,
        tuple(p for p in schedule.planned if p.index in lost),
        tuple(p for p in schedule.planned if p.index in lost and not any(count[p.index] for count in everything)),
        tuple(_tally(p, told) for p in schedule.planned),
    )


def undecided(schedule: Schedule, runs: Sequence[Judged]) -> bool:
    """Whether only a run without chaos can tell what kept a fault of this scenario from acting: itself, or others."""
    reached = [judged.view.ledger.matched for judged in runs]
    return any(judged.view.ledger.fired for judged in runs) and not all(_reached(p, reached) for p in schedule.planned)


def _reached(planned: Planned, counts: Iterable[Counter[int]]) -> bool:
    first = planned.first
    return first is not None and any(count[planned.index] >= first for count in counts)


def _told(judged: Judged, schedule: Schedule, would: Counter[int], lost: set[int]) -> Judged:
    """The run with every fault that did not fire in its place."""
    ledger = judged.view.ledger
    settled = {firing.fault for firing in (*ledger.fired, *ledger.masked)}
    by = ", ".join(dict.fromkeys(f"{firing.mode} at {firing.site}" for firing in judged.run.fired))
    said = {firing.fault: firing.detail for firing in ledger.idle}
    masked, impossible, idle = list(judged.run.masked), list[Firing](), list[Firing]()
    for planned in schedule.planned:
        first = planned.first
        if planned.index in settled:
            continue
        if planned.index in lost:
            impossible.append(_firing(planned, f"no run makes this call; tools seen: {_names(judged.run.seen)}"))
        elif by and first is not None and ledger.matched[planned.index] < first <= would[planned.index]:
            masked.append(_firing(planned, f"masked by {by}: {NOT_MADE}"))
        elif known := [firing for firing in ledger.idle if firing.fault == planned.index]:
            idle += known
        else:
            idle.append(_firing(planned, said.get(planned.index) or _why_idle(planned, ledger.matched[planned.index])))
    run = replace(judged.run, masked=tuple(masked), impossible=tuple(impossible), idle=tuple(idle))
    return replace(judged, run=run)


def _why_idle(planned: Planned, seen: int) -> str:
    if planned.first is not None and seen >= planned.first:
        return DECLINED
    return f"{seen or 'none'}{TOO_FEW}"


def _firing(planned: Planned, detail: str) -> Firing:
    return Firing(planned.expected, planned.mode, planned.family, detail, planned.index)


def _names(seen: Sequence[str]) -> str:
    return ", ".join(seen) or "none"


def _tally(planned: Planned, runs: Sequence[Judged]) -> FaultTally:
    def count(firings: str) -> int:
        return sum(any(f.fault == planned.index for f in getattr(judged.run, firings)) for judged in runs)

    fired = count("fired")
    masked = sum(
        any(f.fault == planned.index for f in judged.run.masked)
        and not any(f.fault == planned.index for f in judged.run.fired)
        for judged in runs
    )
    return FaultTally(planned.line, len(runs), fired, masked, count("impossible"), count("idle"))
