"""The HTML report of 5,000 cells with the timelines of its 1,250 runs takes at most 3 seconds, as a command."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from bench.cells import command, contract
from bench.outcome import Claim, Outcome

CELLS, QUICK = 5_000, 100
LIMIT_S = 3.0


def measure(*, quick: bool) -> list[Outcome]:
    cells = QUICK if quick else CELLS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contract(folder, cells)
        page = folder / "page.html"
        spent = [command(folder, "report", "latest", "-o", str(page)) for _ in range(1 if quick else 5)]
        size_mib = page.stat().st_size / 2**20
    wall_s, cpu_s = (statistics.median(getattr(each, name) for each in spent) for name in ("wall_s", "cpu_s"))
    rows = [(f"{cells:,} cells", f"{wall_s:.2f} s", f"{cpu_s:.2f} s", f"{size_mib:.1f} MiB")]
    claims = []
    if not quick:
        text = f"the HTML report of {CELLS:,} cells takes at most {LIMIT_S:g} s (here {wall_s:.2f} s)"
        claims.append(Claim(text, wall_s <= LIMIT_S))
    note = "From the store: `flakestorm report latest -o page.html`, from its start to its end, tapes read included."
    return [Outcome("HTML report", ("", "wall time", "CPU", "size of the page"), rows, claims, note)]
