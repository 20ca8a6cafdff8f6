"""Recorded exchanges onto a tape, by the way every live call takes.

The exchanges cross the pipeline of a run that has no faults, and the recording stands in for the world. So names,
sites, redaction and the tape's form are those of any run, with no second implementation to agree with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from flakestorm.core.call import Call, Reply
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import chain, drive
from flakestorm.core.site import KINDS, Kind, Sites
from flakestorm.core.stream import pump
from flakestorm.errors import CallFailed
from flakestorm.tape.model import Exchange
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify

__all__ = ["exchanges_of", "write_tape"]


def write_tape(
    path: Path,
    crossings: Iterable[tuple[Call, Reply | CallFailed]],
    *,
    header: Mapping[str, Any],
    tools: Sequence[tuple[str, str]] = (),
    output: str = "",
    error: str | None = None,
) -> dict[Kind, int]:
    """Write a tape of these exchanges and give their number per kind. A reader sees the whole tape or none.

    Recordings keep no times, so every time on the tape is 0.

    Args:
        path: the file; its folder exists.
        crossings: calls with their replies, or with what broke them, in the order they were made.
        header: facts for the tape's first line.
        tools: (tool name, URL glob) pairs that name plain-HTTP tools.
        output, error: what the agent answered, or why it did not, where the recording says so.

    Raises:
        TapeError: the file cannot be written.
        OSError: it cannot be put in its place.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        recorder = Recorder(unfinished, clock=lambda: 0.0, ledger=Ledger(), header=header)
        try:
            sites = _record(recorder, crossings, tools)
        finally:
            recorder.close(output=output, error=error)
        unfinished.replace(path)
    finally:
        with suppress(OSError):
            unfinished.unlink()
    return {kind: count for kind in KINDS if (count := sites.count(kind))}


def exchanges_of(
    crossings: Iterable[tuple[Call, Reply | CallFailed]], *, tools: Sequence[tuple[str, str]] = ()
) -> list[Exchange]:
    """The exchanges that a tape of these would hold."""
    recorder = Recorder(None, clock=lambda: 0.0, ledger=Ledger(), header={})
    _record(recorder, crossings, tools)
    recorder.close()
    return list(recorder.exchanges)


def _record(
    recorder: Recorder, crossings: Iterable[tuple[Call, Reply | CallFailed]], tools: Sequence[tuple[str, str]]
) -> Sites:
    sites = Sites()
    pipeline = chain(classify(tools=tools, sites=sites), recorder.outer, recorder.inner)
    for call, reply in crossings:
        _cross(pipeline(call), reply)
    return sites


def _cross(flow: Any, recorded: Reply | CallFailed) -> None:
    def send(_: Call) -> Reply:
        if isinstance(recorded, CallFailed):
            raise recorded
        return recorded

    with suppress(CallFailed):  # it is on the tape
        for _ in pump(drive(flow, send, _no_time), _no_time):
            pass


def _no_time(_: float) -> None:
    """Nothing in a run without faults waits."""
