"""Older forms of a tape file, brought to today's: one function per step, line by line, so old tapes stay lazily read.

To change the form: raise `lines.FILE` by one and add the step from the number before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flakestorm.tape.texts import from_json, to_json

__all__ = ["STEPS", "migrated"]


def _from_1(line: dict[str, Any]) -> dict[str, Any]:
    """Replies had one string per chunk, in `chunks`; now the body is one, and `sizes` are its chunks'."""
    return {name: _joined(part) if name in ("reply", "world") else part for name, part in line.items()}


def _joined(reply: Any) -> Any:
    if not isinstance(reply, dict):
        return reply
    chunks = reply.get("chunks")
    if not isinstance(chunks, list):
        raise ValueError("'chunks' must be a list")
    pieces = [from_json(chunk) for chunk in chunks]
    rest = {name: part for name, part in reply.items() if name != "chunks"}
    return {**rest, "body": to_json(b"".join(pieces)), "sizes": [len(piece) for piece in pieces]}


STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _from_1}
"""From this number to the next: what becomes of a line. Header and footer pass through the steps too."""


def migrated(line: dict[str, Any], form: int) -> dict[str, Any]:
    """A line of a file of this form, as one of today's.

    Args:
        form: the file's number; one that `STEPS` or `lines.FILE` knows.

    Raises:
        ValueError: the line is not of that form.
    """
    while form in STEPS:
        line, form = STEPS[form](line), form + 1
    return line
