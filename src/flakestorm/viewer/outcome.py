"""What came of a command that a page had started, read from what it printed.

A command's own output comes last on stdout; what an agent in its process printed may stand before it, so the end is
looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from flakestorm.errors import Misuse
from flakestorm.reports.document import LIMIT_BYTES, from_document

__all__ = ["Outcome", "of_fork", "of_shrink"]

_FORKED = b'{\n  "format": "flakestorm-fork/1"'
_SHRUNK = b'{\n  "format": "flakestorm-report/1"'


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is shown of it.

    Args:
        said: facts, by what they are about.
        tape: the tape it made; None where there is none.
        output, error: how the agent ended; None where that is not told.
        reproduce: a command line that shows it again.
    """

    said: Mapping[str, str] = field(default_factory=dict)
    tape: Path | None = None
    output: str | None = None
    error: str | None = None
    reproduce: str = ""


def of_fork(printed: Path) -> Outcome | None:
    """Of `flakestorm fork --format json`; None where it made none.

    Args:
        printed: the file of its stdout.
    """
    found = _last(printed, _FORKED)
    if not isinstance(found.get("tape"), str):
        return None
    live, unanswered = ([str(each) for each in found.get(key) or ()] for key in ("live", "unanswered"))
    served = found.get("served")
    said = {
        "Environment": f"{found.get('environment')}: {found.get('why')}",
        "Answered by the tape": f"{served} call{'' if served == 1 else 's'}",
        "Called for real": ", ".join(live) or "nothing",
        "Not on the tape": ", ".join(unanswered),
    }
    error = found.get("error")
    ended = (str(found.get("output") or ""), None if error is None else str(error))
    return Outcome(said, Path(found["tape"]), *ended)


def of_shrink(printed: Path) -> Outcome | None:
    """Of `flakestorm shrink --format json`; None where nothing was found.

    Args:
        printed: the file of its stdout.
    """
    try:
        report = from_document(_last(printed, _SHRUNK))
    except Misuse:
        return None
    if not report.findings or not report.runs:
        return None
    finding = report.findings[0]
    tape = next((run.tape for run in report.runs if run.id == finding.run), "")
    said = {
        "Breaks": f"{finding.invariant}: {finding.reason}",
        "Faults": f"{report.runs[0].planned} before, {len(finding.schedule)} now",  # it is run as it was given first
        "Runs": str(len(report.runs)),
    }
    return Outcome(said, Path(tape) if tape else None, reproduce=finding.reproduce)


def _last(printed: Path, begins: bytes) -> dict[str, Any]:
    """The document that begins so and comes last; empty where there is none."""
    with suppress(OSError, orjson.JSONDecodeError):
        text = printed.read_bytes() if printed.stat().st_size <= LIMIT_BYTES else b""
        found = orjson.loads(text[begin:]) if (begin := text.rfind(begins)) >= 0 else {}
        return found if isinstance(found, dict) else {}
    return {}
