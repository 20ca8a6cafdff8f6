"""Stores with real tapes for the viewer to show, and the viewer itself in a subprocess."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from e2e_support import FLAKESTORM, clean_env
from faults_support import JSON, llm_call, stream, tool_call
from flakestorm.core.call import Reply
from flakestorm.engine.blamed import BlamedEvent, BlamedStep, Blaming, Counted, Jump
from flakestorm.engine.events import CoverageResult, FaultAt, Finding, Report
from flakestorm.faults.schedule import Schedule
from flakestorm.reports.document import to_document
from flakestorm.store.sqlite import Store
from report_samples import HOSTILE, hostile, large, sample
from tape_support import Run

__all__ = ["BLAMED", "FOUND", "Asked", "Viewer", "recorded", "saved_with_tapes", "stores", "viewing"]

_EVENTS = tuple(BlamedEvent(k, f"tool/search#{k}", "tool", "", "") for k in (1, 2))
_STEP = BlamedStep(_EVENTS[0], Jump(0.7, 0.4, 0.9), Counted(2, 20), Counted(18, 20), ())
FOUND: dict[str, Any] = {
    "findings": (
        Finding(
            (FaultAt("tool/search#1", "error", "error"),), "admits", "critical", "it does not", 0, "r-0001",
            "flakestorm run --prompt 0 --inject tool/search#1=error",
        ),
    ),
    "coverage": CoverageResult(3, 9, 12, {"sites": 3, "singles": 9, "pairs": 14}, complete=False),
}  # fmt: skip
"""What a search adds to a report."""
BLAMED = Blaming(
    "step", "", "admits", "a.tape", "d", events=_EVENTS, steps=(_STEP,),
    curve=((0, 0.9, 0.7, 1.0), (1, 0.2, 0.1, 0.4), (2, 0.1, 0.0, 0.3)),
    counts=((0, 18, 20), (1, 2, 10), (2, 1, 10)), continuations=40,
)  # fmt: skip
"""What blame adds to one."""


@dataclass
class Asked:
    """A request's query, as answers take it."""

    query: dict[str, str]


def recorded(
    path: Path,
    *,
    exchanges: int = 3,
    text: str = "Oslo is nice.",
    name: str = "search",
    header: dict[str, object] | None = None,
) -> Path:
    """A finished tape: model calls that stream an answer, around tool calls of which the first is broken by a fault."""
    path.parent.mkdir(parents=True, exist_ok=True)
    run = Run(path, faults=Schedule.injecting([f"tool/{name if name.isalnum() else '*'}#1=error:503"]), header=header)
    history = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    for n in range(exchanges):
        run.clock.wait(0.005)
        if n % 2:
            call = tool_call(name, n // 2 + 1, "http://127.0.0.1:9/search?q=oslo", headers=(("x-note", text[:40]),))
            run.ask(call, lambda _: Reply(200, JSON, json.dumps({"says": text}).encode()))
            continue
        tools = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
        body = json.dumps({"model": "gpt-4o", "stream": True, "messages": history, "tools": tools}).encode()
        run.ask(llm_call(n=n // 2 + 1, body=body), lambda _: stream(*_events(text)))
    run.recorder.close(output=text)
    return path


def _events(text: str) -> Iterator[bytes]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text[:5]}, {"content": text[5:]}]
    called = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    for delta in [*deltas, {"tool_calls": [called]}]:
        yield _event({"index": 0, "delta": delta, "finish_reason": None})
    yield _event({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    yield b"data: [DONE]\n\n"


def _event(choice: dict[str, Any]) -> bytes:
    document = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o", "choices": [choice]}
    return b"data: %s\n\n" % json.dumps(document).encode()


def saved_with_tapes(store: Path, tapes: Path, report: Report, *, most: int = 3, **how: Any) -> str:
    """Save a report whose first runs have tapes; gives its id."""
    runs = [
        replace(run, tape=str(recorded(tapes / f"{n}.tape", exchanges=3 + n, **how)) if n < most else "")
        for n, run in enumerate(report.runs)
    ]
    with Store(store, write=True) as open_store:
        return open_store.save(to_document(replace(report, runs=tuple(runs))))


@dataclass
class Stores:
    """What `stores` made: the ids of its reports."""

    folder: Path
    plain: str
    earlier: str
    hostile: str
    forked: str
    long: str
    found: str
    blame: str
    unfinished: str
    many: str


def stores(folder: Path, *, exchanges: int = 5000, runs: int = 10_000) -> Stores:
    """A project's store: ordinary reports, a hostile one, one like it that can be forked, one with a long tape, one of
    many runs, those of a search and of blame, one that is not finished."""
    store, tapes = folder / ".flakestorm", folder / "tapes"
    earlier = saved_with_tapes(store, tapes / "0", replace(sample(), started_at="2026-05-03T10:00:00Z"))
    plain = saved_with_tapes(
        store, tapes / "1", replace(sample(), started_at="2026-05-05T10:00:00Z"), text="Oslo is cold."
    )
    evil = saved_with_tapes(
        store, tapes / "2", replace(hostile(), started_at="2026-05-02T10:00:00Z"), text=HOSTILE, name=HOSTILE
    )
    (folder / "flakestorm.yaml").write_text("")  # as if what is shown could be started again
    harmless = replace(hostile(), config="flakestorm.yaml", started_at="2026-05-01T12:00:00Z")
    forked = saved_with_tapes(store, tapes / "3", harmless, most=1, text=HOSTILE, name=HOSTILE)
    recorded(store / "tapes" / "loose.tape")
    long = recorded(tapes / "long.tape", exchanges=exchanges)
    base = sample()
    with Store(store, write=True) as db:
        one = replace(base, runs=(replace(base.runs[0], tape=str(long)),), cells=base.cells[:3])
        long_id = db.save(to_document(replace(one, started_at="2026-05-01T10:00:00Z")))
        searched = replace(base, started_at="2026-04-30T10:00:00Z", command="explore", **FOUND)
        blamed = replace(base, started_at="2026-04-30T11:00:00Z", command="blame", blame=BLAMED)
        found, blame = db.save(to_document(searched)), db.save(to_document(blamed))
        unfinished = db.begin(to_document(replace(base, started_at="2026-04-29T10:00:00Z", command="chaos")))
        many = db.save(to_document(replace(_many(runs), started_at="2026-04-28T10:00:00Z", command="run")))
    return Stores(store, plain, earlier, evil, forked, long_id, found, blame, unfinished, many)


def _many(runs: int) -> Report:
    """A report of so many runs: a hundred scenarios, two invariants; every seventh cell fails."""
    base = large(100, 2)
    trials = range(1, runs // 100 + 1)
    return replace(
        base,
        runs=tuple(replace(run, id=f"{run.id}-{n}", trial=n) for run in base.runs for n in trials),
        cells=tuple(replace(cell, run=f"{cell.run}-{n}", trial=n) for cell in base.cells for n in trials),
    )


@dataclass
class Viewer:
    """A viewer that serves.

    Args:
        process: its process; address: what it printed; root: the same without the token.
    """

    process: subprocess.Popen[str]
    address: str

    @property
    def root(self) -> str:
        return self.address.partition("/?")[0]

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Send a signal and wait; the exit code and what it said on stderr."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


@contextmanager
def viewing(folder: Path, *args: str) -> Iterator[Viewer]:
    """`flakestorm view` in this folder, stopped at the end if it still runs."""
    process = subprocess.Popen(
        [str(FLAKESTORM), "view", "--no-open", *args],
        cwd=folder,
        env=clean_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    viewer = Viewer(process, process.stdout.readline().strip())
    try:
        yield viewer
    finally:
        if process.poll() is None:
            _, err = viewer.stop()
            assert "Traceback" not in err, err
