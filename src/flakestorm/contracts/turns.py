"""The turns of a conversation, as an invariant with `turn` sees them.

A turn is judged as a run of its own: its answer, its latency and the calls made during it, after all that was said
before. A fault that fired later did not bear on it, so it does not count for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView
from flakestorm.core.verdict import Verdict

__all__ = ["each_turn", "faced"]

Judge = Callable[[Invariant, RunView], Verdict | None]

_WORST = ("fail", "inconclusive", "pass")


def each_turn(spec: Invariant, run: RunView, judge: Judge) -> Verdict | None:
    """What an invariant with `turn` says of this run: the worst of what it says of the turns it is about.

    Args:
        spec: the invariant.
        run: the whole conversation, or a run of one turn.
        judge: judges one turn, seen as a run.
    """
    views = _views(spec, run)
    found = [(at, verdict, view) for at, view in views if (verdict := judge(spec, view)) is not None]
    said = [
        (at, verdict) for at, verdict, view in found if not (_early(view, run) and verdict.outcome == "inconclusive")
    ]
    said = said or [(at, verdict) for at, verdict, _ in found]
    if not said:
        return None
    at, worst = min(said, key=lambda each: _WORST.index(each[1].outcome))
    if not run.turns:
        return worst
    place = "every turn" if len(said) > 1 and worst.outcome == "pass" else f"turn {at + 1} of {len(run.turns)}"
    return replace(worst, reason=f"{place}: {worst.reason}")


def faced(spec: Invariant, run: RunView) -> RunView | None:
    """The run as an invariant sees it that looks at one answer; None if there is no such turn."""
    if spec.turn is None:
        return run
    views = _views(spec, run)
    return views[-1][1] if views else None


def _views(spec: Invariant, run: RunView) -> list[tuple[int, RunView]]:
    """The turns that an invariant is about, by index; a turn keeps its number where a mutation put others before it."""
    if not run.turns:
        return [(0, run)] if spec.turn in (1, "last", "every") else []
    last = len(run.turns) - 1
    chosen = {"last": [last], "every": [*range(last + 1)]}.get(
        str(spec.turn), [at for at, turn in enumerate(run.turns) if turn.number == spec.turn]
    )
    return [(at, _as_run(run, at)) for at in chosen]


def _early(view: RunView, run: RunView) -> bool:
    """Whether this turn was over before any of the run's faults fired; of several turns, a later one can tell more."""
    return bool(run.ledger.fired) and not view.ledger.fired


def _as_run(run: RunView, at: int) -> RunView:
    turn, begins = run.turns[at], sum(earlier.calls for earlier in run.turns[:at])
    told = run.exchanges if run.held else ()  # else they are of no run, and of no turn
    ends = len(told) if at == len(run.turns) - 1 else begins + turn.calls
    later = {exchange.site for exchange in told[ends:]}
    fired = [firing for firing in run.ledger.fired if firing.site not in later and firing.via not in later]
    return replace(
        run,
        input="\n".join(earlier.input for earlier in run.turns[: at + 1]),
        output=turn.output,
        error=None if turn.error is None else run.error,
        latency_ms=turn.latency_ms,
        ledger=replace(run.ledger, fired=fired),
        exchanges=told[begins:ends] if run.held else run.exchanges,
        baseline=run.baseline if at == len(run.turns) - 1 else None,
        turns=run.turns[: at + 1],
        before=told[:begins],
    )
