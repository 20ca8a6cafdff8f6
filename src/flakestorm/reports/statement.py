"""What a certificate says, as an in-toto Statement: the tapes it is about, and what was found out from them."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from flakestorm.engine.events import InvariantInfo, Report, Score
from flakestorm.reports.grid import Square, grid_of, scale_of
from flakestorm.reports.text import plain
from flakestorm.stats.intervals import wilson
from flakestorm.version import __version__

__all__ = ["PREDICATE_TYPE", "SCORES", "STATEMENT_TYPE", "Subject", "Terms", "of", "problems", "threshold"]

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://flakestorm.dev/certificate/v1"

SCORES = ("overall", "contract", "robustness", "chaos", "replay")
"""Which score a threshold is held against: the first of these that there is."""

Outcome = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Subject:
    """A tape.

    Args:
        run: whose it is.
        name: where it lies, as seen from the certificate's folder.
        sha256: of the file's bytes, in hexadecimal digits.
    """

    run: str
    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What the project's config says of a certificate.

    Args:
        tester: who vouches; None where nobody is named.
        pass_threshold: the least score, 0 to 100; None where there is none.
        contract, description: of the contract, where there is one.
        config: the file; config_sha256: of its bytes as they are now.
        notes: what a reader should know of it.
    """

    tester: str | None = None
    pass_threshold: float | None = None
    contract: str | None = None
    description: str = ""
    config: str = ""
    config_sha256: str = ""
    notes: Sequence[str] = ()


def of(report: Report, subjects: Sequence[Subject], terms: Terms, *, issued_at: str) -> dict[str, Any]:
    """The statement.

    Args:
        report: what was found out.
        subjects: the tapes, in the order of its runs.
        terms: the config's words.
        issued_at: now, UTC, ISO 8601.
    """
    named = {subject.run: subject.name for subject in subjects}
    held = threshold(report, terms.pass_threshold)
    predicate = {
        "issued_at": issued_at,
        "verdict": _verdict(report, held),
        "tester": {"name": terms.tester},
        "scope": {
            "command": report.command,
            "agent": report.agent,
            "config": report.config,
            "seed": report.seed,
            "started_at": report.started_at,
            "duration_ms": report.duration_ms,
            "prompts": len(report.prompts),
            "scenarios": len(report.scenarios),
            "runs": len(report.runs),
            "planned": report.planned,
            "interrupted": report.interrupted,
            "stopped": report.stopped,
            "phases": [{"name": p.name, "status": p.status, "verdict": p.verdict} for p in report.phases],
        },
        "contract": {
            "name": terms.contract,
            "description": terms.description,
            "config": terms.config,
            "config_digest": {"sha256": terms.config_sha256} if terms.config_sha256 else {},
            "invariants": [_invariant(report, each) for each in grid_of(report).invariants],
            "scenarios": [{"name": s.name, "faults": list(s.faults)} for s in report.scenarios],
        },
        "matrix": [_square(square) for square in grid_of(report).squares if square.cells],
        "scores": {name: {**asdict(s), "full": scale_of(name, s)} for name, s in report.scores.items()},
        "threshold": held,
        "judged": {"verdict": report.verdict, "headline": report.headline, "exit_code": report.exit_code},
        "notes": [*report.notes, *terms.notes],
        "runs": [
            {"id": r.id, "scenario": r.scenario, "prompt": r.prompt, "trial": r.trial, "tape": named.get(r.id)}
            for r in report.runs
        ],
        "tools": [
            {"name": "flakestorm", "version": report.version, "did": "the runs"},
            {"name": "flakestorm", "version": __version__, "did": "this certificate"},
            {"name": "python", "version": platform.python_version(), "did": "this certificate"},
        ],
    }
    found: dict[str, Any] = plain(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": s.name, "digest": {"sha256": s.sha256}} for s in subjects],
            "predicateType": PREDICATE_TYPE,
            "predicate": predicate,
        }
    )
    return found


def threshold(report: Report, least: float | None) -> dict[str, Any] | None:
    """How the report's score stands to the least that is accepted; None where nothing is asked for.

    Args:
        least: 0 to 100, whatever the score's own scale.
    """
    if least is None:
        return None
    name = next((name for name in SCORES if name in report.scores), None)
    value = None if name is None else _of_hundred(name, report.scores[name])
    outcome: Outcome = "inconclusive"
    whole = not (report.interrupted or report.stopped or report.saved)  # a score of some trials only is another one
    if value is not None and whole:
        outcome = "pass" if value >= least else "fail"
    return {"least": least, "score": name, "value": value, "outcome": outcome}


def problems(statement: Any) -> str | None:
    """Why this is not such a statement, in words; None where it is one."""
    if not isinstance(statement, Mapping) or statement.get("_type") != STATEMENT_TYPE:
        return f"its payload is not an in-toto Statement ({STATEMENT_TYPE})"
    if statement.get("predicateType") != PREDICATE_TYPE:
        return f"its statement is not a flakestorm certificate ({PREDICATE_TYPE})"
    subjects = statement.get("subject")
    if not isinstance(subjects, list) or not subjects or not all(map(_is_subject, subjects)):
        return "its statement names no tapes with their sha256"
    return None if isinstance(statement.get("predicate"), Mapping) else "its statement has no predicate"


def _is_subject(subject: Any) -> bool:
    if not isinstance(subject, Mapping):
        return False
    digest = subject.get("digest")
    return (
        isinstance(digest, Mapping) and isinstance(digest.get("sha256"), str) and isinstance(subject.get("name"), str)
    )


def _verdict(report: Report, held: Mapping[str, Any] | None) -> Outcome:
    """The worse of what was judged and what the threshold says; what was cut short never passes."""
    said: set[Outcome] = {report.verdict} | ({held["outcome"]} if held else set())
    if "fail" in said:
        return "fail"
    cut_short = report.interrupted or report.stopped
    return "pass" if said == {"pass"} and not cut_short else "inconclusive"


def _of_hundred(name: str, score: Score) -> float | None:
    return None if score.value is None else round(score.value / scale_of(name, score) * 100, 4)


def _invariant(report: Report, invariant: InvariantInfo) -> dict[str, Any]:
    rates = sorted({cell.min_pass_rate for cell in report.cells if cell.invariant == invariant.id})
    return {**asdict(invariant), "min_pass_rate": rates[0] if len(rates) == 1 else None}


def _square(square: Square) -> dict[str, Any]:
    low, high = wilson(square.passed, square.conclusive) or (None, None)
    return {
        "scenario": square.scenario.name,
        "invariant": square.invariant.id,
        "severity": square.invariant.severity,
        "passed": square.passed,
        "conclusive": square.conclusive,
        "inconclusive": square.inconclusive,
        "low": low,
        "high": high,
        "also_fails_without_chaos": square.chaos_is_not_the_cause,
    }
