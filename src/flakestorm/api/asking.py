"""One input to the configured agent: recorded, or answered by a tape."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flakestorm.api.carrying import Work, hub_of, runner_of, seed_of
from flakestorm.api.inputs import demand_keys
from flakestorm.api.loops import in_a_loop
from flakestorm.api.options import Options
from flakestorm.core.draws import Draws
from flakestorm.core.pipeline import Interceptor
from flakestorm.engine.events import RunResult
from flakestorm.engine.hooks import Hooks, Inside
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import BASELINE, Trial
from flakestorm.errors import Misuse
from flakestorm.executors.interruption import interruptible
from flakestorm.executors.world import LocalWorld
from flakestorm.tape.player import Player
from flakestorm.tape.redact import Redactor

if TYPE_CHECKING:  # few runs have virtual draws, and few are made anew
    from flakestorm.api.project import Project
    from flakestorm.boundary.draws import Drawing
    from flakestorm.tape.origin import Named

__all__ = ["ask", "named_project"]


class _World(LocalWorld):
    """Writes its one tape to a given path."""

    def __init__(self, path: Path, time: Callable[[], float] | None = None) -> None:
        super().__init__(path.parent)
        self._path, self._time = path.absolute(), time

    def monotonic(self) -> float:
        return super().monotonic() if self._time is None else self._time()

    def tape_path(self, run: str) -> Path:
        return self._path


def ask(
    work: Work,
    text: str,
    path: Path,
    options: Options,
    *,
    within: Sequence[Interceptor] = (),
    facts: Mapping[str, object] | None = None,
    draws: Draws | None = None,
    player: Player | None = None,
    redactor: Redactor | None = None,
    time: Callable[[], float] | None = None,
    begins: Callable[[Inside, Drawing | None], None] | None = None,
) -> RunResult:
    """Give the agent of a project one input, without faults.

    Args:
        work: the project.
        text: the input.
        path: the tape to write.
        options: how.
        within: stages that answer in the world's place, further in than the player.
        facts: more for the tape's first line.
        draws: what clock and random draws follow from; None leaves them real.
        player: plays a tape, by which the clock then goes.
        redactor: takes secrets out; by default one of a key that follows from the seed.
        time: the run's clock, in seconds; that of this machine when None.
        begins: is told what the player may know of the run, and of its draws, before its first call.

    Raises:
        Misuse: the config names what is not available, or the tape cannot be written there.
    """
    world = _World(path, time)
    seed = seed_of(work.config, options)
    demand_keys(work, [(None, text)])
    trial = Trial(run=path.stem, scenario=BASELINE, prompt=0, text=text, number=1, invariants=())

    async def carry() -> RunResult:
        done: list[Judged] = []
        with interruptible() as signals:
            hub = hub_of(work.config, draws, replaying=player is not None)
            drawing = hub.drawing(trial.run)
            if player is not None and drawing is not None:
                player.recall = drawing.recall

            def inner(_: Trial, inside: Inside) -> Sequence[Interceptor]:
                if begins is not None:
                    begins(inside, drawing)
                return within if player is None else (player.stage, *within)

            hooks = Hooks(within=inner, facts=facts or {})
            async with runner_of(work, (BASELINE,), (), options, seed, world, hub, hooks) as runner:
                if redactor is not None:
                    runner.redaction = lambda: redactor
                await runner.agent.start()
                runner.prepare((BASELINE,))
                try:
                    await runner.carry_out([trial], done.append)
                except asyncio.CancelledError:
                    if not signals:
                        raise
                    raise KeyboardInterrupt from None
        return done[0].run

    return in_a_loop(carry)


def named_project(tape: Path, named: Named) -> Project:
    """The project whose agent was given the tape's input, as the tape names it.

    Args:
        tape: the tape's path, for the error.
        named: what it names to be run again.

    Raises:
        Misuse: it names no config.
        ConfigError: that config is missing or wrong.
    """
    from flakestorm.api.project import load

    if not named.config:
        raise Misuse(f"{tape} was given an input; name the config of its agent with -c")
    return load(named.config)
