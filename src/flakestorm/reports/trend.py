"""How scores went from one `ci` to the next: the line on the summary page and the one at the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flakestorm.core.record import Record

__all__ = ["LAST", "Point", "curve", "line"]

LAST = 20
"""How many of the newest are shown."""

_BARS = "▁▂▃▄▅▆▇█"


class Point(Record, frozen=True):
    """One `ci`.

    Args:
        started_at, verdict: as in the report.
        scores: by name (`overall`, `chaos`, ...), each on a scale of 0..1.
    """

    started_at: str
    verdict: str
    scores: Mapping[str, float]


def line(points: Sequence[Point], name: str = "overall", *, bars: bool = True) -> str:
    """One score's way in one line, e.g. `overall ▃▅▆ 0.61 -> 0.74 (last 3, +0.04)`; empty for fewer than two points.

    Args:
        points: the oldest first.
        name: which score.
        bars: whether the reader can show block characters.
    """
    values = [point.scores[name] for point in points if name in point.scores][-LAST:]
    if len(values) < 2:
        return ""
    drawn = "".join(_BARS[min(int(max(value, 0.0) * 8), 7)] for value in values) + " " if bars else ""
    change = values[-1] - values[-2]
    return f"{name} {drawn}{values[0]:.3f} -> {values[-1]:.3f} (last {len(values)}, {change:+.3f})"


def curve(points: Sequence[Point], name: str, *, width: float, height: float) -> list[tuple[float, float]]:
    """One score's way as places on a canvas of this size, the oldest left, 1 at the top; only where it has a value."""
    shown = list(points)[-LAST:]
    step = width / max(len(shown) - 1, 1)
    return [
        (round(at * step, 2), round((1 - min(max(point.scores[name], 0.0), 1.0)) * height, 2))
        for at, point in enumerate(shown)
        if name in point.scores
    ]
