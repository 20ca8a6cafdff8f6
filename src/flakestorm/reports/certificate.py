"""The certificate for people: what the signed statement says, on one page that stands alone.

It is made of the statement and nothing else, so page and envelope cannot say different things; the envelope in turn
holds the sha256 of the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flakestorm.reports.pages import source, still
from flakestorm.stats.intervals import in_places

__all__ = ["facts", "page", "rate", "score_line", "threshold_line"]

_SYMBOL = {"pass": "✓", "fail": "✕", "inconclusive": "?"}

_STYLE = """[data-fact] th, thead th { overflow-wrap: normal; }
@media (max-width: 40rem) { th, td { font-size: .85rem; padding-right: .5rem; } thead th { overflow-wrap: anywhere; } }
"""


def page(statement: Mapping[str, Any], *, keyid: str, envelope: str) -> str:
    """The page as HTML.

    Args:
        statement: as `statement.of` makes it.
        keyid: of the key that signs it.
        envelope: the name of the envelope's file, beside the page.
    """
    predicate = statement["predicate"]
    return still(
        "certificate.html.j2",
        source("summary.css") + _STYLE,
        p=predicate,
        subjects=statement["subject"],
        symbol=_SYMBOL,
        rate=rate,
        facts=facts(predicate),
        scores=[(name, score_line(name, score, predicate["threshold"])) for name, score in predicate["scores"].items()],
        threshold=threshold_line(predicate["threshold"]),
        keyid=keyid,
        envelope=envelope,
    )


def facts(predicate: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Who says this, and of what: label and value, in the order to be read."""
    scope, contract = predicate["scope"], predicate["contract"]
    found = [
        ("Tester", predicate["tester"]["name"] or "nobody is named (certificate.tester_name)"),
        ("Contract", contract["name"] or "none"),
        ("Command", f"{scope['command']}, {scope['config']}"),
        ("Agent", scope["agent"]),
        ("Runs", f"{scope['runs']} of {scope['planned'] or scope['runs']} planned, seed {scope['seed']}"),
        ("Made", f"{scope['started_at']}, in {scope['duration_ms'] / 1000:.1f} s"),
        ("Issued", predicate["issued_at"]),
        ("Tools", "; ".join(f"{t['name']} {t['version']} ({t['did']})" for t in predicate["tools"])),
    ]
    if scope["interrupted"] or scope["stopped"]:
        found.append(("Cut short", scope["stopped"] or "the command was interrupted"))
    return found


def score_line(name: str, score: Mapping[str, Any], held: Mapping[str, Any] | None) -> str:
    """A score with its interval and what it rests on.

    Args:
        name: of the score.
        score: as the statement has it.
        held: the statement's threshold; a score that missed it is told in all its digits.
    """
    digits = 2 if score["full"] == 100 else 3
    missed = held is not None and held["score"] == name and held["outcome"] == "fail"
    exact = 4 if missed and score["full"] == 1 else digits
    if score["value"] is None:
        return f"no data; {score['inconclusive']} inconclusive"
    value = in_places(score["value"], exact, full=score["full"])
    interval = "" if score["low"] is None else f", 95% interval {score['low']:.{digits}f} to {score['high']:.{digits}f}"
    return (
        f"{value:.{exact}f} of {score['full']}{interval}; {score['passed']} of {score['conclusive']} passed, "
        f"{score['inconclusive']} inconclusive" + ("; a critical invariant failed" if score["critical_failed"] else "")
    )


def threshold_line(held: Mapping[str, Any] | None) -> str:
    """How the score stands to the threshold; empty where there is none."""
    if held is None:
        return ""
    least = f"the least that is accepted is {held['least']:g} of 100"
    if held["outcome"] == "inconclusive":
        return f"cannot be judged: {least}, and there is no score of a whole campaign"
    words = "met" if held["outcome"] == "pass" else "not met"
    return f"{words}: {least}, and the {held['score']} score is {held['value']:g}"


def rate(square: Mapping[str, Any]) -> str:
    """A square of the matrix in words."""
    if not square["conclusive"]:
        return f"none of {square['inconclusive']} runs was conclusive"
    open_ = f", {square['inconclusive']} inconclusive" if square["inconclusive"] else ""
    return (
        f"{square['passed']} of {square['conclusive']} passed{open_} "
        f"(95% interval {square['low'] * 100:.0f}% to {square['high'] * 100:.0f}%)"
    )
