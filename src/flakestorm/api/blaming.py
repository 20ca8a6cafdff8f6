"""Blame: a failed run again and again, each time with more or less of it as recorded, until one step stands out.

The search decides (`engine/blame.py`); here its continuations are made. Each is a run of the real agent, answered by
the tape up to an event and by the world from there on, and judged by the rule that the recorded run breaks.
"""

from __future__ import annotations

import asyncio
import hashlib
import shlex
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as with_

from flakestorm.api.blame_case import Case
from flakestorm.api.blame_report import report_of
from flakestorm.api.blame_stages import Mending, Watch, at_first, giving_world
from flakestorm.api.carrying import (
    Work,
    hub_of,
    judges_by,
    runner_of,
    seed_of,
)
from flakestorm.api.loops import in_a_loop
from flakestorm.api.options import Options
from flakestorm.boundary.hub import Hub
from flakestorm.config.model import Scenario
from flakestorm.contracts.base import RunView
from flakestorm.contracts.matrix import prepare
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Interceptor, chain
from flakestorm.engine.blame import Finding, Seen, Terms, Wanted, search
from flakestorm.engine.events import Finished, Planned, Report
from flakestorm.engine.hooks import Hooks
from flakestorm.engine.judged import Judged
from flakestorm.engine.pacing import Pacing, paced_by
from flakestorm.engine.plan import Trial
from flakestorm.engine.runner import Runner
from flakestorm.errors import Misuse
from flakestorm.executors.interruption import interruptible
from flakestorm.executors.world import LocalWorld
from flakestorm.tape.player import Player

__all__ = ["HEALTHY", "Continued", "blame", "pinned_of"]

HEALTHY = "healthy reply"
"""The repair that gives the agent what the world had said before a fault changed it."""


@dataclass(slots=True)
class Continued:
    """One continuation.

    Args:
        k: how many events were as recorded.
        judged: the run; why: why it says nothing, if it does not.
        seen: what the search was told.
        repair: which repair was tried in it; empty for those of the search.
    """

    k: int
    judged: Judged
    seen: Seen
    why: str = ""
    repair: str = ""


def blame(
    work: Work, case: Case, options: Options, terms: Terms | None = None, mending: Mending | None = None
) -> Report:
    """Find the step that made a recorded run fail.

    Args:
        work: whose agent it was; its config's rules judge.
        case: the run.
        options: how; `resume` is the report of an interrupted `blame` of the same run.
        terms: how much is asked.
        mending: what to try at a model call that is blamed.

    Raises:
        Misuse: there is nothing to blame anything for, or what is to be resumed is of another run.
    """
    prepare([case.invariant])
    judges_by(work.config, [case.invariant])
    blaming = _Blaming(work, case, options, terms or Terms(), mending or Mending())
    if isinstance(options.resume, Report):
        blaming.remember(options.resume)
    return in_a_loop(blaming.run)


def pinned_of(scenario: str) -> tuple[int, str]:
    """How many events a run of this scenario had as recorded, and which repair was tried in it."""
    words = scenario.split(" ", 3)
    return int(words[1]), words[3] if len(words) > 3 else ""


@dataclass
class _Blaming:
    work: Work
    case: Case
    options: Options
    terms: Terms
    mending: Mending
    made: list[Continued] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    known: dict[int, deque[Continued]] = field(default_factory=dict)
    _players: dict[str, tuple[Player | None, Watch]] = field(default_factory=dict)
    _changes: dict[str, Interceptor] = field(default_factory=dict)
    _number: int = 0
    _pacing: Pacing | None = None

    async def run(self) -> Report:
        seed = seed_of(self.work.config, self.options)
        world = LocalWorld(self.options.tapes)
        began_s, started_at, interrupted = world.monotonic(), world.now(), False
        hub = hub_of(self.work.config, self.case.draws, replaying=True)
        self.options.listener(Planned("blame", self.terms.budget, self._report(None, seed, started_at, 0.0, False)))
        finding: Finding | None = None
        seeking = search(len(self.case.events), self.terms)
        with interruptible() as signals, world.reserved():
            try:
                async with runner_of(
                    self.work, (), [self.case.invariant], self.options, seed, world, hub,
                    Hooks(within=lambda trial, _: self._within(trial, hub), viewed=self._viewed),
                ) as runner:  # fmt: skip
                    runner.reproduce = lambda trial, _, __: self._again(trial)
                    runner.budget, self._pacing = None, runner.pacing
                    await runner.agent.start()
                    finding = await self._search(seeking, runner)
                    await self._repair(finding, runner)
            except asyncio.CancelledError:
                if not signals:
                    raise
                interrupted = True
        took_ms = round((world.monotonic() - began_s) * 1000, 1)
        report = self._report(finding or self._so_far(), seed, started_at, took_ms, interrupted)
        self.options.listener(Finished(report))
        return report

    async def _search(self, seeking: object, runner: Runner) -> Finding:
        wanted: Wanted = next(seeking)  # type: ignore[call-overload]
        while True:
            found = await self._continued(wanted, runner)
            try:
                wanted = seeking.send({k: [each.seen for each in found[k]] for k in wanted})  # type: ignore[attr-defined]
            except StopIteration as end:
                finding: Finding = end.value
                return finding

    async def _continued(
        self, wanted: Wanted, runner: Runner, repair: str = "", change: Interceptor | None = None
    ) -> Mapping[int, Sequence[Continued]]:
        """So many continuations from each of these points; those of an earlier command are taken first."""
        found: dict[int, list[Continued]] = {k: [] for k in wanted}
        trials: list[Trial] = []
        for k, times in wanted.items():
            for _ in range(times):
                earlier = self.known.get(k) if not repair else None
                if earlier:
                    found[k].append(earlier.popleft())
                else:
                    trials.append(self._trial(k, repair))
                    if change is not None:
                        self._changes[trials[-1].run] = change
        done: dict[str, Continued] = {}

        def ended(judged: Judged) -> None:
            done[judged.trial.run] = each = self._seen(judged)
            self.made.append(each)

        await runner.carry_out(trials, ended)
        for trial in trials:
            if trial.run in done:
                found[pinned_of(trial.scenario.name)[0]].append(done[trial.run])
        return found

    def _trial(self, k: int, repair: str) -> Trial:
        self._number += 1
        name = f"first {k} recorded {repair}".rstrip()
        text = self.case.input_at(k)
        rule = with_(self.case.invariant, when="always")
        return Trial(f"b-{self._number:04d}", Scenario(name=name), 0, text, self._number, (rule,))

    def _within(self, trial: Trial, hub: Hub) -> Sequence[Interceptor]:
        """What answers this run: the tape, and from the event on the world, which is watched."""
        k, _ = pinned_of(trial.scenario.name)
        exchanges = self.case.exchanges
        calls = max(0, k - self.case.offset)
        watch = Watch({(exchange.kind, exchange.name) for exchange in exchanges if exchange.reply.status})
        drawing = hub.drawing(trial.run)
        if not calls and exchanges and calls < len(exchanges):
            if drawing is not None:
                drawing.go_live()
            watch.drawing = drawing
            change = self._changes.get(trial.run)
            self._players[trial.run] = None, watch
            here = watch.stage if change is None else chain(change, watch.stage)
            return [at_first(here, exchanges[0].site, watch.stage)]
        site = exchanges[calls].site if calls < len(exchanges) else None
        change = self._changes.get(trial.run)
        here = watch.stage if change is None else chain(change, watch.stage)
        player = self.case.fork.player(site, here, then=watch.stage)
        if drawing is not None:
            player.recall, player.leave = drawing.recall, drawing.go_live
        self._players[trial.run] = player, watch
        return [player.stage]

    def _viewed(self, trial: Trial, view: RunView) -> RunView:
        """The run as its rule is to see it: what is pinned has happened, with the faults that fired there, though this
        time the world was not asked."""
        player, _ = self._players.get(trial.run, (None, None))
        as_recorded = {exchange.n: exchange for exchange in self.case.exchanges}
        played = [] if player is None else player.played
        pinned = {each.site: as_recorded[each.match.entry.n] for each in played if each.match.entry is not None}
        exchanges = [
            replace(each, sent=pinned[each.site].sent, faults=pinned[each.site].faults) if each.site in pinned else each
            for each in view.exchanges
        ]
        fired = [firing for each in exchanges for firing in each.faults] or list(self.case.fired)
        ledger = Ledger(fired=fired, canaries=list(self.case.canaries))
        transient = frozenset(firing.fault for firing in fired)
        return replace(view, chaos=bool(fired), ledger=ledger, exchanges=exchanges, transient=transient)

    def _seen(self, judged: Judged) -> Continued:
        k, repair = pinned_of(judged.trial.scenario.name)
        player, watch = self._players.pop(judged.trial.run, (None, None))
        self._changes.pop(judged.trial.run, None)
        why = self._void(k, judged, player, watch)
        failed = None if why else any(verdict.outcome == "fail" for _, verdict in judged.verdicts)
        run = judged.run
        said = hashlib.sha256(repr((run.output, run.error, sorted(run.calls.items()))).encode()).hexdigest()
        return Continued(k, judged, Seen(failed, said), why, repair)

    def _void(self, k: int, judged: Judged, player: Player | None, watch: Watch | None) -> str:
        """Why this run says nothing about its event; empty if it does."""
        if player is None and k > self.case.offset:
            return "no call of it crossed the boundary, so nothing could be as recorded"
        if player is not None:
            for played in player.played:
                if played.match.outcome in ("diverged", "extra"):
                    return f"it did not do again what was recorded: {played}"
            if k < len(self.case.events) and player.forked is None:
                return "it ended before it came to the event"
            if missing := player.missing():
                return f"it did not do again what was recorded: {missing[0]}"
        if watch is not None and watch.trouble:
            return watch.trouble
        if not judged.verdicts:  # what the rule is about did not come up, and so it was not broken
            return ""
        verdict = judged.verdicts[0][1]
        return verdict.reason if verdict.outcome == "inconclusive" else ""

    async def _repair(self, finding: Finding, runner: Runner) -> None:
        """What the world had said, where a fault changed it, in the place of what the agent was told; and what is to be
        tried where the model decided."""
        for cause in finding.causes:
            at = cause.k - 1 - self.case.offset
            if at < 0:
                continue
            exchange = self.case.exchanges[at]
            changes = {}
            if exchange.world is not None and exchange.world.status:
                changes[HEALTHY] = giving_world(exchange)
            elif exchange.kind == "llm":
                changes = self.mending.changes(exchange)
            for repair, change in changes.items():
                left = self.terms.budget - len(self.made)
                if left >= self.terms.steady:
                    await self._continued({cause.k - 1: min(self.terms.confirm, left)}, runner, repair, change)

    def remember(self, report: Report) -> None:
        """Take over the continuations of an earlier command.

        Raises:
            Misuse: they are of another run, or were judged by another rule.
        """
        before = report.blame
        if before is None or before.digest != self.case.digest or before.invariant != str(self.case.invariant.id):
            raise Misuse(
                "the report to resume is not a blame of this run by this rule; run the command without --resume"
            )
        verdicts = {cell.run: cell for cell in report.cells}
        for run in report.runs:
            k, repair = pinned_of(run.scenario)
            cell = verdicts.get(run.id)
            if repair or cell is None:
                continue
            failed = None if cell.verdict == "inconclusive" else cell.verdict == "fail"
            said = hashlib.sha256(repr((run.output, run.error, sorted(run.calls.items()))).encode()).hexdigest()
            judged = self.case.judged_again(run, cell)
            each = Continued(k, judged, Seen(failed, said), cell.reason if failed is None else "")
            self.known.setdefault(k, deque()).append(each)
            self.made.append(each)
            self._number = max(self._number, int(run.id.rpartition("-")[2]))

    def _so_far(self) -> Finding:
        """What an interrupted search knows: told what was made, it says what that is enough for."""
        left: dict[int, deque[Seen]] = {}
        for each in self.made:
            if not each.repair:
                left.setdefault(each.k, deque()).append(each.seen)
        seeking = search(len(self.case.events), self.terms)
        wanted = next(seeking)
        while True:
            told = {k: [left[k].popleft() for _ in range(times) if left.get(k)] for k, times in wanted.items()}
            try:
                wanted = seeking.send(told)
            except StopIteration as end:
                finding: Finding = end.value
                return finding

    def _again(self, trial: Trial) -> str:
        """The command line that makes one more run like this."""
        k, repair = pinned_of(trial.scenario.name)
        at = k - self.case.offset
        if repair or not 0 <= at < len(self.case.exchanges):
            return ""
        words = ["flakestorm", "fork", str(self.case.tape), "--at", str(self.case.exchanges[at].site), "--resample"]
        return shlex.join(words)

    def _report(self, finding: Finding | None, seed: int, started_at: str, took_ms: float, interrupted: bool) -> Report:
        return report_of(
            self.work, self.case, finding, self.made, self.terms,
            seed=seed, started_at=started_at, took_ms=took_ms, interrupted=interrupted, notes=self._noted(),
            paced=paced_by(self._pacing),
        )  # fmt: skip

    def _noted(self) -> Iterable[str]:
        yield from self.case.notes
        yield from paced_by(self._pacing).lines
        whys: dict[str, int] = {}
        for each in self.made:
            if each.why:
                whys[each.why] = whys.get(each.why, 0) + 1
        for why, count in sorted(whys.items(), key=lambda item: -item[1])[:3]:
            yield f"{count} of {len(self.made)} continuations could not be judged: {why}"
