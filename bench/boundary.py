"""A recorded in-process call costs at most 60 us of CPU over the bare SDK; tracefork 1.0.0 beside it.

The official SDKs ask a loopback server in another process, so its CPU does not count. A run of calls is made bare and
then recorded, in turns, on the process's own CPU clock; opening the tape, writing it and closing it are part of the
recorded run, putting the seams in is not. tracefork records its own client the same way and saves its tape once.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.outcome import Claim, Outcome
from bench.peers import interpreter, peer
from bench.processes import ask, serving

LIMIT_US = 60
PEER = "tracefork==1.0.0"
LEAST, WHOLE = "a line of JSON per exchange, nothing else", "the same, replies read whole first"


@dataclass(frozen=True, slots=True)
class Size:
    """How much to measure.

    Args:
        calls: per run, and so per tape.
        rounds: pairs of a bare and a recorded run per process.
        streams: pairs of streams.
        repeats: processes per arm.
    """

    calls: int
    rounds: int
    streams: int
    repeats: int


FULL, QUICK = Size(100, 15, 10, 3), Size(10, 1, 1, 1)


def measure(*, quick: bool) -> list[Outcome]:
    size = QUICK if quick else FULL
    here = Path(sys.executable)
    arms = {
        "flakestorm, anthropic": (here, "bench.boundary_ours", "anthropic"),
        "flakestorm, openai": (here, "bench.boundary_ours", "openai"),
        LEAST: (here, "bench.boundary_least", "anthropic"),
        WHOLE: (here, "bench.boundary_least", "anthropic"),
    }
    note = (
        "CPU of the client process. First token: recorded over bare, 1 means that recording delays nothing. Beside it "
        "what recorders take that do nothing but write a line of JSON per exchange (`bench/boundary_least.py`)."
    )
    if not quick:
        if python := interpreter((3, 12)):
            arms["tracefork 1.0.0"] = (peer(PEER, python=python) / "python", "bench.boundary_tracefork", "anthropic")
        else:
            note += " tracefork was left out: it needs Python 3.12 or newer, which is not on this machine."
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in arms}
    with serving("bench.upstream") as said:
        for _ in range(size.repeats):
            for name, (python, script, sdk) in arms.items():
                amounts = (*map(str, (size.calls, size.rounds, size.streams)), *(["whole"] if name == WHOLE else []))
                found[name].append(ask(python, script, sdk, f"http://127.0.0.1:{said['port']}", *amounts))

    def middle(name: str, key: str) -> float:
        return float(statistics.median(run[key] for run in found[name]))

    rows = [
        (
            name,
            runs[0]["sdk"],
            f"{middle(name, 'bare_us'):.0f} us",
            f"+{middle(name, 'added_us'):.0f} us",
            f"{middle(name, 'first_token'):.2f}",
        )
        for name, runs in found.items()
    ]
    claims = []
    if not quick:
        worst = max(middle(name, "added_us") for name in arms if name.startswith("flakestorm"))
        text = f"a recorded in-process call costs at most {LIMIT_US} us CPU over the bare SDK (here {worst:.0f} us)"
        claims.append(Claim(text, worst <= LIMIT_US))
    columns = ("", "SDK", "bare call", "recording adds", "time to first token")
    return [Outcome("Recording in process", columns, rows, claims, note)]
