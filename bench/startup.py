"""`flakestorm --help` takes at most 0.15 s of CPU time; flakestorm 2.0.0 beside it."""

from __future__ import annotations

import resource
import statistics
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.outcome import Claim, Outcome
from bench.peers import as_installed, ours, peer, take_turns

LIMIT_S = 0.15


def measure(*, quick: bool) -> list[Outcome]:
    arms: dict[str, Callable[[], float]] = {"flakestorm": partial(cpu_s, ours() / "flakestorm")}
    if not quick:
        arms["flakestorm 2.0.0"] = partial(cpu_s, peer("flakestorm==2.0.0") / "flakestorm")
    found = take_turns(arms, rounds=1 if quick else 9, warm_up=True)
    rows = [(name, f"{statistics.median(seconds) * 1000:.0f} ms") for name, seconds in found.items()]
    holds = statistics.median(found["flakestorm"]) <= LIMIT_S
    claims = [] if quick else [Claim(f"`--help` takes at most {LIMIT_S} s of CPU", holds)]
    return [Outcome("Start: `--help`", ("", "CPU time"), rows, claims)]


def cpu_s(binary: Path) -> float:
    """User and system CPU seconds of one `--help`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    null = subprocess.DEVNULL
    subprocess.run([binary, "--help"], check=True, stdout=null, stderr=null, env=as_installed(binary))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
