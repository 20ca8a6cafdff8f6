"""How a judging command is carried out, for whoever asks from Python."""

from __future__ import annotations

from pathlib import Path

from flakestorm.core.record import Record
from flakestorm.engine.budget import Budget
from flakestorm.engine.events import Event, Listener, Report
from flakestorm.engine.pacing import Pacing

__all__ = ["OnRay", "Options"]


def _silent(_: Event) -> None:
    pass


class OnRay(Record, frozen=True):
    """Runs are made by workers on a Ray cluster (extra `ray`), each with an agent of its own.

    Args:
        workers: how many; None for as many as the cluster has processors, and never more than runs are under way.
        address: of the cluster, as Ray takes it: `HOST:PORT`, or `auto` for the one that this machine is part of. Empty
            takes the variable RAY_ADDRESS, or starts a cluster on this machine for as long as the command takes.
    """

    workers: int | None = None
    address: str = ""


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
        pacing: when runs are started, where several phases share that; as the config's `advanced.rate_limit` when None.
        early: whether cells get no more trials once their verdict is decided; None leaves it to the number of trials
            (`engine/rounds.py`), and to the gate: where a score decides, all trials are made.
        dry_run: make nothing; the report says what would be run.
        ray: have the runs made on a cluster, of a command that makes no use of what they hold meanwhile: a contract,
            chaos, mutations. Here when None.
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
    ray: OnRay | None = None
    pacing: Pacing | None = None
