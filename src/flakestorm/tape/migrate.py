"""Older forms of a tape file, brought to today's: one function per step, line by line, so old tapes stay lazily read.

To change the form: raise `lines.FILE` by one and add the step from the number before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flakestorm.tape.texts import SMALL, from_json, to_json

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


def _from_2(line: dict[str, Any]) -> dict[str, Any]:
    """Texts had numbers from 512 bytes on; now shorter ones have too, unless they are said to stand there `once`."""
    line = {name: _unnumbered(part) if name in ("body", "world_body") else part for name, part in line.items()}
    for name in ("reply", "world"):
        if isinstance(reply := line.get(name), dict) and "body" in reply:
            line[name] = {**reply, "body": _unnumbered(reply["body"])}
    return line


def _unnumbered(body: Any) -> Any:
    if isinstance(body, dict) and "of" in body:
        parts = body.get("parts")
        if not isinstance(parts, list):
            return body
        copies = [part for part in parts if isinstance(part, list)]
        if not all(len(copy) == 2 and all(type(at) is int for at in copy) for copy in copies):
            raise ValueError("a part of a body must be text or [start, end]")
        new = sum(len(from_json(part)) for part in parts if not isinstance(part, list))
        length = new + sum(end - start for start, end in copies)
    elif isinstance(body, str):
        length = len(body) if len(body) >= 512 else len(body.encode())
    else:
        length = 0 if body is None else len(from_json(body))
    return {"once": body} if SMALL <= length < 512 else body


STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _from_1, 2: _from_2}
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
