"""How far a command is, for a program that started it: lines of JSON in a file that an environment variable names."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson

from flakestorm.engine.events import Event, Listener, Planned, Progressed, RunFinished

__all__ = ["VARIABLE", "asked_for"]

VARIABLE = "FLAKESTORM_PROGRESS"
"""Names the file. The viewer sets it; what a command starts does not see it."""


def asked_for(listener: Listener) -> Listener:
    """This listener, and where the environment asks for it, one that also writes `{"done", "planned", "said"}` lines.

    `done` and `planned` count runs; `said` is in words what the command is at, and may be empty.
    """
    name = os.environ.pop(VARIABLE, "")
    return _Lines(Path(name), listener) if name else listener


@dataclass(slots=True)
class _Lines:
    file: Path
    listener: Callable[[Event], None]
    done: int = 0
    planned: int = 0
    said: str = ""

    def __call__(self, event: Event) -> None:
        self.listener(event)
        if isinstance(event, Planned):
            self.planned = event.runs
        elif isinstance(event, Progressed):
            self.said = event.text
        elif isinstance(event, RunFinished):
            self.done += 1
        else:
            return
        with self.file.open("ab") as opened:
            opened.write(orjson.dumps({"done": self.done, "planned": self.planned, "said": self.said[:200]}) + b"\n")
