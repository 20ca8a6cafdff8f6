"""How a judging command is carried out, for whoever asks from Python."""

from __future__ import annotations

from pathlib import Path

from flakestorm.core.record import Record
from flakestorm.engine.budget import Budget
from flakestorm.engine.events import Event, Listener, Report
from flakestorm.engine.pacing import Pacing
from flakestorm.errors import Misuse

__all__ = ["OnRay", "Options"]


_RANGES = (
    ("seed", 0, 2**63 - 1),
    ("trials", 1, 1_000_000),
    ("concurrency", 1, 100),
    ("min_score", 0, 100),
)
"""As on the command line."""


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
            (`engine/rounds.py`), and to the gate: where a score decides or counts runs, all are made.
        dry_run: make nothing; the report says what would be run.
        ray: have the runs made on a cluster, of a command that makes no use of what they hold meanwhile: a contract,
            chaos, mutations. Here when None.

    Raises:
        Misuse: a number is none, or out of its range.
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

    def __post_init__(self) -> None:
        for name, least, most in _RANGES:
            value = getattr(self, name)
            kinds = (int, float) if name == "min_score" else (int,)
            if value is not None and (
                not isinstance(value, kinds) or isinstance(value, bool) or not least <= value <= most
            ):
                what = "number" if name == "min_score" else "whole number"
                raise Misuse(f"Options({name}={value!r}): give a {what} from {least} to {most}")
