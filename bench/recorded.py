"""A recorded run as the engine makes one: classify, recorder, schedule, recorder, and a tape on disk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flakestorm.boundary.session import Crossing
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import chain
from flakestorm.core.site import Sites
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify

__all__ = ["recorded_run"]

TOOLS = (("search", "*/search"), ("pay", "*/pay"))


@contextmanager
def recorded_run(tape: Path) -> Iterator[Crossing]:
    """The line of one run with a fault that waits for a tool which is never called."""
    ledger, sites = Ledger(), Sites()
    recorder = Recorder(tape, clock=time.monotonic, ledger=ledger, header={"run": "bench", "input": "bench"})
    faults = Schedule.injecting(["tool/search#1=error:503"]).stage(
        Choices(1, "bench", 0, 0), ledger, noted=lambda: recorder.exchanges
    )
    pipeline = chain(classify(tools=TOOLS, sites=sites), recorder.outer, faults, recorder.inner)
    try:
        yield Crossing("bench", pipeline)
    finally:
        recorder.close(output="done")
