"""The same report for people at a terminal, and for logs: the summary of a command that has ended.

Everything is shown as literal text: control characters are made visible, so no agent can colour, move or title the
reader's terminal, and nothing is interpreted as markup. Without a terminal there is no colour and no box that the
encoding cannot hold.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from flakestorm.core.ledger import Firing
from flakestorm.engine.blamed import Blaming
from flakestorm.engine.events import CellResult, Report, RunResult
from flakestorm.reports import blamed
from flakestorm.reports.canvas import Canvas, cells
from flakestorm.reports.grid import Grid, Mark, grid_of, intervals_line, scale_of, score_text, worst_first
from flakestorm.reports.loaded import HEAD, load_lines, load_rows
from flakestorm.reports.progress import NOTE_INDENT, is_terminal, note_lines, wants_color
from flakestorm.reports.repeats import repeats_lines
from flakestorm.reports.text import counted, mutated, one_line, unbroken, untold

if TYPE_CHECKING:
    pass

__all__ = ["summary", "text"]

SYMBOL = {"pass": "✓", "part": "◐", "fail": "✕", "open": "?", "none": "–"}
ASCII_SYMBOL = {"pass": "+", "part": "~", "fail": "x", "open": "?", "none": "-"}
STYLE = {"pass": "green", "part": "yellow", "fail": "bold red", "open": "magenta", "none": "bright_black"}
MARK: dict[str, Mark] = {"pass": "pass", "fail": "fail", "inconclusive": "open"}
PLAIN_WIDTH = 120
"""Columns where nobody says: a log or a pipe."""


def summary(
    report: Report,
    *,
    stream: TextIO | None = None,
    color: bool = True,
    limit: int = 10,
    files: Sequence[Path | str] = (),
) -> None:
    """Print the report.

    Args:
        stream: where to (standard output).
        color: False for none; else there is colour if the stream is a terminal and the environment (`NO_COLOR`,
            `TERM=dumb`) does not object.
        limit: how many cells that did not pass are told in full.
        files: the reports that were written, for the last lines.
    """
    out = sys.stdout if stream is None else stream
    encoding = getattr(out, "encoding", None) or "utf-8"
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if is_terminal(out) else PLAIN_WIDTH
    drawn = text(
        report,
        width=width,
        color=color and wants_color(out),
        ascii_only=not _can_encode(encoding),
        limit=limit,
        files=files,
    )
    out.write(drawn.encode(encoding, "backslashreplace").decode(encoding))
    out.flush()


def text(
    report: Report,
    *,
    width: int = PLAIN_WIDTH,
    color: bool = False,
    ascii_only: bool = False,
    limit: int = 10,
    files: Sequence[Path | str] = (),
) -> str:
    """What `summary` prints, for a terminal of that many columns."""
    page = _Page(width=max(width, 20), color=color, ascii_only=ascii_only)
    _verdict(page, report)
    if report.blame is not None:
        _blame(page, report.blame)
    else:
        _body(page, report, limit)
    for note in untold(report.notes, report.headline):
        first, *more = note_lines(note)
        page.say("yellow", first)
        for line in more:
            page.say("yellow", line.lstrip(), indent=NOTE_INDENT)
    for file in files:
        page.command(f"report: {unbroken(str(file))}")
    return page.text().rstrip("\n") + "\n"  # after what did not pass there is a gap, and perhaps nothing more


class _Page(Canvas):
    """A canvas with the symbols that the reader's encoding has."""

    def __init__(self, *, width: int, color: bool, ascii_only: bool) -> None:
        super().__init__(width=width, color=color)
        self.ascii_only, self.symbols = ascii_only, ASCII_SYMBOL if ascii_only else SYMBOL


def _verdict(page: _Page, report: Report) -> None:
    mark = MARK[report.verdict]
    title = report.verdict.upper() if report.blame is None else blamed.TITLE[report.blame.conclusion]
    page.say(STYLE[mark], f"{page.symbols[mark]} {title}  {one_line(report.headline, 1000)}")
    facts = [counted(len(report.runs), "run"), f"{report.duration_ms / 1000:.1f} s", f"seed {report.seed}"]
    if report.interrupted:
        facts.append("interrupted: only what had finished is shown")
    separator = ", " if page.ascii_only else " · "
    page.say("bright_black", f"{one_line(report.command, 80)}: {separator.join(facts)}")


def _body(page: _Page, report: Report, limit: int) -> None:
    _scores(page, report)
    _repeats(page, report)
    if report.coverage is not None or report.findings:
        _found(page, report)
    else:
        _map(page, grid_of(report))
    _load(page, report)
    _tallies(page, report)
    if not report.findings:
        _broken(page, report, limit)


def _blame(page: _Page, found: Blaming) -> None:
    """Which step it was, and the curve."""
    page.gap()
    for line in blamed.lines(found):
        page.say("", line.lstrip(), indent=len(line) - len(line.lstrip()))
    page.gap()
    for line in blamed.curve_lines(found, ascii_only=page.ascii_only):
        page.say("", line)
    page.gap()


def _scores(page: _Page, report: Report) -> None:
    if report.scores:
        page.gap()
    width = max((len(one_line(name, 40)) for name in report.scores), default=0)
    for name, score in report.scores.items():
        full = scale_of(name, score)
        digits = 2 if full == 100 else 3
        value = score_text(name, score, report.headline)
        if score.low is not None and score.high is not None:
            value += f" [{score.low:.{digits}f}, {score.high:.{digits}f}]"
        counts = f"{score.passed} of {score.conclusive} passed"
        counts += f", {score.inconclusive} inconclusive" if score.inconclusive else ""
        counts += ", a critical invariant failed" if score.critical_failed else ""
        page.say("", f"{one_line(name, 40):<{width}}  {value}  ({counts})")


def _repeats(page: _Page, report: Report) -> None:
    """pass^k and the flake rate, where there was more than one trial."""
    for line in repeats_lines(report):
        page.say("", line)


def _load(page: _Page, report: Report) -> None:
    """How each level went: latencies and answers a second."""
    if report.load is None:
        return
    page.gap()
    rows = [HEAD, *load_rows(report.load)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for at, row in enumerate(rows):
        cells_ = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        page.say("" if at else "bold", "  ".join(cells_).rstrip())
    for line in load_lines(report.load):
        page.say("bright_black", line)


def _map(page: _Page, grid: Grid) -> None:
    """The heat map: scenarios down and invariants across, turned if only that fits, else as a list."""
    if not grid.rows or not grid.invariants:
        return
    page.gap()
    names = [one_line(row[0].scenario.name, 40) for row in grid.rows]
    heads = [one_line(invariant.id, 40) for invariant in grid.invariants]
    marks = [[(square.mark, f"{page.symbols[square.mark]} {square.rate}") for square in row] for row in grid.rows]
    turned = [list(column) for column in zip(*marks, strict=True)]
    if _columns(names, heads, marks) <= page.width:
        _table(page, "scenario", names, heads, marks)
    elif _columns(heads, names, turned) <= page.width:
        _table(page, "invariant", heads, names, turned)
    else:
        for name, row in zip(names, marks, strict=True):
            page.say("bold", name)
            for head, (mark, text) in zip(heads, row, strict=True):
                page.say(STYLE[mark], f"{text}  {head}", indent=2)
    if line := intervals_line(grid):
        page.say("bright_black", line)


def _columns(names: list[str], heads: list[str], marks: list[list[tuple[Mark, str]]]) -> int:
    first = max(map(cells, (*names, "invariant")))
    return first + sum(2 + max(cells(head), *(cells(row[at][1]) for row in marks)) for at, head in enumerate(heads))


def _table(page: _Page, corner: str, names: list[str], heads: list[str], marks: list[list[tuple[Mark, str]]]) -> None:
    head = [("bright_black", text) for text in (corner, *heads)]
    rows = [[("", name), *((STYLE[mark], text) for mark, text in row)] for name, row in zip(names, marks, strict=True)]
    page.table([head, *rows])


def _broken(page: _Page, report: Report, limit: int) -> None:
    """The cells that did not pass, the worst first.

    Failures of one invariant in one scenario stand together; what was inconclusive in a scenario does too, because a
    run that cannot be judged (no fault fired, no agent) cannot be judged by any of its invariants.
    """
    runs = {run.id: run for run in report.runs}
    groups: dict[tuple[str, str], list[CellResult]] = {}
    for cell in worst_first(report.cells):
        groups.setdefault((cell.scenario, cell.invariant if cell.verdict == "fail" else ""), []).append(cell)
    for group in list(groups.values())[:limit]:
        page.gap()
        _cell(page, group, runs.get(group[0].run))
    if len(groups) > limit:
        page.gap()
        page.say(
            "bright_black", f"and {len(groups) - limit} more that did not pass; the HTML and JSON reports have them all"
        )
    if groups:
        page.gap()


def _cell(page: _Page, cells: list[CellResult], run: RunResult | None) -> None:
    cell, mark = cells[0], MARK[cells[0].verdict]
    count = len({cell.run for cell in cells})
    times = counted(count, "run")
    names = ", ".join(one_line(name, 60) for name in dict.fromkeys(cell.invariant for cell in cells))
    joint = "x" if page.ascii_only else "×"
    title = f"{one_line(cell.scenario, 60)} {joint} {one_line(names, 240)}"
    page.say(STYLE[mark], f"{page.symbols[mark]} {title}  ({cell.severity}, {times})")
    page.say("", one_line(cell.reason, 400), indent=2)
    if cell.also_fails_without_chaos:
        page.say("", "also fails without chaos: chaos is not the cause", indent=2)
    if cell.also_fails_unmutated:
        page.say("", "also fails unmutated: the mutation is not the cause", indent=2)
    if cell.unsteady:
        page.say("", "unsteady: equal runs of this prompt differ", indent=2)
    if run is None:
        return
    if cell.verdict == "fail":
        page.say("bright_black", f"prompt {run.prompt}: {one_line(run.input, 160)}", indent=2)
        if run.mutation is not None:
            page.say("bright_black", f"mutation: {mutated(run.mutation)}", indent=2)
        for at, turn in enumerate(run.turns[:-1], 1):
            page.say("bright_black", f"turn {at}: {one_line(turn.error or turn.output, 160)}", indent=2)
        said = f"output: {one_line(run.output, 240)}" if run.error is None else f"error: {one_line(run.error, 240)}"
        page.say("bright_black", said, indent=2)
    if run.planned or run.fired:
        page.say("bright_black", f"faults: {_faults(run)}", indent=2)
    if run.reproduce:
        page.command(unbroken(run.reproduce), indent=2)


def _faults(run: RunResult) -> str:
    fired = [one_line(f"{f.site} {f.mode}" + (f" ({f.detail})" if f.detail else ""), 160) for f in run.fired[:4]]
    if len(run.fired) > 4:
        fired.append(f"{len(run.fired) - 4} more")
    if not fired:
        seen = f"; tools seen: {one_line(', '.join(run.seen), 200)}" if run.seen else ""
        fired = [f"none of {run.planned} planned fired{seen}"]
    others = {"masked": run.masked, "impossible": run.impossible}
    return "; ".join([*fired, *(f"{name}: {_briefly(firings)}" for name, firings in others.items() if firings)])


def _briefly(firings: Sequence[Firing]) -> str:
    named = ", ".join(one_line(f"{firing.site} {firing.mode}", 80) for firing in firings[:4])
    return named + (f" and {len(firings) - 4} more" if len(firings) > 4 else "")


def _found(page: _Page, report: Report) -> None:
    """Of a search: what it found, each with the line that shows it again, and how much it covered."""
    for finding in report.findings:
        faults = " and ".join(f"{fault.site}={fault.fault}" for fault in finding.schedule)
        page.say("bold red", f"{page.symbols['fail']} {one_line(faults, 400)}")
        broken = f"breaks {one_line(finding.invariant, 80)} ({finding.severity})"
        page.say("", f"{broken}: {one_line(finding.reason, 400)}", indent=2)
        if finding.also:
            others = "; ".join(" and ".join(one) for one in finding.also)
            page.say("bright_black", f"so do {one_line(others, 400)}", indent=2)
        page.command(f"  {unbroken(finding.reproduce)}")
    if (covered := report.coverage) is not None:
        parts = [f"{getattr(covered, name)} of {covered.of[name]} {name}" for name in ("sites", "singles", "pairs")]
        page.say("bright_black", f"covered: {', '.join(parts)}; {covered.saved} runs saved by what was known")


def _tallies(page: _Page, report: Report) -> None:
    """The planned faults that did not fire in every run of their scenario."""
    for scenario in report.scenarios:
        for tally in scenario.tallies:
            if tally.fired == tally.runs:
                continue
            counts = {"masked": tally.masked, "impossible": tally.impossible, "idle": tally.idle}
            rest = ", ".join(f"{name} in {count}" for name, count in counts.items() if count)
            fault = f"{one_line(scenario.name, 40)}: {one_line(tally.fault, 120)}"
            page.say("bright_black", f"{fault} fired in {tally.fired} of {counted(tally.runs, 'run')}; {rest}")


def _can_encode(encoding: str) -> bool:
    try:
        "".join((*SYMBOL.values(), "×·…")).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
