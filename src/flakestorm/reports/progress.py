"""How far a command is: a bar of runs on a terminal, while it is at work.

`rich` is imported when a bar is drawn, and the summary (`terminal.py`) when there is one, because commands that draw
none should not pay for it.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from flakestorm.engine.events import Event, Finished, Note, Planned, Progressed, RunFinished
from flakestorm.reports.text import one_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["NOTE_INDENT", "Progress", "is_terminal", "note_lines", "wants_color"]

NOTE_INDENT = 6
"""Columns by which the further lines of a note stand in."""


class Progress:
    """A bar of runs on a terminal; silent elsewhere. A listener of engine events, and a context that takes it down.

    Args:
        stream: where to draw (standard error, so that output stays clean).
        enabled: False for no bar and no notes, even on a terminal.
        color: as for `summary`.
    """

    def __init__(self, *, stream: TextIO | None = None, enabled: bool = True, color: bool = True) -> None:
        self._out = sys.stderr if stream is None else stream
        self._enabled = enabled
        self._shown = enabled and is_terminal(self._out)
        self._color = color and wants_color(self._out)
        self._bar: Any = None
        self._errors = self._hit = 0
        self._mutated = False
        self._told = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note) and self._enabled:
            self._say("\n".join(note_lines(event.text)))
        elif not self._shown:
            return
        elif isinstance(event, Planned):
            self._open(event)
        elif isinstance(event, Progressed) and self._bar is not None:
            self._told = one_line(event.text, 100)
            self._bar.update(0, description=self._counts())
        elif isinstance(event, RunFinished) and self._bar is not None:
            self._errors += event.run.error is not None
            self._hit += bool(event.run.fired)
            self._mutated = self._mutated or event.run.mutation is not None
            self._bar.update(0, advance=1, description=self._counts())
        elif isinstance(event, Finished):
            self.close()

    def close(self) -> None:
        """Take the bar down. Nothing happens if there is none."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.stop()

    def _open(self, event: Planned) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self.close()
        self._errors = self._hit = 0
        self._bar = Bar(
            TextColumn(one_line(event.command, 40), markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=self._console(),
            transient=True,
        )
        self._bar.add_task("", total=event.runs)
        self._bar.start()

    def _counts(self) -> str:
        if self._told:
            return self._told
        hit = f"{self._hit} hit by chaos" if self._hit or not self._mutated else "mutated"
        return hit + (f", {self._errors} without an answer" if self._errors else "")

    def _say(self, text: str) -> None:
        if self._bar is None:
            encoding = getattr(self._out, "encoding", None) or "utf-8"
            self._out.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        else:
            self._bar.console.print(text, markup=False, highlight=False, emoji=False)

    def _console(self) -> Console:
        from rich.console import Console

        return Console(file=self._out, no_color=not self._color, highlight=False)


def note_lines(text: str) -> list[str]:
    """The lines of a note: further ones, such as the last words of a program, are indented and so forge nothing."""
    first, *more = text.splitlines() or [""]
    return [f"note: {one_line(first, 1000)}", *(" " * NOTE_INDENT + one_line(line, 400) for line in more[:20])]


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody watches."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # not a file, or closed
        return False


def wants_color(stream: TextIO) -> bool:
    """Whether colour is welcome there."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
