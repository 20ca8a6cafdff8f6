"""The `flakestorm-compare/1` object: a `Comparison` as JSON, and its pairs back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from flakestorm.engine.compare import Comparison, Gauge, Key, Measure, Pair, Side, pair
from flakestorm.engine.events import RunResult
from flakestorm.errors import Misuse
from flakestorm.reports.comparison_text import text
from flakestorm.reports.files import below
from flakestorm.reports.text import one_line, plain
from flakestorm.version import __version__

__all__ = ["FORMAT", "dumps", "is_comparison", "pairs_of", "read", "to_document"]

FORMAT = "flakestorm-compare/1"

LIMIT_BYTES = 512 * 1024 * 1024


def to_document(comparison: Comparison, *, base: Path | str | None = None) -> dict[str, Any]:
    """The comparison as a JSON-ready dict.

    Args:
        base: the folder the document will lie in; tapes below it are named relative to it.
    """
    ruling = comparison.ruling
    return {
        "format": FORMAT,
        "command": "compare",
        "conclusion": ruling.conclusion,
        "verdict": comparison.verdict,
        "exit_code": comparison.exit_code,
        "headline": ruling.headline,
        "alpha": comparison.alpha,
        "delta": comparison.delta,
        "seed": comparison.seed,
        "started_at": comparison.started_at,
        "duration_ms": comparison.duration_ms,
        "interrupted": comparison.interrupted,
        "stopped": comparison.stopped,
        "version": __version__,
        "config": comparison.head.config,
        "agent": comparison.head.agent,
        "base": asdict(comparison.base),
        "head": asdict(comparison.head),
        "pairs": {
            **{name: getattr(ruling.tally, name) for name in ("judged", "lost", "won", "tied", "unjudged")},
            "free": sum(each.free for each in comparison.pairs),
            "needed": ruling.needed,
        },
        "evidence": {
            "regression": _finite(ruling.regression),
            "improvement": _finite(ruling.improvement),
            "not_worse": _finite(ruling.not_worse),
            "needed": 1 / comparison.alpha,
        },
        "pass_rate": None if ruling.rates is None else {
            "base": _gauge(ruling.rates[0]),
            "head": _gauge(ruling.rates[1]),
            "difference": None if ruling.difference is None else {
                name: getattr(ruling.difference, name) for name in ("value", "low", "high")
            },
        },
        "invariants": [
            {
                "invariant": line.invariant, "severity": line.severity, "lost": line.tally.lost,
                "won": line.tally.won, "tied": line.tally.tied, "unjudged": line.tally.unjudged,
                "base_passed": line.base_kept, "head_passed": line.head_kept, "e_value": _finite(line.evidence),
                "p": line.p, "p_adjusted": line.adjusted, "worse": line.adjusted <= comparison.alpha,
            }
            for line in ruling.invariants
        ],
        "latency_ms": _measure(ruling.latency_ms),
        "tokens": _measure(ruling.tokens),
        "cost": _measure(ruling.cost),
        "pass_k": {
            side: [asdict(each) for each in ruling.pass_k[at]] for at, side in enumerate(("base", "head"))
        },
        "differing": [_pair(each) for each in comparison.pairs if each.newly or each.mended],
        "notes": list(comparison.notes),
        "scores": {},
        "runs": [run for each in comparison.pairs for run in _runs(each, base)],
        "cells": [cell for each in comparison.pairs for cell in _cells(each)],
    }  # fmt: skip


def dumps(document: Mapping[str, Any]) -> str:
    """The document as indented JSON, without a final newline; what UTF-8 cannot hold is replaced."""
    try:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # a lone surrogate, or an integer beyond 64 bits
        return json.dumps(plain(document), ensure_ascii=False, indent=2)


def is_comparison(document: Any) -> bool:
    """Whether this document says of itself that it is a comparison."""
    return isinstance(document, Mapping) and document.get("format") == FORMAT


def read(path: Path | str) -> dict[str, Any] | None:
    """The comparison in a file; None where the file is something else.

    Raises:
        Misuse: it is one, but it cannot be shown; the message names the file.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(LIMIT_BYTES + 1)
        document = json.loads(content) if FORMAT.encode() in content[:200] and len(content) <= LIMIT_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not is_comparison(document):
        return None
    try:
        text(document)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Misuse(f"{path}: not a valid {FORMAT}: {type(error).__name__}: {one_line(str(error), 200)}") from error
    return document


def pairs_of(document: Mapping[str, Any], *, base: Path | str = ".") -> list[Pair]:
    """The pairs of a comparison, to go on from.

    Args:
        base: the folder the document lay in; tapes it names relatively are found from there.

    Raises:
        Misuse: the document does not hold them.
    """
    try:
        verdicts: dict[str, dict[str, tuple[Any, Any]]] = {}
        for cell in document["cells"]:
            verdicts.setdefault(cell["run"], {})[cell["invariant"]] = cell["severity"], cell["verdict"]
        made: dict[Key, dict[str, Side]] = {}
        told: dict[Key, Mapping[str, Any]] = {}
        for run in document["runs"]:
            key = Key(run["scenario"], run["text"], run["trial"])
            made.setdefault(key, {})[run["side"]] = Side(_run(run, base), verdicts.get(run["id"], {}))
            told[key] = run
        return [
            replace(
                pair(key, sides["base"], sides["head"], free=told[key]["free"]),
                batch=told[key]["batch"],
                replayed=told[key].get("replayed", 0),
            )
            for key, sides in made.items()
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise Misuse(f"the comparison cannot be gone on from: {type(error).__name__}: {error}") from error


def _run(run: Mapping[str, Any], base: Path | str) -> RunResult:
    return RunResult(
        id=run["id"].partition("/")[2], scenario=run["scenario"], prompt=run["prompt"], trial=run["trial"],
        input=run["input"], output=run["output"], error=run["error"], latency_ms=run["latency_ms"], planned=0, fired=(),
        masked=(), calls={}, tape=str(Path(base, run["tape"])) if run["tape"] else "", reproduce=run["reproduce"],
        tokens=run["tokens"], cost=run["cost"],
    )  # fmt: skip


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 1e300


def _gauge(gauge: Gauge) -> dict[str, Any]:
    return asdict(gauge)


def _measure(found: Measure | None) -> dict[str, Any] | None:
    if found is None:
        return None
    gap = found.difference
    return {
        "base": found.base, "head": found.head, "difference": gap.value, "low": gap.low, "high": gap.high,
        "pairs": found.pairs,
    }  # fmt: skip


def _pair(made: Pair) -> dict[str, Any]:
    return {
        "scenario": made.key.scenario,
        "prompt": made.key.prompt,
        "trial": made.key.trial,
        "outcome": made.how,
        "newly": list(made.newly),
        "mended": list(made.mended),
        "base_run": f"base/{made.base.run.id}",
        "head_run": f"head/{made.head.run.id}",
        "base_said": _said(made.base.run),
        "head_said": _said(made.head.run),
    }


def _said(run: RunResult) -> str:
    return run.output[:2000] if run.error is None else f"error: {run.error[:2000]}"


def _both(made: Pair) -> Sequence[tuple[str, Side]]:
    return (("base", made.base), ("head", made.head))


def _runs(made: Pair, base: Path | str | None) -> Iterator[dict[str, Any]]:
    for side, found in _both(made):
        run = found.run
        yield {
            "id": f"{side}/{run.id}",
            "side": side,
            "scenario": run.scenario,
            "prompt": run.prompt,
            "trial": run.trial,
            "text": made.key.prompt,
            "batch": made.batch,
            "free": made.free,
            "replayed": made.replayed,
            "input": run.input,
            "output": run.output,
            "error": run.error,
            "latency_ms": run.latency_ms,
            "tokens": run.tokens,
            "cost": run.cost,
            "tape": below(run.tape, base),
            "reproduce": run.reproduce,
        }


def _cells(made: Pair) -> Iterator[dict[str, Any]]:
    for side, found in _both(made):
        for name, (severity, outcome) in found.verdicts.items():
            yield {
                "side": side,
                "scenario": made.key.scenario,
                "invariant": name,
                "severity": severity,
                "prompt": found.run.prompt,
                "trial": made.key.trial,
                "verdict": outcome,
                "run": f"{side}/{found.run.id}",
            }
