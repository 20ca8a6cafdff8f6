"""Two runs side by side: `flakestorm-diff/1`, lines of text, and a self-contained page."""

from __future__ import annotations

from typing import Any

import orjson

from flakestorm.tape.diff import Diff, Step
from flakestorm.tape.model import Exchange
from flakestorm.tape.text import answer_in, asked_in, plain

__all__ = ["FORMAT", "dumps", "page", "text", "to_document"]

FORMAT = "flakestorm-diff/1"
_SIGN = {"same": "=", "changed": "~", "missing": "-", "added": "+"}
_SHOWN = 4000


def to_document(found: Diff, a: str, b: str) -> dict[str, Any]:
    """As plain JSON values.

    Args:
        found: what differs.
        a, b: the tapes, as the user named them.
    """
    first = found.first
    return {
        "format": FORMAT,
        "equal": found.equal,
        "a": a,
        "b": b,
        "first": None if first is None else _step(first),
        "counts": {name: found.counts[name] for name in ("same", "changed", "missing", "added")},
        "steps": [_step(step) for step in found.steps],
    }


def dumps(found: Diff, a: str, b: str) -> str:
    """The document as text."""
    return orjson.dumps(to_document(found, a, b), option=orjson.OPT_INDENT_2).decode()


def text(found: Diff, a: str, b: str) -> str:
    """For a terminal: what changed first, and what followed."""
    lines = [f"a  {plain(a)}", f"b  {plain(b)}", ""]
    first = found.first
    for step in found.steps:
        mark = "  <- first" if step is first else ""
        told = f"  {', '.join(step.what)}" if step.what else ""
        lines.append(f"{_SIGN[step.outcome]} {plain(_place(step))}{told}{mark}")
        lines += [f"    {plain(detail)}" for detail in step.details]
        for name, exchange in (("a", step.a), ("b", step.b)):
            if step.outcome in ("missing", "added") and exchange is not None:
                lines.append(f"    {name}: {plain(asked_in(exchange))[:200]}")
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.counts.items()))
    said = "the same" if first is None else f"different, first at {plain(str(first.site))}"
    return "\n".join([*lines, "", f"{said} ({counts or 'both are empty'})"])


def page(found: Diff, a: str, b: str) -> str:
    """One page that loads nothing; what the tapes hold never becomes markup."""
    from flakestorm.reports.pages import source, still

    rows = [
        {
            "outcome": step.outcome,
            "sign": _SIGN[step.outcome],
            "place": _place(step),
            "first": step is found.first,
            "what": ", ".join(step.what),
            "details": step.details,
            "sides": [_shown(step.a), _shown(step.b)],
        }
        for step in found.steps
    ]
    first = found.first
    return still(
        "diff.html.j2",
        source("diff.css"),
        a=a,
        b=b,
        rows=rows,
        equal=found.equal,
        first=None if first is None else str(first.site),
        counts=found.counts,
    )


def _step(step: Step) -> dict[str, Any]:
    return {
        "outcome": step.outcome,
        "site": str(step.site),
        "a": None if step.a is None else str(step.a.site),
        "b": None if step.b is None else str(step.b.site),
        "what": list(step.what),
        "details": list(step.details),
    }


def _place(step: Step) -> str:
    """The site, and that of the second run where it is another one."""
    if step.a is None or step.b is None or step.a.site == step.b.site:
        return str(step.site)
    return f"{step.site} / {step.b.site}"


def _shown(exchange: Exchange | None) -> dict[str, str] | None:
    if exchange is None:
        return None
    reply = exchange.reply
    faults = ", ".join(f"{fault.mode}: {fault.detail}" for fault in exchange.faults)
    return {
        "asked": plain(asked_in(exchange))[:_SHOWN],
        "said": plain(answer_in(exchange, reply))[:_SHOWN],
        "status": str(reply.status or "no reply") + (" stream" if reply.stream else ""),
        "faults": faults,
    }
