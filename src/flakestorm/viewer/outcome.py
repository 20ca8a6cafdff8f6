"""What came of a command that a page had started, read from what it printed and wrote.

A command's own output comes last on stdout; what an agent in its process printed may stand before it, so the end is
looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from flakestorm.viewer.orders import SESSION

__all__ = ["Outcome", "of_fork", "of_shrink"]

_MOST = 64 * 1024 * 1024
_FORKED = b'{\n  "format": "flakestorm-fork/1"'
_COUNTED = re.compile(r"^(\d+) -> (\d+) faults in (\d+) runs; breaks (.*)$", re.MULTILINE)
_SHOWN = re.compile(r"^id: ['\"]?shrunk-([\w.-]+)", re.MULTILINE)


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
    text = _read(printed)
    with suppress(orjson.JSONDecodeError):
        found = orjson.loads(text[begin:]) if (begin := text.rfind(_FORKED)) >= 0 else {}
        if isinstance(found, dict) and isinstance(found.get("tape"), str):
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
    return None


def of_shrink(printed: Path) -> Outcome | None:
    """Of `flakestorm shrink -o SESSION`; None where nothing was found.

    Args:
        printed: the file of its stdout; the session lies beside it, and its tapes beside that.
    """
    text = _read(printed).decode("utf-8", "replace")
    counted = [*_COUNTED.finditer(text)]
    line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    if not counted or not line.startswith("flakestorm run "):
        return None
    before, after, runs, broken = counted[-1].groups()
    session = printed.parent / SESSION
    shown = _SHOWN.search(_read(session).decode("utf-8", "replace"))
    tape = session.with_suffix(".tapes") / f"{shown[1]}.tape" if shown else None
    said = {"Breaks": broken, "Faults": f"{before} before, {after} now", "Runs": runs}
    return Outcome(said, tape if tape is not None and tape.is_file() else None, reproduce=line)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes() if file.stat().st_size <= _MOST else b""
    except OSError:
        return b""
