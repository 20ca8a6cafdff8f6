"""The page of a `ci`: one verdict, the overall score, each phase with a link to its own report, and the trend.

Like every report it stands alone: no script, nothing fetched, everything an agent said escaped.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from flakestorm.engine.events import Report, Score
from flakestorm.reports.files import below, write_whole
from flakestorm.reports.grid import scale_of
from flakestorm.reports.text import encodable, one_line, visible
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
    environment = Environment(
        loader=PackageLoader("flakestorm.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"visible": visible, "line": one_line}
    style = files("flakestorm.reports").joinpath("templates", "summary.css").read_text(encoding="utf-8")
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    names = dict.fromkeys(n for point in history for n in ("overall", *point.scores))
    page = environment.get_template("summary.html.j2").render(
        report=report,
        title=_TITLE[report.verdict],
        symbol=_SYMBOL,
        style=Markup(style),  # noqa: S704 - our own file
        policy=f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        phases=[(phase, None if phase.score is None else _shown(phase.name, phase.score), _link(phase.page, base))
                for phase in report.phases],
        overall=_shown("overall", report.scores["overall"]) if "overall" in report.scores else None,
        points=list(history)[-LAST:],
        curves=[(name, curve(history, name, width=WIDTH, height=HEIGHT)) for name in names],
        width=WIDTH,
        height=HEIGHT,
    )  # fmt: skip
    return encodable(page)


def _shown(name: str, score: Score) -> dict[str, str]:
    digits = 2 if scale_of(name, score) == 100 else 3
    number = "no data" if score.value is None else f"{score.value:.{digits}f}"
    known = score.low is not None and score.high is not None
    interval = f"{score.low:.{digits}f} to {score.high:.{digits}f}" if known else ""
    counts = f"{score.passed} of {score.conclusive} passed, {score.inconclusive} inconclusive"
    return {"value": number, "interval": interval, "counts": counts}


def _link(page: str, base: Path | str | None) -> str:
    """An address that leads to a file and nowhere else, whatever the path holds."""
    if not page:
        return ""
    near = Path(encodable(below(page, base)))
    return near.as_uri() if near.is_absolute() else f"./{quote(near.as_posix(), safe='/')}"
