"""What pages have started: one `flakestorm` command at a time for each project, followed, cancelled and told about.

A command is a process of its own, so that what an agent does to its process cannot harm the viewer, and a cancelled one
really ends. It writes to a folder of its own below `work` in the store's folder; how far it is, the viewer reads there.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedRandom
from pathlib import Path

from flakestorm.errors import Misuse
from flakestorm.viewer.orders import CHILD, REPLY, SESSION, Order
from flakestorm.viewer.outcome import Outcome, of_fork, of_shrink

__all__ = ["FOLDER", "Job", "Work"]

FOLDER = "work"
"""Below the store's folder."""

PATIENCE_S = 10.0
"""How long a cancelled command may take to stop its agents before it is killed."""

KEPT = 50
"""Finished jobs that are remembered."""

_TAIL = 16_384


@dataclass(slots=True)
class Job:
    """One command that was started.

    Args:
        id: e.g. `fork-3`; also its folder's name.
        order: what was ordered.
        folder: where it writes.
        began: by `time.monotonic`.
        at: the same as a time of day, as reports have it.
        code: its exit code; None while it is under way.
        cancelled: whether somebody asked for its end.
        result: what came of it; None while there is nothing.
        made: in the end, how many runs or exchanges it made.
    """

    id: str
    order: Order
    folder: Path
    began: float
    process: asyncio.subprocess.Process | None = None
    at: str = ""
    code: int | None = None
    cancelled: bool = False
    took_s: float = 0.0
    result: Outcome | None = None
    made: int = 0
    _read: int = 0
    _lines: int = 0

    @property
    def state(self) -> str:
        """`running`, `cancelled`, `done` (something came of it) or `failed`."""
        if self.code is None:
            return "running"
        return "cancelled" if self.cancelled else "failed" if self.result is None else "done"

    @property
    def seconds(self) -> float:
        """How long it has been under way, or took."""
        return time.monotonic() - self.began if self.code is None else self.took_s

    def progress(self) -> dict[str, int]:
        """`done` and `planned` (0 where that is not known); of a shrink runs, of a fork exchanges."""
        planned = self.order.runs
        if self.code is not None:
            return {"done": self.made, "planned": planned}
        if self.order.kind == "shrink":
            tapes = self.folder.joinpath(SESSION).with_suffix(".tapes")
            return {"done": sum(1 for _ in tapes.glob("*.tape")), "planned": planned}
        framing = 1 if self.process is None or self.process.returncode is None else 2  # first line; in the end the last
        return {"done": max(self._grown() - framing, 0), "planned": planned}

    def said(self) -> str:
        """The end of what it wrote on stderr: what an agent printed, and why it ended."""
        return _tail(self.folder / "stderr.txt", _TAIL).decode("utf-8", "replace")

    def _grown(self) -> int:
        """Lines of the child's tape; only what is new is read."""
        with contextlib.suppress(OSError), (self.folder / CHILD).open("rb") as tape:
            tape.seek(self._read)
            while piece := tape.read(1 << 20):
                self._read += len(piece)
                self._lines += piece.count(b"\n")
        return self._lines


class Work:
    """The jobs of one viewer. For its event loop.

    Args:
        folder: the project's `.flakestorm` folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER
        self.jobs: dict[str, Job] = {}
        self._ends: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> Job | None:
        """The job that is under way."""
        return next((job for job in self.jobs.values() if job.code is None), None)

    def next_id(self, kind: str) -> str:
        """What the next job of this kind will be called."""
        n = 1
        while (self.folder / f"{kind}-{n}").exists():
            n += 1
        return f"{kind}-{n}"

    async def start(self, id_: str, order: Order) -> Job:
        """Start it.

        Args:
            id_: from `next_id`, when the order was made.
            order: what to start.

        Raises:
            Misuse: something is under way in this project, or it cannot be started.
        """
        if (busy := self.running) is not None:
            raise Misuse(f"{busy.id} is under way; one at a time: wait for its end, or cancel it")
        folder = self.folder / id_
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise Misuse(f"nothing can be written to {folder}: {error.strerror}; try again") from error
        if order.body is not None:
            (folder / REPLY).write_bytes(order.body)
        job = self.jobs[id_] = Job(id_, order, folder, time.monotonic(), at=_now())
        try:
            with (
                self._claim() as lock,
                (folder / "stdout.txt").open("wb") as out,
                (folder / "stderr.txt").open("wb") as err,
            ):
                job.process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", "flakestorm", *order.words),
                    cwd=order.cwd,
                    env={**os.environ, "NO_COLOR": "1"},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    pass_fds=(lock.fileno(),),  # so the project stays claimed as long as the process lives
                )
        except BaseException:
            del self.jobs[id_]
            raise
        task = asyncio.create_task(self._end(job, job.process))
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)
        for old in [job.id for job in self.jobs.values() if job.code is not None][:-KEPT]:
            del self.jobs[old]
        return job

    async def cancel(self, id_: str) -> None:
        """Have it end: as Ctrl-C does, and where that does not help, by force. Returns when it has ended."""
        job = self.jobs.get(id_)
        if job is None or job.code is not None or job.process is None:
            return
        job.cancelled = True
        for number, patience_s in ((signal.SIGINT, PATIENCE_S), (signal.SIGTERM, 2.0), (signal.SIGKILL, None)):
            _send(job.process, number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(job.process.wait()), patience_s)
                break
        await asyncio.gather(*self._ends, return_exceptions=True)

    async def close(self) -> None:
        """End what is under way."""
        if (job := self.running) is not None:
            await self.cancel(job.id)

    async def _end(self, job: Job, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        _send(process, signal.SIGKILL)  # what it may have left behind in its group
        job.took_s = time.monotonic() - job.began
        job.made = job.progress()["done"]
        job.result = await asyncio.to_thread(_outcome, job)
        job.code = code

    @contextlib.contextmanager
    def _claim(self) -> Iterator[BufferedRandom]:
        """The project's claim: held by whoever has this file open and locked, in this viewer or another."""
        with (self.folder / "claim").open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise Misuse("another viewer of this project has something under way; wait for its end") from error
            yield file


def _send(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _outcome(job: Job) -> Outcome | None:
    """What came of it; of a shrink's tapes, only that of the smallest case is kept."""
    printed = job.folder / "stdout.txt"
    if job.order.kind == "fork":
        return of_fork(printed)
    found = of_shrink(printed)
    kept = found.tape.name if found is not None and found.tape is not None else ""
    for tape in job.folder.joinpath(SESSION).with_suffix(".tapes").glob("*"):
        if tape.name != kept:
            with contextlib.suppress(OSError):
                tape.unlink()
    return found


def _tail(file: Path, most: int) -> bytes:
    try:
        with file.open("rb") as opened:
            opened.seek(max(opened.seek(0, os.SEEK_END) - most, 0))
            return opened.read(most)
    except OSError:
        return b""
