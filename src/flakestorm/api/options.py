"""How a judging command is carried out, for whoever asks from Python."""

from __future__ import annotations

from pathlib import Path

from flakestorm.core.record import Record
from flakestorm.engine.budget import Budget
from flakestorm.engine.events import Event, Listener, Report

__all__ = ["Options"]


def _silent(_: Event) -> None:
    pass


class Options(Record, frozen=True):
    """How a judging command is carried out; None takes what the config says.

    Args:
        seed: every random choice follows from it; a fresh one when neither this nor `advanced.seed` is given.
        trials: runs of each cell.
        concurrency: runs under way at once.
        min_score: the gate (0..100 for contracts, 0..1 for chaos); None is the command's default.
        tapes: the folder tapes are written to.
        listener: is told everything as it happens.
        resume: the report of an interrupted command, whose finished runs are taken over, or the path of its JSON form.
        budget: what may be spent; no limit when None.
        early: whether cells get no more trials once their verdict is decided; None leaves it to the number of trials
            (`engine/rounds.py`), and to the gate: where a score decides, all trials are made.
        dry_run: make nothing; the report says what would be run.
    """

    seed: int | None = None
    trials: int | None = None
    concurrency: int | None = None
    min_score: float | None = None
    tapes: Path = Path("reports", "tapes")
    listener: Listener = _silent
    resume: Path | Report | None = None
    budget: Budget | None = None
    early: bool | None = None
    dry_run: bool = False
