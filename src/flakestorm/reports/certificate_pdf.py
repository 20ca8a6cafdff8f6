"""The certificate for people as PDF; the same words as the page, from the same statement. Needs the extra `pdf`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any
from xml.sax.saxutils import escape

from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

from flakestorm.reports.certificate import facts, rate, score_line, threshold_line
from flakestorm.reports.text import one_line

__all__ = ["pdf"]

_COLOR = {"pass": "#1a7f37", "fail": "#b42318", "inconclusive": "#8250df"}
_BODY = ParagraphStyle("body", fontName="Helvetica", fontSize=9, leading=12, splitLongWords=1, wordWrap="CJK")
_HEAD = ParagraphStyle("head", _BODY, fontName="Helvetica-Bold", fontSize=11, leading=15, spaceBefore=10)
_BIG = ParagraphStyle("big", _BODY, fontName="Helvetica-Bold", fontSize=20, leading=26)
_MONO = ParagraphStyle("mono", _BODY, fontName="Courier", fontSize=7, leading=9)
_GRID = TableStyle(
    [("VALIGN", (0, 0), (-1, -1), "TOP"), ("LINEBELOW", (0, 0), (-1, -1), 0.3, HexColor("#d5dae0")),
     ("LEFTPADDING", (0, 0), (-1, -1), 0)]
)  # fmt: skip


def pdf(statement: Mapping[str, Any], *, keyid: str, envelope: str) -> bytes:
    """The certificate as a PDF file.

    Args:
        statement: as `statement.of` makes it.
        keyid: of the key that signs it.
        envelope: the name of the envelope's file, beside this one.
    """
    p = statement["predicate"]
    verdict = ParagraphStyle("verdict", _BIG, textColor=HexColor(_COLOR[p["verdict"]]))
    held = threshold_line(p["threshold"])
    scores = [(name, score_line(name, score, p["threshold"])) for name, score in p["scores"].items()] or [
        ("", "no data")
    ]
    story = [
        _text("flakestorm certificate"),
        _text(p["verdict"].capitalize(), verdict),
        _text(p["judged"]["headline"]),
        Spacer(1, 4 * mm),
        _table(facts(p), (30, 140)),
        *([_text(p["contract"]["description"])] if p["contract"]["description"] else []),
        _text("Scores", _HEAD),
        _table([*scores, *([("threshold", held)] if held else [])], (30, 140)),
        _text("Invariants", _HEAD),
        _table([(i["id"], i["type"], i["severity"], i["description"]) for i in p["contract"]["invariants"]],
               (40, 30, 20, 80)),
        _text("Matrix", _HEAD),
        _table([(s["scenario"], s["invariant"], rate(s)) for s in p["matrix"]], (45, 45, 80)),
        *([_text("Notes", _HEAD), *map(_text, p["notes"])] if p["notes"] else []),
        _text("Evidence", _HEAD),
        _text(f"It says what happened in these {len(p['runs'])} runs and nothing about others. Signed in {envelope} "
              f"with the key {keyid}; `flakestorm certificate verify {envelope}` checks signature, page and tapes."),
        _table([(s["name"], s["digest"]["sha256"]) for s in statement["subject"]], (70, 100), _MONO),
    ]  # fmt: skip
    out = BytesIO()
    SimpleDocTemplate(
        out, pagesize=A4, leftMargin=20 * mm, rightMargin=20 * mm, topMargin=18 * mm, bottomMargin=18 * mm,
        title=f"Certificate: {p['verdict']}", author="flakestorm", lang="en",
    ).build(story)  # fmt: skip
    return out.getvalue()


def _table(rows: Sequence[Sequence[str]], widths_mm: Sequence[float], style: ParagraphStyle = _BODY) -> Any:
    if not rows:
        return _text("none", style)
    cells = [[_text(value, style) for value in row] for row in rows]
    return Table(cells, colWidths=[width * mm for width in widths_mm], style=_GRID, hAlign="LEFT")


def _text(value: str, style: ParagraphStyle = _BODY) -> Any:
    """Text as text, whatever it holds; what the PDF's standard fonts lack is shown as its escape."""
    line = one_line(value, 2000)
    return Paragraph(escape(line.encode("cp1252", "backslashreplace").decode("cp1252")), style)
