"""One self-contained HTML page: verdict, scores, heat map, and on demand every run behind a cell.

Nothing is loaded from anywhere, and the page's own Content-Security-Policy forbids it: scripts and styles are allowed
by their hash only, so even markup that slipped through could not run. Agent text never becomes markup: what is in the
page at load is escaped by the template engine, and everything else travels once, as JSON, and is put on the page by the
script as text. Details are built when a cell is opened, so a page of thousands of cells opens at once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

import orjson
from markupsafe import Markup

from flakestorm.engine.events import CellResult, InvariantInfo, Report, RunResult, Score
from flakestorm.reports.actions import next_step
from flakestorm.reports.blamed import TITLE, lines, picture
from flakestorm.reports.excerpt import OUTPUT_CHARS, excerpt, exchange_view
from flakestorm.reports.files import below, write_whole
from flakestorm.reports.grid import Grid, Square, grid_of, scale_of, score_text, worst_first
from flakestorm.reports.loaded import HEAD, load_lines, load_rows
from flakestorm.reports.pages import environment, policy, source
from flakestorm.reports.repeats import repeats_lines
from flakestorm.reports.text import encodable, mutated, one_line, plain, unbroken, visible

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Exchanges", "prepare", "render", "write_html"]

Exchanges: TypeAlias = Callable[[RunResult], Sequence[Mapping[str, Any]]]
"""Gives a run's exchanges in the shape of `flakestorm-tape/1`'s `exchanges`; none where there is no tape."""

EXCHANGES_PER_RUN = 100
TIMELINES_BYTES = 24 * 1024 * 1024
"""Timelines stop being put in the page beyond this much, the worst runs first; the page then says so."""

BROKEN_LISTED = 12
_PARTS = ("report.css", "shared.js", "report.js")

_SYMBOL = {"pass": "✓", "part": "◐", "fail": "✕", "open": "?", "none": "–"}
_WORD = {
    "pass": "passed",
    "part": "partly failed",
    "fail": "failed",
    "open": "inconclusive",
    "none": "does not apply",
}
_TITLE = {"pass": "Passed", "fail": "Failed", "inconclusive": "Inconclusive"}


def write_html(report: Report, path: Path | str, *, exchanges: Exchanges | None = None) -> Path:
    """Write the page (see `render`); the file is replaced in one step.

    Raises:
        Misuse: it cannot be written there; the message says why.
    """
    return write_whole(path, render(report, exchanges=exchanges, base=Path(path).parent).encode())


def render(report: Report, *, exchanges: Exchanges | None = None, base: Path | str | None = None) -> str:
    """The page.

    Args:
        exchanges: gives the exchanges of a run for its timeline; without it there are none. A tape that cannot be read
            costs its timeline only: the page shows the error in its place.
        base: the folder the page will lie in; tapes below it are named relative to it.
    """
    grid = grid_of(report)
    style, *scripts = map(source, _PARTS)
    script = "".join(scripts)
    page = (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            repeats=[] if report.blame else list(repeats_lines(report)),
            load=[] if report.load is None else [HEAD, *load_rows(report.load)],
            load_lines=[] if report.load is None else load_lines(report.load),
            blamed=None if report.blame is None else list(lines(report.blame)),
            curve=Markup("" if report.blame is None else picture(report.blame)),  # noqa: S704 - numbers and our own words
            grid=grid,
            broken=_broken(grid, report),
            broken_listed=BROKEN_LISTED,
            title=_TITLE[report.verdict] if report.blame is None else TITLE[report.blame.conclusion].capitalize(),
            policy=policy(style, script),
            style=Markup(style),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own file
            data=Markup(_json(_data(report, grid, exchanges, base))),  # noqa: S704 - escaped by _json
        )
    )
    return encodable(page)


def prepare() -> None:
    """Get ready what `render` needs whatever the report; worth the while where there is time to wait for."""
    _environment().get_template("report.html.j2")
    for name in _PARTS:
        source(name)


def _data(report: Report, grid: Grid, exchanges: Exchanges | None, base: Path | str | None) -> dict[str, Any]:
    """What the script needs, each thing once; cells refer to runs, scenarios and invariants by index."""
    runs = {run.id: at for at, run in enumerate(report.runs)}
    timelines = _timelines(report, exchanges)
    return {
        "scenarios": [
            {"name": s.name, "shown": visible(s.name), "faults": [*map(visible, s.faults)]}
            for s in (row[0].scenario for row in grid.rows if row)
        ],
        "invariants": [
            {
                "id": i.id,
                "shown": visible(i.id),
                "about": [visible(part) for part in (i.severity, i.type, _when(i), i.description) if part],
            }
            for i in grid.invariants
        ],
        "cells": [
            [row, column, cell.prompt, cell.trial, cell.verdict, visible(cell.reason), runs.get(cell.run, -1),
             int(cell.also_fails_without_chaos) + 2 * int(cell.also_fails_unmutated)]
            for row, squares in enumerate(grid.rows)
            for column, square in enumerate(squares)
            for cell in square.cells
        ],
        "runs": [_run(run, timelines.get(run.id), base) for run in report.runs],
        "timelines": exchanges is not None,
    }  # fmt: skip


def _when(invariant: InvariantInfo) -> str:
    return "" if invariant.when == "always" else f"when {invariant.when}"


def _run(run: RunResult, timeline: dict[str, Any] | None, base: Path | str | None) -> dict[str, Any]:
    return {
        "id": visible(run.id),
        "scenario": visible(run.scenario),
        "prompt": run.prompt,
        "trial": run.trial,
        "input": excerpt(run.input, OUTPUT_CHARS),
        "turns": [
            [excerpt(turn.input, OUTPUT_CHARS), excerpt(turn.error or turn.output, OUTPUT_CHARS)] for turn in run.turns
        ],
        "mutation": mutated(run.mutation),
        "output": excerpt(run.output, OUTPUT_CHARS),
        "error": None if run.error is None else excerpt(run.error, OUTPUT_CHARS),
        "latency_ms": run.latency_ms,
        "planned": run.planned,
        "fired": [[str(f.site), visible(f.mode), visible(f.detail)] for f in run.fired],
        **{
            name: [[str(f.site), visible(f.mode), visible(f.detail)] for f in firings]
            for name, firings in (("masked", run.masked), ("impossible", run.impossible), ("idle", run.idle))
        },
        "calls": run.calls,
        "seen": [*map(visible, run.seen)],
        "tape": visible(below(run.tape, base)),
        "reproduce": unbroken(run.reproduce),
        "timeline": timeline,
    }


def _timelines(report: Report, exchanges: Exchanges | None) -> dict[str, dict[str, Any]]:
    """Exchanges of as many runs as fit, those with failing cells first."""
    if exchanges is None:
        return {}
    runs = {run.id: run for run in report.runs}
    worst = dict.fromkeys(cell.run for cell in worst_first(report.cells))
    found: dict[str, dict[str, Any]] = {}
    room = TIMELINES_BYTES
    for run in (runs[id_] for id_ in dict.fromkeys((*worst, *runs)) if id_ in runs):
        if room <= 0:
            found[run.id] = {"exchanges": [], "left_out": "this page is full; the timeline is on the run's tape"}
            continue
        timeline = _timeline(run, exchanges)
        room -= len(_json(timeline))
        found[run.id] = timeline
    return found


def _timeline(run: RunResult, exchanges: Exchanges) -> dict[str, Any]:
    try:
        found = exchanges(run)
        shown = [exchange_view(exchange) for exchange in found[:EXCHANGES_PER_RUN]]
    except Exception as error:  # a damaged tape must not cost the whole report
        return {"exchanges": [], "left_out": f"the tape cannot be shown: {one_line(str(error), 300)}"}
    beyond = len(found) - len(shown)
    return {"exchanges": shown, "left_out": f"{beyond} more on the tape" if beyond else ""}


def _broken(grid: Grid, report: Report) -> list[tuple[Square, CellResult, RunResult | None]]:
    """Squares that did not pass, the worst first, each with its first such cell and that cell's run."""
    runs = {run.id: run for run in report.runs}
    squares = {(s.scenario.name, s.invariant.id): s for s in grid.squares}
    first: dict[tuple[str, str], CellResult] = {}
    for cell in worst_first(report.cells):
        first.setdefault((cell.scenario, cell.invariant), cell)
    return [(squares[key], cell, runs.get(cell.run)) for key, cell in first.items()]


@cache
def _environment() -> Environment:
    made = environment(_bytecode_folder())
    made.filters |= {"unbroken": unbroken, "mutated": mutated}
    made.filters |= {"label": _label, "firings": _firings, "address": _address}
    made.globals |= {"next_step": next_step, "symbol": _SYMBOL, "gauge": _gauge, "duration": _duration}
    return made


def _bytecode_folder() -> str | None:
    """Compiled templates lie where Python keeps the bytecode of this module; nowhere where it may keep none.

    Compiling the page takes longer than filling it. Who can write there can change the module itself just as well.
    """
    folder = Path(cache_from_source(__file__)).parent
    if sys.dont_write_bytecode or not os.access(folder, os.W_OK):
        return None
    return str(folder)


def _label(square: Square) -> str:
    """A cell in words, for those who cannot see it."""
    said = f"{square.scenario.name}, {square.invariant.id}: {_WORD[square.mark]}"
    if square.conclusive:
        said += f", {square.evidence}"
    if square.inconclusive and square.conclusive:
        said += f", {square.inconclusive} inconclusive"
    if square.unsteady:
        said += ", unsteady: equal runs of a prompt here differ"
    return visible(f"{said}, {square.invariant.severity}")


def _address(square: Square) -> str:
    """The link that opens this cell; the script makes the same one."""
    return "#cell=" + "/".join(quote(encodable(name), safe="") for name in (square.scenario.name, square.invariant.id))


def _firings(run: RunResult) -> str:
    return "; ".join(f"{f.site} {f.mode}" + (f" ({f.detail})" if f.detail else "") for f in run.fired[:4]) + (
        f" and {len(run.fired) - 4} more" if len(run.fired) > 4 else ""
    )


def _gauge(name: str, score: Score, headline: str) -> dict[str, Any]:
    """A score as text, and as positions of 0..100 on its scale."""
    full = scale_of(name, score)
    digits = 2 if full == 100 else 3

    def say(number: float | None) -> str:
        return "no data" if number is None else f"{number:.{digits}f}"

    def place(number: float | None) -> float:
        return 0.0 if number is None else round(min(max(number / full, 0.0), 1.0) * 100, 2)

    return {
        "value": score_text(name, score, headline),
        "full": full,
        "range": None if score.low is None or score.high is None else (say(score.low), say(score.high)),
        "at": None if score.value is None else place(score.value),
        "low": place(score.low),
        "width": max(place(score.high) - place(score.low), 0.5),
    }


def _duration(ms: float) -> str:
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000:.0f} min {ms % 60_000 / 1000:.0f} s"


_UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in, whatever its strings hold."""
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate in a name, an integer beyond 64 bits
        text = json.dumps(plain(value))
    return text.translate(_UNSAFE)
