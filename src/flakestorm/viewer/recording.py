"""A tape as the viewer reads it: an outline of all exchanges, and each exchange when it is asked for.

The outline is made in one pass, which checks the seals. Long request bodies are put together when they are asked for,
so thousands of exchanges take no more memory than their file. What was intact before a damaged line is shown, with what
is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flakestorm.errors import TapeDamaged
from flakestorm.reports.text import encodable, one_line, visible
from flakestorm.tape.model import Exchange
from flakestorm.tape.reader import Tape

__all__ = ["Line", "Recording"]


@dataclass(frozen=True, slots=True)
class Line:
    """One exchange in the outline.

    Args:
        exchange: the exchange itself.
        site: where it is.
        row: what a list shows of it.
    """

    exchange: Exchange
    site: str
    row: dict[str, Any]


@dataclass(slots=True)
class Recording:
    """An outlined tape.

    Args:
        path: the file.
        lines: its exchanges, in order of arrival.
        input, run: what the header says.
        output, error: what the footer says; `complete` is whether there is one.
        damage: what is wrong with the tape, empty if nothing.
        end_ms: when the last exchange ended.
    """

    path: Path
    lines: list[Line] = field(default_factory=list)
    input: str | None = None
    run: str = ""
    output: str = ""
    error: str | None = None
    complete: bool = False
    damage: str = ""
    end_ms: float = 0.0

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Outline a tape.

        Raises:
            TapeDamaged: it is no tape, or cannot be opened.
        """
        tape = Tape.open(path)
        run = tape.header.get("run")
        made = cls(path, input=tape.input, run=run if isinstance(run, str) else "")
        try:
            made._outline(tape)
        except (TapeDamaged, ValueError) as error:
            made.damage = one_line(str(error), 400)
        made.lines.sort(key=lambda line: line.exchange.n)
        made.end_ms = max((line.row["t_ms"] + line.row["duration_ms"] for line in made.lines), default=0.0)
        return made

    def exchange(self, at: int) -> Exchange:
        """The exchange at this place in order of arrival, from 0.

        Raises:
            TapeDamaged: there is none.
        """
        if not 0 <= at < len(self.lines):
            raise TapeDamaged(f"there is no exchange {at}; the tape has {len(self.lines)}")
        return self.lines[at].exchange

    def exchanges(self, begin: int = 0, end: int | None = None) -> Iterator[Exchange]:
        """Exchanges in order of arrival."""
        return (line.exchange for line in self.lines[begin:end])

    def _outline(self, tape: Tape) -> None:
        for exchange in tape:
            self.lines.append(_line(exchange))
        footer = tape.footer
        if footer is not None:
            self.output, self.error, self.complete = footer.output, footer.error, True


def _line(exchange: Exchange) -> Line:
    reply = exchange.reply
    row = {
        "site": visible(encodable(str(exchange.site))),
        "kind": exchange.kind,
        "lane": visible(exchange.lane),
        "status": reply.status,
        "end": reply.end,
        "chunks": len(reply.chunks) if reply.stream else 0,
        "bytes": sum(map(len, reply.chunks)),
        "faults": [one_line(f"{f.mode}: {f.detail}" if f.detail else f.mode, 120) for f in exchange.faults[:6]],
        "sent": exchange.sent,
        "t_ms": _time(exchange.t_ms),
        "duration_ms": _time(exchange.duration_ms),
    }
    return Line(exchange, str(exchange.site), row)


def _time(ms: float) -> float:
    """A tape may say anything; beyond some thirty years it is no time."""
    return ms if 0 <= ms < 1e12 else 0.0
