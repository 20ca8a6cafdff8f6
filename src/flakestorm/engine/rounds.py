"""Trials in rounds: a cell whose verdict is decided gets no more of them.

All invariants of a scenario and prompt are judged on the same runs, so these go on until every one of them is decided.
A round is chosen by what had finished before it and by the concurrency alone, never by which run happened to be quick.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flakestorm.core.record import Record
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import Trial
from flakestorm.stats.early import RISK, decided

__all__ = ["FROM_TRIALS", "Group", "groups_of", "next_round"]

FROM_TRIALS = 10
"""From so many trials on, decided cells are left early unless somebody says otherwise. With fewer there is little to
save, and the rate that is reported would lose more than the runs are worth."""


class Group(Record, frozen=True):
    """One scenario and prompt: the runs its cells share.

    Args:
        trials: all that are planned.
        done: those that were made, with their verdicts.
    """

    trials: tuple[Trial, ...]
    done: tuple[Judged, ...]

    @property
    def left(self) -> list[Trial]:
        made = {judged.trial.run for judged in self.done}
        return [trial for trial in self.trials if trial.run not in made]

    def settled(self, risk: float = RISK) -> bool:
        """Whether more trials would change no verdict; `risk` as in `stats.early.decided`.

        An inconclusive trial says nothing and leaves fewer that can. A cell without any conclusive one is open.
        """
        if not self.left:
            return True
        counts: dict[str, list[int]] = {}
        rates: dict[str, float] = {}
        for judged in self.done:
            for invariant, verdict in judged.verdicts:
                rates[str(invariant.id)] = 1.0 if invariant.min_pass_rate is None else invariant.min_pass_rate
                count = counts.setdefault(str(invariant.id), [0, 0])
                if verdict.conclusive:
                    count[verdict.outcome == "fail"] += 1
        left = len(self.left)
        return bool(counts) and all(
            passed + failed > 0
            and decided(passed, failed, trials=passed + failed + left, rate=rates[name], risk=risk) is not None
            for name, (passed, failed) in counts.items()
        )


def groups_of(trials: Sequence[Trial], done: Iterable[Judged]) -> list[Group]:
    """The trials by scenario and prompt, in plan order."""
    by_run = {judged.trial.run: judged for judged in done}
    groups: dict[tuple[str, int], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.scenario.name, trial.prompt), []).append(trial)
    return [Group(tuple(ts), tuple(by_run[t.run] for t in ts if t.run in by_run)) for ts in groups.values()]


def next_round(groups: Sequence[Group], concurrency: int) -> list[Trial]:
    """The trials to make next: of every open group alike, and enough of them to keep `concurrency` runs under way."""
    open_ = [group for group in groups if not group.settled()]
    each = -(-concurrency // len(open_)) if open_ else 0
    return [trial for group in open_ for trial in group.left[:each]]
