"""The same report as Markdown, for a job's summary page or a comment on a change.

Nothing of what an agent, a model or a tool said is Markdown here: every character that could mean something stands as
an HTML entity, commands stand in fences longer than any in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from flakestorm.engine.events import CellResult, PhaseResult, Report, RunResult, Score
from flakestorm.reports.grid import Grid, grid_of, intervals_line, scale_of, score_text, worst_first
from flakestorm.reports.loaded import HEAD, load_lines, load_rows
from flakestorm.reports.repeats import repeats_lines
from flakestorm.reports.text import counted, mutated, one_line, unbroken, untold, visible

__all__ = ["LISTED", "markdown"]

LISTED = 20
"""How many squares of the map that did not pass are told in full."""

MAP_CELLS = 1_500
"""A map with more squares than this is left out: what shows Markdown has limits (GitHub: 1 MiB for a summary)."""

_SYMBOL = {"pass": "✅", "part": "⚠️", "fail": "❌", "open": "❔", "none": "–"}
_VERDICT = {"pass": "✅ Pass", "fail": "❌ Fail", "inconclusive": "❔ Inconclusive"}
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#+!|~&:@$=)]|\.(?=\w)|^[^a-zA-Z]")


def markdown(report: Report) -> str:
    """The report as GitHub-flavoured Markdown."""
    parts = [
        f"## {_VERDICT[report.verdict]}: flakestorm {_safe(one_line(report.command, 80))}",
        _safe(one_line(report.headline, 1000)),
        *_phases(report.phases),
        *_scores(report.scores, report.headline),
        *_repeats(report),
        *_load(report),
        *_map(grid_of(report)),
        *_broken(report),
        *(f"> {_safe(one_line(note, 1000))}" for note in untold(report.notes, report.headline)[:LISTED]),
        _facts(report),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(report: Report) -> str:
    facts = [counted(len(report.runs), "run"), f"{report.duration_ms / 1000:.1f} s", f"seed {report.seed}"]
    if report.interrupted:
        facts.append("interrupted: only what had finished is shown")
    return f"{', '.join(facts)}"


def _phases(phases: tuple[PhaseResult, ...]) -> Iterator[str]:
    if not phases:
        return
    rows = [
        f"| {p.name} | {_VERDICT[p.verdict] if p.status == 'done' else p.status} | {p.weight:g} | "
        f"{_safe(one_line(p.headline, 300))} |"
        for p in phases
    ]
    yield "\n".join(["| phase | verdict | weight | why |", "|---|---|---:|---|", *rows])


def _scores(scores: Mapping[str, Score], headline: str) -> Iterator[str]:
    if not scores:
        return
    rows = []
    for name, score in scores.items():
        full = scale_of(name, score)
        digits = 2 if full == 100 else 3
        value = score_text(name, score, headline)
        interval = (
            "" if score.low is None or score.high is None else f"{score.low:.{digits}f} to {score.high:.{digits}f}"
        )
        critical = ", a critical invariant failed" if score.critical_failed else ""
        counts = f"{score.passed} of {score.conclusive} passed, {score.inconclusive} inconclusive{critical}"
        rows.append(f"| {_safe(one_line(name, 40))} | {value} | {interval} | {counts} |")
    yield "\n".join(["| score | value | 95% interval | evidence |", "|---|---:|---|---|", *rows])


def _repeats(report: Report) -> Iterator[str]:
    lines = [f"- {_safe(line)}" for line in repeats_lines(report)]
    if lines:
        yield "\n".join(lines)


def _load(report: Report) -> Iterator[str]:
    if report.load is None:
        return
    rows = ["| " + " | ".join(row) + " |" for row in (HEAD, *load_rows(report.load))]
    yield "\n".join([rows[0], "|---" * len(HEAD) + "|", *rows[1:]])
    yield "\n".join(f"- {_safe(line)}" for line in load_lines(report.load))


def _map(grid: Grid) -> Iterator[str]:
    if not grid.rows or not grid.invariants:
        return
    if len(grid.rows) * len(grid.invariants) > MAP_CELLS:
        yield f"The map of {len(grid.rows)} x {len(grid.invariants)} is in the HTML report."
        return
    head = " | ".join(_safe(one_line(invariant.id, 80)) for invariant in grid.invariants)
    rows = [
        f"| {_safe(one_line(row[0].scenario.name, 80))} | "
        + " | ".join(f"{_SYMBOL[square.mark]} {square.rate}" for square in row)
        + " |"
        for row in grid.rows
    ]
    yield "\n".join([f"| scenario | {head} |", "|---" * (len(grid.invariants) + 1) + "|", *rows])
    if line := intervals_line(grid):
        yield _safe(line)


def _broken(report: Report) -> Iterator[str]:
    """The squares that did not pass, the worst first, each by its first such cell."""
    runs = {run.id: run for run in report.runs}
    first: dict[tuple[str, str], CellResult] = {}
    for cell in worst_first(report.cells):
        first.setdefault((cell.scenario, cell.invariant), cell)
    for cell in list(first.values())[:LISTED]:
        yield from _cell(cell, runs.get(cell.run))
    if len(first) > LISTED:
        yield f"and {len(first) - LISTED} more that did not pass; the HTML and JSON reports have them all"


def _cell(cell: CellResult, run: RunResult | None) -> Iterator[str]:
    symbol = _SYMBOL["fail" if cell.verdict == "fail" else "open"]
    also = " (also fails without chaos: chaos is not the cause)" if cell.also_fails_without_chaos else ""
    also += " (also fails unmutated: the mutation is not the cause)" if cell.also_fails_unmutated else ""
    yield (
        f"{symbol} **{_safe(one_line(cell.scenario, 80))} × {_safe(one_line(cell.invariant, 80))}** ({cell.severity}): "
        f"{_safe(one_line(cell.reason, 400))}{also}"
    )
    if run is None or cell.verdict != "fail":
        return
    said = f"output: {one_line(run.output, 240)}" if run.error is None else f"error: {one_line(run.error, 240)}"
    mutation = f"<br>mutation: {_safe(mutated(run.mutation))}" if run.mutation else ""
    turns = "".join(
        f"<br>turn {at}: {_safe(one_line(t.error or t.output, 160))}" for at, t in enumerate(run.turns[:-1], 1)
    )
    yield f"input: {_safe(one_line(run.input, 160))}{mutation}{turns}<br>{_safe(said)}"
    if run.reproduce:
        yield _fenced(unbroken(run.reproduce))


def _safe(text: str) -> str:
    """The text with every character that means something to Markdown or HTML as an entity."""
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", visible(text))


def _fenced(command: str) -> str:
    longest = max((len(run) for run in re.findall("`+", command)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}sh\n{command}\n{fence}"
