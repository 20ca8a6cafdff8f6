"""The `flakestorm-report/1` object: a `Report` as JSON, and back.

The JSON form is public and stable, so it is spelled out here by hand and not derived from the dataclasses: renaming a
field in the engine must not rename a key in somebody's CI script. Reading is strict about what is there (every key the
report needs, with the right type) and lenient about what else is there, because later versions and other commands add
keys of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson
from msgspec import DecodeError
from msgspec.json import decode

from flakestorm.core.ledger import Firing
from flakestorm.core.site import Site
from flakestorm.engine.blamed import Blaming
from flakestorm.engine.events import CellResult, PhaseResult, Report, RunResult
from flakestorm.engine.repeats import reliability, repeated
from flakestorm.errors import Misuse
from flakestorm.reports.files import below, write_whole
from flakestorm.reports.text import one_line, plain

__all__ = ["FORMAT", "LIMIT_BYTES", "dumps", "from_document", "read_json", "to_document", "write_json"]

FORMAT = "flakestorm-report/1"

LIMIT_BYTES = 512 * 1024 * 1024
"""A file larger than this is refused unread: no report comes near it, and reading one takes several times its size."""


def to_document(report: Report, *, base: Path | str | None = None) -> dict[str, Any]:
    """The report as a JSON-ready dict, keys in the order of the published example.

    Args:
        base: the folder the document will lie in; tapes below it are named relative to it.
    """
    return {
        "format": FORMAT,
        "command": report.command,
        "verdict": report.verdict,
        "exit_code": report.exit_code,
        "headline": report.headline,
        "seed": report.seed,
        "started_at": report.started_at,
        "duration_ms": report.duration_ms,
        "interrupted": report.interrupted,
        "config": report.config,
        "agent": report.agent,
        "version": report.version,
        "scores": {name: asdict(score) for name, score in report.scores.items()},
        "notes": list(report.notes),
        "prompts": list(report.prompts),
        "scenarios": [
            {"name": s.name, "faults": list(s.faults), "tallies": [asdict(tally) for tally in s.tallies]}
            for s in report.scenarios
        ],
        "invariants": [asdict(invariant) for invariant in report.invariants],
        "cells": [_cell(cell) for cell in report.cells],
        "runs": [_run(run, base) for run in report.runs],
        "planned": report.planned,
        "stopped": report.stopped,
        "saved": report.saved,
        **_reliability(report),
        **({} if report.blame is None else {"blame": _blame(report.blame, base)}),
        **({} if report.load is None else {"load": asdict(report.load)}),
        **({} if report.pacing is None else {"pacing": asdict(report.pacing)}),
        **({"phases": [_phase(phase, base) for phase in report.phases]} if report.phases else {}),
        **_search(report),
    }


def dumps(report: Report, *, base: Path | str | None = None) -> str:
    """The document as indented JSON, without a final newline.

    Agent text may hold what UTF-8 cannot (a lone surrogate, from an escaped half of an emoji); it is replaced by
    U+FFFD then. Numbers JSON cannot hold (NaN, infinity) become null.
    """
    document = to_document(report, base=base)
    try:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # a lone surrogate, or an integer beyond 64 bits
        return json.dumps(plain(document), ensure_ascii=False, indent=2)


def write_json(report: Report, path: Path | str) -> Path:
    """Write the document; the file is replaced in one step, so a reader never sees half of it.

    Raises:
        Misuse: it cannot be written there; the message says why.
    """
    return write_whole(path, f"{dumps(report, base=Path(path).parent)}\n".encode())


def from_document(document: Mapping[str, Any], *, base: Path | str | None = None) -> Report:
    """The report such a document describes.

    Args:
        base: the folder the document lay in; tapes it names relatively are found from there.

    Raises:
        Misuse: it is not a `flakestorm-report/1`, or keys are missing or of the wrong type; the message names them.
    """
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, Mapping) else None
        said = f"its format is {one_line(str(found), 60)!r}" if found is not None else "it has no 'format'"
        raise Misuse(f"not a flakestorm report: {said}, expected {FORMAT!r}")
    try:
        report = decode(json.dumps(_reshaped(document), allow_nan=False), type=Report)
    except DecodeError as error:
        raise Misuse(f"not a valid {FORMAT}: {_placed(error)}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise Misuse(f"not a valid {FORMAT}: {one_line(str(error), 200)}") from error
    if base is None:
        return report

    def whole(path: str) -> str:
        return str(Path(base, path)) if path else path

    return replace(
        report,
        blame=None if report.blame is None else replace(report.blame, tape=whole(report.blame.tape)),
        runs=tuple(replace(run, tape=whole(run.tape)) for run in report.runs),
        phases=tuple(replace(p, report=whole(p.report), page=whole(p.page)) for p in report.phases),
    )


def read_json(path: Path | str) -> Report:
    """Read a report file written by `write_json`, by another version, or by a stranger.

    Raises:
        Misuse: the file cannot be read or is not a report; the message names the file and says why.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise Misuse(f"{path}: cannot be read: {error.strerror or error}; give the path of a JSON report") from error
    if len(content) > LIMIT_BYTES:
        raise Misuse(f"{path}: larger than {LIMIT_BYTES // 1024**2} MB; this is not a flakestorm report")
    try:
        document = json.loads(content, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Misuse(f"{path}: not a JSON report: {one_line(str(error), 200)}") from error
    try:
        return from_document(document, base=Path(path).parent)
    except Misuse as error:
        raise Misuse(f"{path}: {error}") from error


def _search(report: Report) -> dict[str, Any]:
    if report.coverage is None and not report.findings:
        return {}
    found: dict[str, Any] = {"findings": [asdict(finding) for finding in report.findings]}
    return found if report.coverage is None else {**found, "coverage": asdict(report.coverage)}


def _cell(cell: CellResult) -> dict[str, Any]:
    return {
        "scenario": cell.scenario,
        "invariant": cell.invariant,
        "severity": cell.severity,
        "prompt": cell.prompt,
        "trial": cell.trial,
        "verdict": cell.verdict,
        "reason": cell.reason,
        "run": cell.run,
        "also_fails_without_chaos": cell.also_fails_without_chaos,
        "min_pass_rate": cell.min_pass_rate,
        "unsteady": cell.unsteady,
        "also_fails_unmutated": cell.also_fails_unmutated,
    }


def _reliability(report: Report) -> dict[str, Any]:
    """What repeated trials say; worked out from the cells, so reading it back is not needed."""
    found = None if report.blame else reliability(repeated(report), saved=report.saved)
    if found is None:
        return {}
    flakes = None if found.flakes is None else asdict(found.flakes)
    return {"reliability": {"pass_k": [asdict(each) for each in found.pass_k], "flakes": flakes}}


def _blame(found: Blaming, base: Path | str | None) -> dict[str, Any]:
    """The step first, in a few keys; then all there is to know."""
    named = found.named
    return {
        "conclusion": found.conclusion,
        "site": None if named is None else named.event.site,
        "kind": None if named is None else named.event.kind,
        "jump": None if named is None else asdict(named.jump),
        "continuations": found.continuations,
        "curve": [list(point) for point in found.curve],
        **{key: value for key, value in asdict(found).items() if key not in ("conclusion", "continuations", "curve")},
        "tape": below(found.tape, base),
    }


def _phase(phase: PhaseResult, base: Path | str | None) -> dict[str, Any]:
    return {**asdict(phase), "report": below(phase.report, base), "page": below(phase.page, base)}


def _run(run: RunResult, base: Path | str | None) -> dict[str, Any]:
    return {
        "id": run.id,
        "scenario": run.scenario,
        "prompt": run.prompt,
        "trial": run.trial,
        "input": run.input,
        **({"turns": [asdict(turn) for turn in run.turns]} if run.turns else {}),
        **({} if run.mutation is None else {"mutation": asdict(run.mutation)}),
        "output": run.output,
        "error": run.error,
        "latency_ms": run.latency_ms,
        "faults": {
            "planned": run.planned,
            "fired": [_firing(firing) for firing in run.fired],
            "masked": [_firing(firing) for firing in run.masked],
            "impossible": [_firing(firing) for firing in run.impossible],
            "idle": [_firing(firing) for firing in run.idle],
        },
        "calls": dict(run.calls),
        "seen": list(run.seen),
        "canaries": [asdict(canary) for canary in run.canaries],
        "remarks": list(run.remarks),
        "tape": below(run.tape, base),
        "reproduce": run.reproduce,
        "tokens": run.tokens,
        "cost": run.cost,
        **({"refusals": [asdict(refusal) for refusal in run.refusals]} if run.refusals else {}),
    }


def _firing(firing: Firing) -> dict[str, Any]:
    return {
        "site": str(firing.site),
        "mode": firing.mode,
        "detail": firing.detail,
        "family": firing.family,
        "fault": firing.fault,
    }


_FAMILY = {"llm": "llm", "mcp": "mcp"}


def _reshaped(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its runs in the dataclass's own shape; anything odd is left for the reader to refuse."""
    if document.get("command") not in ("explore", "shrink"):  # what others call so is theirs
        document = {key: value for key, value in document.items() if key not in ("findings", "coverage")}
    if document.get("command") != "blame":
        document = {key: value for key, value in document.items() if key != "blame"}
    if document.get("command") not in ("load", "ci"):
        document = {key: value for key, value in document.items() if key != "load"}
    runs = document.get("runs")
    if not isinstance(runs, list):
        return dict(document)
    reshaped = [_reshaped_run(run, at) if isinstance(run, dict) else run for at, run in enumerate(runs)]
    return {**document, "runs": reshaped}


def _reshaped_run(run: dict[str, Any], at: int) -> dict[str, Any]:
    faults = run.get("faults")
    if not isinstance(faults, dict):
        raise ValueError(f"runs.{at}.faults: must be an object with 'planned', 'fired' and 'masked'")
    planned = faults.get("planned")
    return {
        **run,
        "planned": len(planned) if isinstance(planned, list) else planned,  # a count or a list, says the format
        "fired": _reshaped_firings(faults.get("fired"), f"runs.{at}.faults.fired"),
        "masked": _reshaped_firings(faults.get("masked"), f"runs.{at}.faults.masked"),
        "impossible": _reshaped_firings(faults.get("impossible", []), f"runs.{at}.faults.impossible"),
        "idle": _reshaped_firings(faults.get("idle", []), f"runs.{at}.faults.idle"),
    }


def _reshaped_firings(firings: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(firings, list):
        raise ValueError(f"{where}: must be a list")
    reshaped = []
    for at, firing in enumerate(firings):
        if not isinstance(firing, dict) or not isinstance(firing.get("site"), str):
            raise ValueError(f"{where}.{at}: must be an object with 'site' and 'mode'")
        try:
            site = Site.parse(firing["site"])
        except ValueError as error:
            raise ValueError(f"{where}.{at}.site: {error}") from error
        reshaped.append({"family": _FAMILY.get(site.kind, "tool"), **firing, "site": list(site)})
    return reshaped


def _placed(error: DecodeError) -> str:
    """The message with its place in front, written as elsewhere: `cells.3.severity: ...`."""
    message, _, place = str(error).partition(" - at `$")
    where = place.strip("`.").replace("[", ".").replace("]", "").strip(".")
    return f"{one_line(where, 120) or 'the document'}: {one_line(message, 200)}"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
