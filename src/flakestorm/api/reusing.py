"""Model replies used again: a search makes the same run over and over, and up to its first fault the model is asked
what it was asked before.

Where a model call asks exactly what it asked in the run without faults, that run's tape answers it. Only models are
spared: a tool has a state, so it is called as always. A run that confirms what another has shown asks the model itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flakestorm.core.call import Call
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.engine.atoms import Ask
from flakestorm.engine.plan import Trial
from flakestorm.engine.hooks import Inside
from flakestorm.engine.judged import Judged
from flakestorm.tape.fork import Fork
from flakestorm.tape.match import Mode
from flakestorm.tape.player import Player

__all__ = ["Reusing"]

_Input = tuple[int, str]


@dataclass(slots=True)
class Reusing:
    """Answers model calls from the tapes of runs without faults.

    Args:
        mode: how requests are matched.

    `spared` model calls of `all` were answered so.
    """

    mode: Mode = "renamed"
    spared: int = 0
    all: int = 0
    _forks: dict[_Input, Fork] = field(default_factory=dict)
    _waiting: dict[str, Fork] = field(default_factory=dict)
    _players: dict[str, Player] = field(default_factory=dict)

    def begin(self, run: str, given: _Input, ask: Ask) -> None:
        """A run is about to be made.

        Args:
            run: its id.
            given: the prompt's index, and the input.
            ask: what is asked for.
        """
        fork = self._forks.get(given)
        if fork is not None and ask.atoms and not ask.fresh:
            self._waiting[run] = fork

    def within(self, trial: Trial, _: Inside) -> Sequence[Interceptor]:
        """What stands in the world's place in this run: the tape where it has an answer, for models only."""
        fork = self._waiting.pop(trial.run, None)
        if fork is None:
            return ()
        player = self._players[trial.run] = fork.faulted(lambda: True, allow_live=True)

        def stage(call: Call) -> Flow | Call:
            return player.stage(call) if call.kind == "llm" else call

        return (stage,)

    def end(self, judged: Judged, *, passed: bool) -> None:
        """A run was made."""
        self.all += judged.run.calls.get("llm", 0)
        player = self._players.pop(judged.run.id, None)
        self.spared += 0 if player is None else len(player.played)
        self.learn(judged, passed=passed)

    def learn(self, judged: Judged, *, passed: bool) -> None:
        """A run is known; the first without faults that passed is the one to go by."""
        from flakestorm.api.forked import fork_of
        from flakestorm.tape.reader import Tape

        run = judged.run
        given = (run.prompt, judged.trial.text)
        if passed and not judged.trial.scenario.chaos and given not in self._forks and run.tape:
            self._forks[given] = fork_of(Tape.open(Path(run.tape)), self.mode)
