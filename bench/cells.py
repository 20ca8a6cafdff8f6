"""What a cell costs does not depend on how many there are: contracts of 100, 1,000 and 10,000 cells, as commands.

The agent is a function in the command's own process that calls two tools, so that next to nothing but flakestorm costs
anything. Compared is what each further cell costs: between 100 and 1,000 cells, and between 1,000 and 10,000.
Start-up is in neither.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.outcome import Claim, Outcome
from bench.peers import as_installed, ours

SIZES, QUICK = (100, 1_000, 10_000), (20, 100)
ROUNDS = {100: 7, 1_000: 3}
FLAT = 1.25
CELLS_PER_PROMPT = 20
"""4 invariants x 5 scenarios."""

AGENT = """
def search(query: str) -> str:
    return "NW-118 to Oslo at nine, 120 euros"

def pay(flight: str, euros: int) -> str:
    return "paid"

TOOLS = {"search": search, "pay": pay}

def answer(text: str) -> str:
    for name, given in (("search", (text,)), ("pay", ("NW-118", 120))):
        try:
            TOOLS[name](*given)
        except Exception as error:
            return f"not done: {error}"
    return "done"
"""

CONFIG = """
version: "2.0"
agent: {{type: python, endpoint: "clerk:answer", tools: "clerk:TOOLS", timeout: 30000}}
golden_prompts: [{prompts}]
contract:
  name: bench
  invariants:
    - {{id: not-empty, type: output_not_empty, severity: critical}}
    - {{id: says-done, type: contains, value: done}}
    - {{id: quick, type: latency, max_ms: 20000}}
    - {{id: completes, type: completes}}
  chaos_matrix:
    - {{name: calm}}
    - {{name: search-down, tool_faults: [{{tool: search, mode: error, error_code: 503}}]}}
    - {{name: search-lost, tool_faults: [{{tool: search, mode: error, error_code: 404}}]}}
    - {{name: pay-down, tool_faults: [{{tool: pay, mode: error, error_code: 500}}]}}
    - {{name: pay-refused, tool_faults: [{{tool: pay, mode: error, error_code: 402}}]}}
output: {{path: reports}}
advanced: {{concurrency: 10}}
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """What one command took, start to end.

    Args:
        cpu_s, wall_s: seconds; rss_mib: most memory it had, in MiB.
    """

    cpu_s: float
    wall_s: float
    rss_mib: float


def measure(*, quick: bool) -> list[Outcome]:
    sizes = QUICK if quick else SIZES
    spent: dict[int, list[Spent]] = {cells: [] for cells in sizes}
    _judged(sizes[0])  # bytecode
    for turn in range(1 if quick else max(ROUNDS.values())):
        for cells in sizes:
            if turn < ROUNDS.get(cells, 1):
                spent[cells].append(_judged(cells))
    cpu_s = {cells: statistics.median(each.cpu_s for each in found) for cells, found in spent.items()}
    rows, further_us = [], []
    for at, cells in enumerate(sizes):
        before = sizes[at - 1] if at else 0
        if at:
            further_us.append((cpu_s[cells] - cpu_s[before]) / (cells - before) * 1e6)
        wall_s = statistics.median(each.wall_s for each in spent[cells])
        rss_mib = statistics.median(each.rss_mib for each in spent[cells])
        further = f"{further_us[-1]:.0f} us" if at else ""
        rows.append((f"{cells:,} cells", f"{cpu_s[cells]:.2f} s", further, f"{wall_s:.2f} s", f"{rss_mib:.0f} MiB"))
    claims = []
    if not quick:
        grown = further_us[1] / further_us[0]
        text = f"a further cell costs the same among 10,000 as among 1,000, within {FLAT:g} times (here {grown:.2f})"
        claims.append(Claim(text, grown <= FLAT))
    columns = ("", "CPU of the command", "CPU of each further cell", "wall time", "most memory")
    note = "4 invariants x 5 scenarios; the agent is a function that calls two tools, and every run has its tape."
    return [Outcome("What a cell costs", columns, rows, claims, note)]


def _judged(cells: int) -> Spent:
    with tempfile.TemporaryDirectory() as folder:
        return contract(Path(folder), cells)


def contract(folder: Path, cells: int) -> Spent:
    """Run a contract of so many cells in this folder; its report is the newest of the store there."""
    (folder / "clerk.py").write_text(AGENT)
    prompts = ", ".join(f'"book flight number {at}"' for at in range(cells // CELLS_PER_PROMPT))
    (folder / "flakestorm.yaml").write_text(CONFIG.format(prompts=prompts))
    return command(folder, "contract", "run", "--quiet", accepted=(0, 1))


def command(folder: Path, *words: str, accepted: tuple[int, ...] = (0,)) -> Spent:
    """Run flakestorm in this folder, to its end.

    Args:
        accepted: the exit codes of a command that did what it was asked.
    """
    binary = ours() / "flakestorm"
    with tempfile.TemporaryFile() as said:
        began_s = time.perf_counter()
        process = subprocess.Popen([binary, *words], cwd=folder, env=as_installed(binary), stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in accepted:
            said.seek(0)
            raise SystemExit(f"flakestorm {' '.join(words)} gave {process.returncode}:\n{said.read().decode()[-2000:]}")
    return Spent(used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss / 1024)
