"""How scores went from one saved report to the next, for each command and config."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from flakestorm.reports.text import one_line
from flakestorm.stats.intervals import in_places
from flakestorm.store.sqlite import Entry

__all__ = ["LAST", "trends"]

LAST = 100
"""How many of the newest reports a trend shows."""


def trends(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """One trend for each command and config that has two finished reports with scores, the busiest first.

    Args:
        entries: saved reports, the newest first.
    """
    gathered: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        if entry.done and entry.exit_code != 130 and entry.scores:
            gathered.setdefault((entry.command, PurePath(entry.config).name), []).append(entry)
    found = [_trend(command, config, each[:LAST][::-1]) for (command, config), each in gathered.items()]
    return sorted((trend for trend in found if trend["lines"]), key=lambda trend: -len(trend["points"]))


def _trend(command: str, config: str, entries: list[Entry]) -> dict[str, Any]:
    """Scores on one scale, 0..1, the oldest first; a line for each score that has two values."""
    names = dict.fromkeys(name for entry in entries for name in entry.scores)
    lines = {name: [_on_one_scale(name, entry.value(name)) for entry in entries] for name in names}
    return {
        "command": one_line(command, 60),
        "config": one_line(config, 120),
        "points": [{"id": e.id, "started_at": one_line(e.started_at, 40), "verdict": e.verdict} for e in entries],
        "lines": [
            {"name": one_line(name, 40), "values": values, "shown": list(map(_shown, values))}
            for name, values in lines.items()
            if sum(value is not None for value in values) > 1
        ],
    }


def _shown(value: float | None) -> str | None:
    return None if value is None else f"{in_places(value, 3):.3f}"


def _on_one_scale(name: str, value: float | None) -> float | None:
    return None if value is None else min(max(value / 100 if name == "contract" else value, 0.0), 1.0)
