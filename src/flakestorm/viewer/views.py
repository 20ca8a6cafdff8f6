"""Saved reports as JSON for the pages: lists, one report with its heat map, the runs behind a cell, one run.

Every text that an agent, a model, a tool or a config could have written is made visible here. Names by which a page
asks again travel beside it as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from flakestorm.engine.events import CellResult, Score
from flakestorm.errors import Misuse
from flakestorm.reports.actions import next_step
from flakestorm.reports.document import from_document
from flakestorm.reports.excerpt import OUTPUT_CHARS, excerpt
from flakestorm.reports.grid import Grid, Square, scale_of, score_text, worst_first
from flakestorm.reports.text import encodable, one_line, unbroken, visible
from flakestorm.stats.intervals import in_places
from flakestorm.store.sqlite import Entry
from flakestorm.viewer.coverage import tried
from flakestorm.viewer.shelf import Saved

__all__ = ["cell_view", "entry_view", "report_view", "run_row", "run_view", "verdict_of"]

BROKEN = 50
"""Squares that did not pass that are listed; the heat map has them all."""

_WORD = {"pass": "passed", "part": "partly failed", "fail": "failed", "open": "inconclusive", "none": "does not apply"}


def entry_view(entry: Entry) -> dict[str, Any]:
    """A line of the list of reports."""
    return {
        "id": entry.id,
        "command": one_line(entry.command, 60),
        "config": one_line(entry.config, 200),
        "started_at": one_line(entry.started_at, 40),
        "verdict": entry.verdict,
        "done": entry.done,
        "runs": entry.runs,
        "scores": {one_line(name, 40): _in_short(name, entry.value(name)) for name in entry.scores},
    }


def report_view(saved: Saved, runs: Callable[[Sequence[str]], Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """A report's page.

    Args:
        saved: the report.
        runs: gives some of its runs, as documents; asked for those that are quoted.
    """
    head = saved.head
    return {
        "id": saved.id,
        "done": saved.done,
        "comparison": saved.report is None,
        **{
            name: one_line(str(head.get(name, "")), 200)
            for name in ("command", "verdict", "started_at", "config", "agent")
        },
        "headline": visible(str(head.get("headline", ""))) if saved.done else "Not finished: under way, or killed.",
        "interrupted": bool(head.get("interrupted")),
        "seed": one_line(str(head.get("seed", "")), 40),
        "duration_ms": _number(head.get("duration_ms")),
        "planned": head.get("planned") if isinstance(head.get("planned"), int) else None,
        "runs": len(saved.runs),
        "scores": []
        if saved.report is None
        else [_score(name, score, saved.report.headline) for name, score in saved.report.scores.items()],
        "notes": [visible(str(note)) for note in _items(head.get("notes"))],
        "phases": [_phase(phase) for phase in _items(head.get("phases")) if isinstance(phase, Mapping)],
        "grid": None if saved.grid is None else _grid(saved.grid),
        "broken": _broken(saved, runs),
        "findings": [_finding(each) for each in _items(head.get("findings"))[:500] if isinstance(each, Mapping)],
        "coverage": _coverage(head.get("coverage")),
        "tried": tried(saved, runs) if isinstance(head.get("coverage"), Mapping) else None,
        "blame": _blame(head.get("blame")),
    }


def cell_view(saved: Saved, scenario: str, invariant: str) -> tuple[dict[str, Any], list[CellResult]]:
    """A square of the heat map, and its cells: failures first, then inconclusive ones.

    Raises:
        Misuse: the report has no such scenario or invariant.
    """
    for square in () if saved.grid is None else saved.grid.squares:
        if (encodable(square.scenario.name), encodable(square.invariant.id)) == (scenario, invariant):
            rank = {"fail": 0, "inconclusive": 1, "pass": 2}
            cells = sorted(square.cells, key=lambda cell: (rank[cell.verdict], cell.prompt, cell.trial))
            about = square.invariant
            when = "" if about.when == "always" else f"when {about.when}"
            said = [visible(part) for part in (about.severity, about.type, when, about.description) if part]
            return {
                **_square(square),
                "scenario": visible(square.scenario.name),
                "invariant": visible(square.invariant.id),
                "faults": [*map(visible, square.scenario.faults)],
                "about": said,
            }, cells
    raise Misuse(f"report {saved.id} has no cell {scenario!r} x {invariant!r}")


def run_row(run: Mapping[str, Any], saved: Saved) -> dict[str, Any]:
    """A run in a list."""
    cells = saved.cells_of.get(str(run.get("id")), [])
    faults = run.get("faults") if isinstance(run.get("faults"), Mapping) else {}
    return {
        "id": str(run.get("id")),
        "shown": visible(str(run.get("id"))),
        "scenario": one_line(str(run.get("scenario", "")), 200),
        "prompt": run.get("prompt"),
        "trial": run.get("trial"),
        "input": one_line(str(run.get("input", "")), 200),
        "verdict": verdict_of(cells),
        "failed": [one_line(str(cell["invariant"]), 80) for cell in cells if cell.get("verdict") == "fail"][:6],
        "error": None if run.get("error") is None else one_line(str(run["error"]), 200),
        "planned": _count(faults.get("planned")) if faults else 0,
        "fired": _count(faults.get("fired")) if faults else 0,
        "latency_ms": _number(run.get("latency_ms")),
    }


def run_view(run: Mapping[str, Any], saved: Saved, *, taped: bool) -> dict[str, Any]:
    """A run's page, without what crossed its boundary."""
    faults = run["faults"] if isinstance(run.get("faults"), Mapping) else {}
    calls = run["calls"] if isinstance(run.get("calls"), Mapping) else {}
    mutation = run["mutation"] if isinstance(run.get("mutation"), Mapping) else {}
    return {
        **run_row(run, saved),
        "input": excerpt(str(run.get("input", "")), OUTPUT_CHARS),
        "output": excerpt(str(run.get("output") or ""), OUTPUT_CHARS),
        "error": None if run.get("error") is None else excerpt(str(run["error"]), OUTPUT_CHARS),
        "faults": {
            name: [_firing(each) for each in _items(faults.get(name)) if isinstance(each, Mapping)][:100]
            for name in ("fired", "masked", "impossible", "idle")
        },
        "calls": {one_line(str(kind), 40): _number(count) for kind, count in calls.items()},
        "seen": [one_line(str(name), 120) for name in _items(run.get("seen"))],
        "remarks": [visible(str(each)) for each in _items(run.get("remarks"))],
        "mutation": {one_line(str(key), 40): excerpt(str(value), 4000) for key, value in mutation.items()},
        "tokens": run.get("tokens") if isinstance(run.get("tokens"), int) else None,
        "cost": run.get("cost") if isinstance(run.get("cost"), int | float) else None,
        "reproduce": unbroken(str(run.get("reproduce", ""))),
        "cells": [
            {
                "invariant": encodable(str(cell.get("invariant"))),
                "shown": visible(str(cell.get("invariant"))),
                "scenario": encodable(str(cell.get("scenario"))),
                "severity": cell.get("severity"),
                "verdict": cell.get("verdict"),
                "reason": visible(str(cell.get("reason", ""))),
                "also": bool(cell.get("also_fails_without_chaos")),
            }
            for cell in saved.cells_of.get(str(run.get("id")), [])
        ],
        "taped": taped,
    }


def verdict_of(cells: Iterable[Mapping[str, Any]]) -> str:
    """What the cells of one run say together: a failure, else an inconclusive one, else a pass; empty without cells."""
    found = {cell.get("verdict") for cell in cells}
    return next((word for word in ("fail", "inconclusive", "pass") if word in found), "")


def _grid(grid: Grid) -> dict[str, Any]:
    return {
        "invariants": [
            {"id": encodable(i.id), "shown": visible(i.id), "severity": i.severity, "about": visible(i.description)}
            for i in grid.invariants
        ],
        "rows": [
            {
                "name": encodable(row[0].scenario.name),
                "shown": visible(row[0].scenario.name),
                "faults": [one_line(fault, 120) for fault in row[0].scenario.faults],
                "fired": [f"fired in {t.fired} of {t.runs}" for t in row[0].scenario.tallies],
                "squares": [_square(square) for square in row],
            }
            for row in grid.rows
            if row
        ],
    }


def _square(square: Square) -> dict[str, Any]:
    said = f"{square.scenario.name}, {square.invariant.id}: {_WORD[square.mark]}"
    counted = f", {square.evidence}" if square.conclusive else ""
    beyond = f", {square.inconclusive} inconclusive" if square.conclusive and square.inconclusive else ""
    return {
        "mark": square.mark,
        "low": square.mark == "part" and square.passed * 2 < square.conclusive,
        "rate": square.rate,
        "also": square.chaos_is_not_the_cause,
        "unsteady": square.unsteady,
        "label": visible(f"{said}{counted}{beyond}"),
    }


def _broken(saved: Saved, runs: Callable[[Sequence[str]], Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Squares that did not pass, the worst first, each with its first such cell and what to do next."""
    if saved.report is None or saved.grid is None:
        return []
    squares = {(square.scenario.name, square.invariant.id): square for square in saved.grid.squares}
    first: dict[tuple[str, str], CellResult] = {}
    for cell in worst_first(saved.report.cells):
        first.setdefault((cell.scenario, cell.invariant), cell)
    shown = list(first.items())[:BROKEN]
    documents = list(runs(sorted({cell.run for _, cell in shown})))
    known = {run.id: run for run in from_document({**saved.head, "cells": [], "runs": documents}).runs}
    return [
        {
            "scenario": encodable(cell.scenario),
            "invariant": encodable(cell.invariant),
            "shown": visible(f"{cell.scenario} × {cell.invariant}"),
            "severity": cell.severity,
            "verdict": cell.verdict,
            "reason": one_line(cell.reason, 400),
            "next": visible(next_step(squares[key], cell, known.get(cell.run))),
            "also": cell.also_fails_without_chaos,
        }
        for key, cell in shown
    ]


def _in_short(name: str, value: float | None) -> str | None:
    if value is None:
        return None
    full, places = (100.0, 1) if name == "contract" else (1.0, 3)
    return f"{in_places(value, places, full=full):.{places}f}"


def _score(name: str, score: Score, headline: str) -> dict[str, Any]:
    full = scale_of(name, score)
    places = 2 if full == 100 else 3
    return {
        "name": one_line(name, 40),
        "full": full,
        "value": score_text(name, score, headline),
        "data": score.value is not None,
        "range": None
        if score.low is None or score.high is None
        else [f"{n:.{places}f}" for n in (score.low, score.high)],
        "passed": score.passed,
        "conclusive": score.conclusive,
        "inconclusive": score.inconclusive,
        "critical_failed": score.critical_failed,
    }


def _phase(phase: Mapping[str, Any]) -> dict[str, str]:
    return {name: one_line(str(phase.get(name, "")), 300) for name in ("name", "status", "verdict", "headline")}


def _finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    schedule = [part for part in _items(finding.get("schedule")) if isinstance(part, Mapping)]
    return {
        "schedule": [one_line(f"{part.get('site', '')} {part.get('mode', '')}", 160) for part in schedule[:20]],
        "invariant": one_line(str(finding.get("invariant", "")), 160),
        "run": str(finding.get("run", "")),
        "reproduce": unbroken(str(finding.get("reproduce", ""))),
    }


def _blame(blame: Any) -> dict[str, Any] | None:
    """A blame with the points of its curve: how much was kept of the run, and how often it then failed."""
    if not isinstance(blame, Mapping):
        return None
    points = [p for p in _items(blame.get("curve")) if isinstance(p, list | tuple) and len(p) >= 4]
    return {
        "conclusion": one_line(str(blame.get("conclusion", "")).replace("_", " "), 60),
        "site": one_line(str(blame.get("site") or ""), 160),
        "kind": one_line(str(blame.get("kind") or ""), 40),
        "continuations": blame.get("continuations") if isinstance(blame.get("continuations"), int) else None,
        "curve": [[_number(number) for number in point[:4]] for point in points[:2000]],
    }


def _firing(firing: Mapping[str, Any]) -> dict[str, str]:
    return {name: excerpt(str(firing.get(name, "")), 600) for name in ("site", "mode", "detail")}


def _coverage(value: Any) -> dict[str, str] | None:
    """What a search covered, of how many there are."""
    if not isinstance(value, Mapping) or not isinstance(of := value.get("of"), Mapping):
        return _plain(value)
    shown = {key: f"{value[key]} of {of[key]}" for key in ("sites", "singles", "pairs") if key in value and key in of}
    return _plain({**shown, "complete": "yes" if value.get("complete") is True else "no"})


def _plain(value: Any) -> dict[str, str] | None:
    """A flat object of numbers and words, as another version may have written it."""
    if not isinstance(value, Mapping):
        return None
    return {one_line(str(key), 60): one_line(str(each), 200) for key, each in list(value.items())[:40]}


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _count(value: Any) -> int:
    return len(value) if isinstance(value, list) else int(_number(value))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e15 else 0.0
