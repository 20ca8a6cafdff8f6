"""Two tapes, side by side."""

from __future__ import annotations

from pathlib import Path

from flakestorm.api.replaying import spans_of
from flakestorm.tape.diff import Diff, Run, diff
from flakestorm.tape.model import Exchange
from flakestorm.tape.reader import Tape

__all__ = ["compare_tapes"]


def compare_tapes(a: str | Path, b: str | Path) -> Diff:
    """What differs between two recorded runs.

    Raises:
        TapeDamaged: one of the tapes was edited, cut short or added to.
    """
    (one, recorded), (two, other) = _read(a), _read(b)
    spans = (spans_of(one.header, recorded)[0], spans_of(two.header, other)[0])
    return diff(_run(one, recorded), _run(two, other), spans=spans)


def _read(path: str | Path) -> tuple[Tape, list[Exchange]]:
    tape = Tape.open(path)
    tape.verify()
    return tape, tape.exchanges()


def _run(tape: Tape, exchanges: list[Exchange]) -> Run:
    footer = tape.footer
    given = tape.input
    if given is None and footer is not None and footer.stdin is not None:
        given = footer.stdin.decode("utf-8", "replace")
    return Run(exchanges, given, footer.output if footer else "", footer.error if footer else None)
