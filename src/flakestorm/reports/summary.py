"""The page of a `ci`: one verdict, the overall score, each phase with a link to its own report, and the trend.

Like every report it stands alone: no script, nothing fetched, everything an agent said escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from flakestorm.engine.events import Report, Score
from flakestorm.reports.files import below, write_whole
from flakestorm.reports.grid import scale_of, score_text
from flakestorm.reports.pages import source, still
from flakestorm.reports.text import encodable
from flakestorm.reports.trend import LAST, Point, curve

__all__ = ["render", "write_summary"]

WIDTH, HEIGHT = 640.0, 120.0
_SYMBOL = {"pass": "✓", "fail": "✕", "inconclusive": "?"}
_TITLE = {"pass": "Pass", "fail": "Fail", "inconclusive": "Inconclusive"}


def write_summary(report: Report, path: Path | str, *, history: Sequence[Point] = ()) -> Path:
    """Write the page; the file is replaced in one step.

    Raises:
        Misuse: it cannot be written there; the message says why.
    """
    return write_whole(path, render(report, history=history, base=Path(path).parent).encode())


def render(report: Report, *, history: Sequence[Point] = (), base: Path | str | None = None) -> str:
    """The page.

    Args:
        report: of a `ci`.
        history: earlier ones and this one, the oldest first.
        base: the folder the page will lie in; links below it are relative.
    """
    names = dict.fromkeys(n for point in history for n in ("overall", *point.scores))
    return still(
        "summary.html.j2",
        source("summary.css"),
        report=report,
        title=_TITLE[report.verdict],
        symbol=_SYMBOL,
        phases=[(each, None if each.score is None else _shown(each.name, each.score, each.headline),
                 _link(each.page, base)) for each in report.phases],
        overall=_shown("overall", report.scores["overall"], report.headline) if "overall" in report.scores else None,
        points=list(history)[-LAST:],
        curves=[(name, curve(history, name, width=WIDTH, height=HEIGHT)) for name in names],
        width=WIDTH,
        height=HEIGHT,
    )  # fmt: skip


def _shown(name: str, score: Score, headline: str) -> dict[str, str]:
    full = scale_of(name, score)
    digits = 2 if full == 100 else 3
    known = score.low is not None and score.high is not None
    interval = f"{score.low:.{digits}f} to {score.high:.{digits}f}" if known else ""
    counts = f"{score.passed} of {score.conclusive} passed, {score.inconclusive} inconclusive"
    return {"value": score_text(name, score, headline), "interval": interval, "counts": counts}


def _link(page: str, base: Path | str | None) -> str:
    """An address that leads to a file and nowhere else, whatever the path holds."""
    if not page:
        return ""
    near = Path(encodable(below(page, base)))
    return near.as_uri() if near.is_absolute() else f"./{quote(near.as_posix(), safe='/')}"
