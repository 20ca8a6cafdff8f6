"""The README's figures, out of the tables that the benchmarks wrote."""

from __future__ import annotations

import re
from pathlib import Path

from .markdown import table

__all__ = ["ROOT", "figures"]

ROOT = Path(__file__).resolve().parents[2]
_MATRIX = "A contract of 4 invariants x 5 scenarios x 4 prompts, agent of 50 ms"
_CALL, _CHAT, _SEARCH = (
    "Recording in process",
    "A growing chat",
    "Search: 120 faults, 2 single ones and 2 pairs planted",
)
_TIMES, _RUNS, _ADDS, _FIRST = "wall time of the command", "agent runs", "recording adds", "time to first token"


def figures() -> str:
    """What is measured, with flakestorm's figure, the peer's, and the script that says both."""
    found = _tables((ROOT / "docs" / "benchmarks.md").read_text("utf-8"))

    def said(title: str, row: str, column: str) -> str:
        """One cell; the row is the first whose name begins so."""
        return next(cells for name, cells in found[title].items() if name.startswith(row))[column]

    def named(title: str, row: str) -> str:
        return next(name for name in found[title] if name.startswith(row))

    old, ours = "flakestorm 2.0.0", "flakestorm, anthropic"
    peer, random = named(_CALL, "tracefork"), "every call at random, all remembered"
    proxy = named("Gateway", "mitmproxy").partition(",")[0]
    rows = [
        ("4 invariants x 5 scenarios x 4 prompts, judged by one command on an agent of 50 ms",
         f"{said(_MATRIX, 'flakestorm', _TIMES)}, {said(_MATRIX, 'flakestorm', _RUNS)} agent runs",
         f"{said(_MATRIX, old, _TIMES)}, {said(_MATRIX, old, _RUNS)} agent runs ({old})", "matrix"),
        ("latency that the recording gateway adds, at the median",
         said("Gateway", "flakestorm gateway, recording", "over direct"),
         f"{said('Gateway', f'{proxy}, recording', 'over direct')} ({proxy})", "gateway"),
        ("time to first token of a recorded stream, over the bare one",
         said(_CALL, ours, _FIRST), f"{said(_CALL, peer, _FIRST)} ({peer})", "boundary"),
        ("CPU that recording adds to a short call in process",
         said(_CALL, ours, _ADDS), f"{said(_CALL, peer, _ADDS)} ({peer})", "boundary"),
        ("bytes on tape per exchange of a growing chat of 1,000 turns",
         said(_CHAT, "flakestorm", "bytes per exchange"),
         f"{said(_CHAT, 'tracefork', 'bytes per exchange')} ({named(_CHAT, 'tracefork')})", "tape"),
        ("runs until 4 planted weaknesses among 120 faults are found, at the median",
         said(_SEARCH, "flakestorm", "runs, median"),
         f"{said(_SEARCH, random, 'runs, median')} (random schedules that remember all)", "explore"),
    ]  # fmt: skip
    lines = [(*row, f"`bench/{by}.py`") for *row, by in rows]
    return table(["measured", "flakestorm", "beside it", "by"], lines) + "\n"


def _tables(text: str) -> dict[str, dict[str, dict[str, str]]]:
    """Title -> name of a row -> column -> cell; of each section its first table."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for section in re.split(r"(?m)^### ", text)[1:]:
        lines = [line for line in section.splitlines() if line.startswith("|")]
        columns, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
        found[section.partition("\n")[0]] = {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
    return found
