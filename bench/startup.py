"""`flakestorm --help` takes at most 0.15 s of CPU time; flakestorm 2.0.0 beside it."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

from bench.peers import medians, ours, peer, row, verdict


def cpu_s(binary: Path) -> float:
    """User and system CPU seconds of one `--help`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([binary, "--help"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> bool:
    old = peer("flakestorm==2.0.0") / "flakestorm"
    new = ours() / "flakestorm"
    found = medians({"ours": lambda: cpu_s(new), "flakestorm 2.0.0": lambda: cpu_s(old)}, rounds=9)
    for name, seconds in found.items():
        row(name, [f"{seconds * 1000:.0f} ms CPU"])
    return verdict("--help takes at most 0.15 s CPU", found["ours"] <= 0.15)


if __name__ == "__main__":
    main()
