"""What a benchmark found: a table, and claims that held in this run or did not; printed, or written into a document."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["BEGIN", "END", "Claim", "Outcome", "machine", "show", "write"]

BEGIN = "<!-- results: written by `python -m bench --write docs/benchmarks.md` -->"
END = "<!-- end of results -->"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence with its figure, and whether it was true this time."""

    text: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one script found.

    Args:
        title: what was measured, in a few words.
        columns: the heads of the table; the first one names the rows.
        rows: cells as text.
        claims: none in a quick run, which is too short to judge speed.
        note: how to read the table.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    claims: Sequence[Claim] = field(default=())
    note: str = ""


def show(outcome: Outcome) -> None:
    """Print it for a terminal."""
    widths = [max(map(len, cells)) for cells in zip(outcome.columns, *outcome.rows, strict=True)]
    for cells in (outcome.columns, *outcome.rows):
        first, *rest = (
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        print("   " + "   ".join((first, *rest)))
    for claim in outcome.claims:
        print(f"   {'holds' if claim.holds else 'DOES NOT HOLD'}: {claim.text}", flush=True)


def write(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Put the tables between the markers of a document, each in place of the one with its title; others stay.

    Raises:
        SystemExit: the document has no such markers.
    """
    text = path.read_text()
    before, begin, rest = text.partition(BEGIN)
    there, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} has no place for results; it needs the lines {BEGIN!r} and {END!r}")
    sections = {part.partition("\n")[0]: part.rstrip() for part in there.split("\n### ")[1:]}
    when = f"Measured {datetime.now(UTC):%Y-%m-%d} on {machine()}."
    sections |= {outcome.title: f"{outcome.title}\n\n{when}\n\n{_markdown(outcome)}" for outcome in outcomes}
    made = "".join(f"### {section}\n\n" for section in sections.values())
    path.write_text(f"{before}{begin}\n\n{made}{end}{after}")


def machine() -> str:
    """The machine and the interpreter, in one line."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        model = next(
            (line.partition(":")[2] for line in cpuinfo.read_text().splitlines() if "model name" in line), model
        )
    return f"{os.cpu_count()} cores ({model.strip()}), {platform.system()}, Python {platform.python_version()}"


def _markdown(outcome: Outcome) -> str:
    lines = [_line(outcome.columns), "|---|" + "---:|" * (len(outcome.columns) - 1), *map(_line, outcome.rows)]
    if outcome.note:
        lines += ["", outcome.note]
    lines += ["", *(f"- {'Holds' if claim.holds else '**Does not hold**'}: {claim.text}." for claim in outcome.claims)]
    return "\n".join(lines).rstrip()


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
