"""Recording: any code in this process, any command, or the configured agent, onto a tape."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from flakestorm.boundary.draws import Drawing, fresh, held
from flakestorm.boundary.session import Crossing
from flakestorm.core.clock import Clock
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Interceptor, chain
from flakestorm.core.site import Site, Sites
from flakestorm.errors import Misuse, TapeError, WorldFailed
from flakestorm.tape.lanes import CONNECTIONS
from flakestorm.tape.model import Exchange
from flakestorm.tape.redact import Redactor, key_of
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify

if TYPE_CHECKING:
    from flakestorm.api.launching import Ran
    from flakestorm.config.model import Config

__all__ = ["Recording", "folder_for", "globs_of", "line_of", "moment", "record", "record_command", "run_here"]

T = TypeVar("T")


class Recording:
    """A tape that is being written; `output` may be set, for a replay to compare with.

    Args:
        path: the file.
        recorder: writes it.
    """

    def __init__(self, path: Path, recorder: Recorder) -> None:
        self.path, self._recorder = path, recorder
        self.output = ""

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges so far, in order of arrival."""
        return self._recorder.exchanges


@contextmanager
def record(
    path: str | Path,
    *,
    input: str | None = None,  # noqa: A002 - SPEC's word
    tools: Mapping[str, str] | None = None,
    redact: Sequence[str] = (),
    snapshot: Callable[[Site], object] | None = None,
) -> Iterator[Recording]:
    """While entered, the calls of this context, and of threads and tasks started in it, are recorded.

    Args:
        path: the tape to write; one that is there is replaced.
        input: what the recorded code is given; `replay` gives it again.
        tools: names of plain-HTTP tools, each with a URL glob.
        redact: what else is secret: regular expressions (RE2) and JSON paths, as in `boundary.redact`.
        snapshot: saves the state around the code, as it is before the call of this site, for `fork`'s `restore`.

    Raises:
        Misuse: an entry of `redact` is neither, or an argument is of another kind.
        TapeError: the tape cannot be written.
        WorldFailed: a snapshot failed; the tape is whole.
    """
    from flakestorm.api.snapshots import Snapshots
    from flakestorm.boundary import inprocess

    globs = globs_of(tools)
    _given(input, redact)
    path = Path(path)
    folder_for(path)
    clock = Clock(time.perf_counter, skips=False)
    given = {} if input is None else {"input": input}
    drawing = Drawing(fresh())
    header = {"run": path.stem, **given, "draws": drawing.draws.header, **moment()}
    redactor = Redactor(key_of(header), patterns=redact)
    recorder = Recorder(path, clock=clock.now, ledger=Ledger(), header=header, reached=drawing.reach, redactor=redactor)
    recording = Recording(path, recorder)
    error: str | None = None
    snapshots = Snapshots(snapshot)
    try:
        line = line_of(path.stem, recorder, clock, globs, snapshots.stages, drawing)
        with inprocess.held(), held(), line.active():
            yield recording
    except BaseException as raised:
        error = f"{type(raised).__name__}: {raised}"
        raise
    finally:
        recorder.close(output=recording.output, error=error)
    if snapshots.failure is not None:
        raise WorldFailed(snapshots.failure)


def record_command(
    argv: Sequence[str],
    path: Path,
    *,
    tools: Sequence[tuple[str, str]] = (),
    config: Config | None = None,
    within: Sequence[Interceptor] = (),
    told: Callable[[int], None] = lambda _: None,
) -> Ran:
    """Run a program and record its calls; its input, output and exit code are those it would have had anyway.

    Args:
        argv: the program and its arguments.
        path: the tape to write.
        tools: (name, URL glob) pairs that name plain-HTTP tools.
        config: says what else is secret.
        within: stages between the recorder and the world.
        told: is given the number of recorded calls at the end.

    Raises:
        Misuse: there is no such program.
        TapeError: the tape cannot be written.
    """
    from flakestorm.api.launching import demand, launch
    from flakestorm.api.loops import in_a_loop

    demand(argv, Path.cwd())
    folder_for(path)
    clock = Clock(time.perf_counter, skips=False)
    drawing = Drawing(fresh())
    command = {"argv": list(argv), "cwd": str(Path.cwd())}
    header = {"run": path.stem, "command": command, "lanes": CONNECTIONS, "draws": drawing.draws.header, **moment()}
    recorder = Recorder(
        path,
        clock=clock.now,
        ledger=Ledger(),
        header=header,
        keep=False,
        reached=drawing.reach,
        redactor=_redactor(header, config),
    )
    ran: Ran | None = None
    try:
        line = line_of(path.stem, recorder, clock, tools, within, drawing)
        ran = in_a_loop(lambda: launch(argv, cwd=Path.cwd(), line=line, stdin=None))
    finally:
        if ran is None:
            recorder.close(error="the recording was interrupted")
        else:
            recorder.close(output=ran.output, error=ran.error, stdin=ran.stdin)
    told(recorder.count)
    return ran


def _redactor(header: Mapping[str, object], config: Config | None) -> Redactor:
    """What takes the secrets out of this tape: by a key of its own."""
    if config is None:
        return Redactor(key_of(header))
    from flakestorm.api.redaction import known_to

    return Redactor(key_of(header), known=known_to(config), patterns=config.boundary.redact)


def globs_of(tools: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Names of plain-HTTP tools with their globs, as a line takes them.

    Raises:
        Misuse: it is no mapping of names to globs.
    """
    if tools is None:
        return ()
    if not isinstance(tools, Mapping) or not all(isinstance(word, str) for pair in tools.items() for word in pair):
        raise Misuse(f"tools={tools!r} does not name tools; map names to URL globs, e.g. {{'search': '*/search*'}}")
    return tuple(tools.items())


def _given(input: str | None, redact: Sequence[str]) -> None:  # noqa: A002 - as of `record`
    if input is not None and not isinstance(input, str):
        raise Misuse(f"input={input!r} is not the text that the recorded code is given")
    if isinstance(redact, (str, bytes)) or not all(isinstance(each, str) for each in redact):
        raise Misuse(f"redact={redact!r} is no list of patterns; put brackets around it")


def line_of(
    run: str,
    recorder: Recorder | None,
    clock: Clock,
    tools: Sequence[tuple[str, str]] = (),
    within: Sequence[Interceptor] = (),
    drawing: Drawing | None = None,
) -> Crossing:
    """The crossing of a run without faults: what is within answers in the world's place. Where there is no recorder, it
    sees to that itself."""
    stages: list[Any] = [classify(tools=tools, sites=Sites()), *within]
    if recorder is not None:
        stages = [stages[0], recorder.outer, *within, recorder.inner]
    return Crossing(run, chain(*stages), clock, draws=drawing)


def moment() -> dict[str, object]:
    """When a recording begins, for its first line: the time of day, and what local time is ahead of UTC."""
    now = datetime.now(UTC)
    offset = now.astimezone().utcoffset()
    return {
        "started_at": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "utc_offset_s": 0 if offset is None else int(offset.total_seconds()),
    }


def run_here(work: Coroutine[Any, Any, T]) -> T | Coroutine[Any, Any, T]:
    """What comes of it; on an event loop's own thread the coroutine itself, for the caller to await."""
    from flakestorm.api.loops import under_way

    return work if under_way() else asyncio.run(work)


def folder_for(path: Path) -> None:
    """Make the folder that a tape is to lie in.

    Raises:
        TapeError: it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TapeError(f"the tape {path} cannot be written: {error.strerror or error}; choose another -o") from error
    if path.is_dir() or (path.exists() and not os.access(path, os.W_OK)):
        raise TapeError(f"the tape {path} cannot be written: it is a folder, or not yours; choose another -o")
