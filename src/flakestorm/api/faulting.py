"""Faults on a tape: the tape stands in for the world until a fault has changed the run.

Up to the first fault nothing goes out. What the tape does not answer after it goes to the world where
`boundary.allow_live` says so; else the run proves nothing, and says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flakestorm.api.carrying import Work, carry_out, hub_of
from flakestorm.api.forked import fork_of
from flakestorm.api.options import Options
from flakestorm.core.draws import Draws
from flakestorm.core.pipeline import Interceptor
from flakestorm.engine.events import Report
from flakestorm.engine.hooks import Hooks, Inside
from flakestorm.engine.plan import Plan, Trial
from flakestorm.engine.score import Gate
from flakestorm.tape.reader import Tape

if TYPE_CHECKING:
    from flakestorm.tape.player import Player

__all__ = ["carry_out_on"]


def carry_out_on(tape: Tape, work: Work, plan: Plan, gate: Gate, options: Options) -> Report:
    """Carry out a plan with a tape in the world's place, and report on it.

    Args:
        tape: the tape.
        work, plan, gate, options: see `carry_out`.

    Raises:
        TapeDamaged: the tape was edited, cut short or added to.
    """
    boundary = work.config.boundary
    fork = fork_of(tape, boundary.match)
    hub = hub_of(work.config, Draws.of(tape.header), replaying=True)
    players: dict[str, Player] = {}

    def within(trial: Trial, inside: Inside) -> Sequence[Interceptor]:
        player = fork.faulted(lambda: bool(inside.ledger.fired), allow_live=boundary.allow_live)
        drawing = hub.drawing(trial.run)
        if drawing is not None:
            player.recall, player.leave = drawing.recall, drawing.go_live
        players[trial.run] = player
        return (player.stage,)

    def doubts(trial: Trial) -> str | None:
        player = players.pop(trial.run, None)
        return None if player is None else _doubts(player, tape.path)

    return carry_out(work, plan, gate, options, hub, hooks=Hooks(within=within, doubts=doubts))


def _doubts(player: Player, path: Path) -> str | None:
    if player.problems:
        return f"before any fault, the agent did something else than {path} says: {player.problems[0]}"
    if player.unanswered:
        more = f", and {len(player.unanswered) - 1} more" if len(player.unanswered) > 1 else ""
        return (
            f"after the fault, {path} has no answer for {player.unanswered[0].site}{more}; "
            "set boundary.allow_live: true to have the world asked"
        )
    return None
