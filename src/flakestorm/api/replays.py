"""BASE's tapes played to HEAD: which pairs are ties without a live call.

A run of HEAD whose every request BASE's tape answers, in which the same faults fire and which comes to the same
output, is BASE's run. Where something differs HEAD is run live, but a model reply that it asks for in BASE's very words
is still BASE's: taking a fresh one only where the first made a difference would favour HEAD, which would get a second
try exactly where it did something else. A task that differed once is live from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from flakestorm.api.redaction import known_to
from flakestorm.api.replaying import Loaded, load_tape, of_the_world
from flakestorm.config.model import Config, Invariant
from flakestorm.contracts.base import RunView
from flakestorm.core.call import Call
from flakestorm.core.ledger import Firing
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.engine.compare import Side
from flakestorm.engine.events import Event, RunFinished, RunResult
from flakestorm.engine.hooks import Hooks, Inside
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import Trial
from flakestorm.engine.runner import Runner
from flakestorm.errors import Misuse, TapeError
from flakestorm.executors.world import LocalWorld
from flakestorm.tape.model import Exchange
from flakestorm.tape.player import Player
from flakestorm.tape.reader import Tape

__all__ = ["TIMED", "Replays", "timed"]

TIMED = ("latency", "no_retry_storm")
"""Invariants that judge how long things took, which no replay tells."""


def timed(invariants: Iterable[Invariant]) -> list[str]:
    """The ids of those among them that forbid a replay."""
    return [str(each.id) for each in invariants if each.type in TIMED]


@dataclass(slots=True)
class Replays:
    """HEAD's runs against BASE's tapes.

    Args:
        config: HEAD's.
        folder: where tapes of these runs are written.
        base: BASE's run of a trial: as it was judged here, or as a report has it; None where there is none.
        free: trials, by run, that were told without a live call.
    """

    config: Config
    folder: Path
    base: Callable[[Trial], Judged | Side | None]
    free: set[str] = field(default_factory=set)
    _differed: set[tuple[str, int]] = field(default_factory=set)
    _shared: dict[str, Player] = field(default_factory=dict)

    def promising(self, trials: Iterable[Trial]) -> bool:
        """Whether BASE's tapes may tell anything about these trials; if so, BASE is to be run first."""
        return any((trial.scenario.name, trial.prompt) not in self._differed for trial in trials)

    def taken(self, run: str) -> int:
        """How many of the model replies of this run, made live, were BASE's."""
        player = self._shared.get(run)
        return 0 if player is None else sum(each.match.outcome not in ("diverged", "extra") for each in player.played)

    def within(self, trial: Trial, _: Inside) -> Sequence[Interceptor]:
        """For HEAD's live runs: model replies of BASE's, where this trial has some; see the module."""
        player = self._shared.get(trial.run)
        return () if player is None else (_models(player),)

    async def play(self, runner: Runner, trials: Sequence[Trial], done: Callable[[Judged], None]) -> list[Trial]:
        """Give those that are ties to `done`, and the others, which are to be made live, back.

        Args:
            runner: HEAD's, ready to be asked.
            trials: what to play; done: as in `Runner.carry_out`.
        """
        tapes = {trial.run: tape for trial in trials if (tape := self._tape(trial)) is not None}
        if not tapes:
            return list(trials)
        players = {run: tape.player() for run, tape in tapes.items()}
        alone = replace(
            runner,
            budget=None,  # nothing is spent
            pacing=None,
            listener=_unheard,
            world=LocalWorld(self.folder),
            hooks=Hooks(
                within=lambda trial, _: (players[trial.run].stage,),
                viewed=lambda trial, view: _with_evidence(view, tapes[trial.run]),
            ),
        )
        asked = {trial.run: trial for trial in trials if trial.run in tapes}

        def ended(head: Judged) -> None:
            trial = asked[head.run.id]
            known = self._tie(trial, head, tapes[trial.run], players[trial.run], runner.baselines)
            if known is None:
                self._differs(trial, head)
                return
            self.free.add(trial.run)
            done(known)
            runner.listener(RunFinished(known.run, known.cells))

        await alone.carry_out([self._asked(trial) for trial in asked.values()], ended)
        return [trial for trial in trials if trial.run not in self.free]

    def _differs(self, trial: Trial, head: Judged) -> None:
        """HEAD is to be run live, with what is still BASE's."""
        Path(head.run.tape).unlink(missing_ok=True)
        self.free.discard(trial.run)  # as a baseline it may have been
        self._differed.add((trial.scenario.name, trial.prompt))
        models = self._load(_run_of(self.base(trial)), _model_reply)
        self._shared[trial.run] = models.player(allow_live=True)

    def _tape(self, trial: Trial) -> Loaded | None:
        """BASE's tape of this trial, where it may tell what HEAD does."""
        found = self.base(trial)
        if found is None or timed(trial.invariants) or (trial.scenario.name, trial.prompt) in self._differed:
            return None
        run = _run_of(found)
        if run.error is not None or run.refusals or not run.tape:
            return None
        try:
            loaded = self._load(run, of_the_world)
        except (TapeError, Misuse, OSError):
            return None
        return loaded if loaded.matcher.entries else None

    def _load(self, run: RunResult, pick: Callable[[Exchange], Iterable[Exchange]]) -> Loaded:
        return load_tape(run.tape, known=known_to(self.config), patterns=self.config.boundary.redact, pick=pick)

    def _asked(self, trial: Trial) -> Trial:
        """What was judged here need not be judged again: a judge's second opinion of the same run is no difference."""
        return replace(trial, invariants=()) if isinstance(self.base(trial), Judged) else trial

    def _tie(
        self, trial: Trial, head: Judged, tape: Loaded, player: Player, baselines: Mapping[int, str]
    ) -> Judged | None:
        """HEAD's run as it would be live, if it is BASE's."""
        base = self.base(trial)
        if base is None or player.problems or player.missing() or head.run.error is not None:
            return None
        run = _run_of(base)
        if _firings(run.fired) != _firings(head.run.fired) or _firings(run.masked) != _firings(head.run.masked):
            return None
        if not tape.same_output(head.run.output):
            return None
        if isinstance(base, Judged):
            if trial.invariants and baselines.get(trial.prompt) != base.view.baseline:
                return None  # what it is compared with is another one
            return replace(head, trial=trial, verdicts=base.verdicts, calls=base.calls, results=base.results)
        own = Side.of(head.run, head.cells)
        return head if own.verdicts == base.verdicts else None


def _run_of(found: Judged | Side | None) -> RunResult:
    if found is None:
        raise AssertionError("only runs that BASE made are played")
    return found.run


def _model_reply(exchange: Exchange) -> tuple[Exchange, ...]:
    """A model's reply that no fault touched: one that was changed counts as not billed when it is played."""
    return (exchange,) if exchange.kind == "llm" and not exchange.faults else ()


def _models(player: Player) -> Interceptor:
    def stage(call: Call) -> Flow | Call:
        return player.stage(call) if call.kind == "llm" else call

    return stage


def _with_evidence(view: RunView, tape: Loaded) -> RunView:
    """The run with BASE's exchanges, which are its own if it is to count at all: they know what really went out."""
    return replace(view, exchanges=Tape.open(tape.tape.path).exchanges())


def _firings(firings: Iterable[Firing]) -> list[tuple[str, str, int]]:
    return sorted((str(each.site), each.mode, each.fault) for each in firings)


def _unheard(_: Event) -> None:
    """A run that may not count is nobody's news."""
