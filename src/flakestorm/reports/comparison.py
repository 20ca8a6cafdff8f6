"""The `flakestorm-compare/1` object: a `Comparison` as JSON, and that as text and as Markdown.

Text and Markdown are made of the document, so a comparison read back from the store or from a file shows the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from flakestorm.engine.compare import Comparison, Gauge, Key, Measure, Pair, Side, pair
from flakestorm.engine.events import RunResult
from flakestorm.errors import Misuse
from flakestorm.reports.files import below
from flakestorm.reports.text import counted, encodable, one_line, plain, visible
from flakestorm.version import __version__

__all__ = ["FORMAT", "dumps", "is_comparison", "markdown", "page", "pairs_of", "read", "text", "to_document"]

FORMAT = "flakestorm-compare/1"

LIMIT_BYTES = 512 * 1024 * 1024
SHOWN, ON_PAGE = 10, 200
"""How many pairs that differ are told in text, and on the page."""

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#+!|~&:@$=)]|^[^a-zA-Z]")
_TITLE = {"regression": "REGRESSION", "no regression": "NO REGRESSION", "inconclusive": "INCONCLUSIVE"}


def to_document(comparison: Comparison, *, base: Path | str | None = None) -> dict[str, Any]:
    """The comparison as a JSON-ready dict.

    Args:
        base: the folder the document will lie in; tapes below it are named relative to it.
    """
    ruling = comparison.ruling
    return {
        "format": FORMAT,
        "command": "compare",
        "conclusion": ruling.conclusion,
        "verdict": comparison.verdict,
        "exit_code": comparison.exit_code,
        "headline": ruling.headline,
        "alpha": comparison.alpha,
        "delta": comparison.delta,
        "seed": comparison.seed,
        "started_at": comparison.started_at,
        "duration_ms": comparison.duration_ms,
        "interrupted": comparison.interrupted,
        "stopped": comparison.stopped,
        "version": __version__,
        "config": comparison.head.config,
        "agent": comparison.head.agent,
        "base": asdict(comparison.base),
        "head": asdict(comparison.head),
        "pairs": {
            **{name: getattr(ruling.tally, name) for name in ("judged", "lost", "won", "tied", "unjudged")},
            "free": sum(each.free for each in comparison.pairs),
            "needed": ruling.needed,
        },
        "evidence": {
            "regression": _finite(ruling.regression),
            "improvement": _finite(ruling.improvement),
            "not_worse": _finite(ruling.not_worse),
            "needed": 1 / comparison.alpha,
        },
        "pass_rate": None if ruling.rates is None else {
            "base": _gauge(ruling.rates[0]),
            "head": _gauge(ruling.rates[1]),
            "difference": None if ruling.difference is None else {
                name: getattr(ruling.difference, name) for name in ("value", "low", "high")
            },
        },
        "invariants": [
            {
                "invariant": line.invariant, "severity": line.severity, "lost": line.tally.lost,
                "won": line.tally.won, "tied": line.tally.tied, "unjudged": line.tally.unjudged,
                "base_passed": line.base_kept, "head_passed": line.head_kept, "e_value": _finite(line.evidence),
                "p": line.p, "p_adjusted": line.adjusted, "worse": line.adjusted <= comparison.alpha,
            }
            for line in ruling.invariants
        ],
        "latency_ms": _measure(ruling.latency_ms),
        "tokens": _measure(ruling.tokens),
        "cost": _measure(ruling.cost),
        "pass_k": {
            side: [asdict(each) for each in ruling.pass_k[at]] for at, side in enumerate(("base", "head"))
        },
        "differing": [_pair(each) for each in comparison.pairs if each.newly or each.mended],
        "notes": list(comparison.notes),
        "scores": {},
        "runs": [run for each in comparison.pairs for run in _runs(each, base)],
        "cells": [cell for each in comparison.pairs for cell in _cells(each)],
    }  # fmt: skip


def dumps(document: Mapping[str, Any]) -> str:
    """The document as indented JSON, without a final newline; what UTF-8 cannot hold is replaced."""
    try:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # a lone surrogate, or an integer beyond 64 bits
        return json.dumps(plain(document), ensure_ascii=False, indent=2)


def is_comparison(document: Any) -> bool:
    """Whether this document says of itself that it is a comparison."""
    return isinstance(document, Mapping) and document.get("format") == FORMAT


def read(path: Path | str) -> dict[str, Any] | None:
    """The comparison in a file; None where the file is something else.

    Raises:
        Misuse: it is one, but it cannot be shown; the message names the file.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(LIMIT_BYTES + 1)
        document = json.loads(content) if FORMAT.encode() in content[:200] and len(content) <= LIMIT_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not is_comparison(document):
        return None
    try:
        text(document)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Misuse(f"{path}: not a valid {FORMAT}: {type(error).__name__}: {one_line(str(error), 200)}") from error
    return document


def pairs_of(document: Mapping[str, Any], *, base: Path | str = ".") -> list[Pair]:
    """The pairs of a comparison, to go on from.

    Args:
        base: the folder the document lay in; tapes it names relatively are found from there.

    Raises:
        Misuse: the document does not hold them.
    """
    try:
        verdicts: dict[str, dict[str, tuple[Any, Any]]] = {}
        for cell in document["cells"]:
            verdicts.setdefault(cell["run"], {})[cell["invariant"]] = cell["severity"], cell["verdict"]
        made: dict[Key, dict[str, Side]] = {}
        told: dict[Key, Mapping[str, Any]] = {}
        for run in document["runs"]:
            key = Key(run["scenario"], run["text"], run["trial"])
            made.setdefault(key, {})[run["side"]] = Side(_run(run, base), verdicts.get(run["id"], {}))
            told[key] = run
        return [
            replace(pair(key, sides["base"], sides["head"], free=told[key]["free"]), batch=told[key]["batch"])
            for key, sides in made.items()
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise Misuse(f"the comparison cannot be gone on from: {type(error).__name__}: {error}") from error


def _run(run: Mapping[str, Any], base: Path | str) -> RunResult:
    return RunResult(
        id=run["id"].partition("/")[2], scenario=run["scenario"], prompt=run["prompt"], trial=run["trial"],
        input=run["input"], output=run["output"], error=run["error"], latency_ms=run["latency_ms"], planned=0, fired=(),
        masked=(), calls={}, tape=str(Path(base, run["tape"])) if run["tape"] else "", reproduce=run["reproduce"],
        tokens=run["tokens"], cost=run["cost"],
    )  # fmt: skip


def text(document: Mapping[str, Any]) -> str:
    """The comparison for a terminal or a log, without colour."""
    return "\n".join(_lines(document))


def markdown(document: Mapping[str, Any]) -> str:
    """The comparison as GitHub-flavoured Markdown."""
    parts = [
        f"## {_TITLE[document['conclusion']].capitalize()}: flakestorm compare",
        _safe(document["headline"]),
        _safe(f"BASE {_named(document['base'])}; HEAD {_named(document['head'])}"),
        "\n".join(
            [
                "| invariant | severity | BASE | HEAD | lost | won | p (Holm) | |",
                "|---|---|---:|---:|---:|---:|---:|---|",
                *(
                    f"| {_safe(i['invariant'])} | {_safe(i['severity'])} | {i['base_passed']}/{_judged(i)} "
                    f"| {i['head_passed']}/{_judged(i)} | {i['lost']} | {i['won']} | {i['p_adjusted']:.3g} "
                    f"| {'worse' if i['worse'] else ''} |"
                    for i in document["invariants"]
                ),
            ]
        ),
        "\n".join(f"- {_safe(line)}" for line in (*_rates(document), *_measures(document), *_pass_k(document))),
        *(f"> {_safe(note)}" for note in document["notes"]),
        f"{_facts(document)}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def page(document: Mapping[str, Any]) -> str:
    """The comparison as one page that stands alone: no script, nothing fetched, everything an agent said escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

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
    rates = document["pass_rate"] or {}
    found = environment.get_template(
        "compare.html.j2"
    ).render(
        found=document,
        title=_TITLE[document["conclusion"]].capitalize(),
        facts=_facts(document),
        style=Markup(style),  # noqa: S704 - our own file
        policy=f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        versions=[(side, _named(document[side]), rates.get(side)) for side in ("base", "head")],
        lines=[*list(_rates(document))[2:], *_measures(document), *_pass_k(document)],
        limit=ON_PAGE,
    )
    return encodable(found)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"{_TITLE[document['conclusion']]}  {one_line(document['headline'], 1000)}"
    yield _facts(document)
    yield f"BASE  {one_line(_named(document['base']), 300)}"
    yield f"HEAD  {one_line(_named(document['head']), 300)}"
    yield ""
    yield from _rates(document)
    yield from _measures(document)
    yield from _pass_k(document)
    yield ""
    rows = [("INVARIANT", "SEVERITY", "BASE", "HEAD", "LOST", "WON", "P (HOLM)", "")]
    rows += [
        (one_line(i["invariant"], 40), str(i["severity"]), f"{i['base_passed']}/{_judged(i)}",
         f"{i['head_passed']}/{_judged(i)}", str(i["lost"]), str(i["won"]), f"{i['p_adjusted']:.3g}",
         "worse" if i["worse"] else "")
        for i in document["invariants"]
    ]  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for each in document["differing"][:SHOWN]:
        yield ""
        yield from _difference(each)
    if len(document["differing"]) > SHOWN:
        yield f"and {len(document['differing']) - SHOWN} more pairs that differ; the JSON document has them all"
    for note in document["notes"]:
        yield f"note: {one_line(note, 1000)}"


def _difference(each: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"{each['outcome']}: {one_line(each['scenario'], 60)}, trial {each['trial']}: {one_line(each['prompt'], 160)}"
    )
    for word, names in (("breaks", each["newly"]), ("mends", each["mended"])):
        if names:
            yield f"  HEAD {word} {one_line(', '.join(names), 240)}"
    yield f"  BASE said: {one_line(each['base_said'], 200)}"
    yield f"  HEAD said: {one_line(each['head_said'], 200)}"


def _facts(document: Mapping[str, Any]) -> str:
    pairs = document["pairs"]
    facts = [f"{counted(pairs['judged'], 'pair')} judged", f"{pairs['unjudged']} not", f"seed {document['seed']}"]
    facts += [f"{pairs['free']} free"] if pairs["free"] else []
    facts += [f"alpha {document['alpha']:g}", f"delta {document['delta']:g}", f"{document['duration_ms'] / 1000:.1f} s"]
    facts += ["interrupted: only what had finished is compared"] if document["interrupted"] else []
    facts += [f"the budget was reached ({one_line(document['stopped'], 60)})"] if document["stopped"] else []
    return f"compare: {', '.join(facts)}"


def _rates(document: Mapping[str, Any]) -> Iterator[str]:
    found = document["pass_rate"]
    if found is None:
        return
    for side in ("base", "head"):
        rate = found[side]
        yield (
            f"{side.upper()} passed {rate['passed']} of {rate['runs']} runs: {rate['value']:.3f} "
            f"[{rate['low']:.3f}, {rate['high']:.3f}]"
        )
    if found["difference"] is not None:
        yield f"HEAD minus BASE: {_interval(found['difference'], '+.3f')}"


def _measures(document: Mapping[str, Any]) -> Iterator[str]:
    for name, form, unit in (("latency_ms", ".1f", " ms"), ("tokens", ".0f", ""), ("cost", ".6f", " US dollars")):
        found = document[name]
        if found is not None:
            yield (
                f"{name.removesuffix('_ms')}: BASE {found['base']:{form}}, HEAD {found['head']:{form}}{unit}, "
                f"difference {_interval(found, '+' + form)} over {counted(found['pairs'], 'pair')}"
            )


def _interval(found: Mapping[str, Any], form: str) -> str:
    value = found["value"] if "value" in found else found["difference"]
    return f"{value:{form}} [{found['low']:{form}}, {found['high']:{form}}]"


def _pass_k(document: Mapping[str, Any]) -> Iterator[str]:
    for base, head in zip(document["pass_k"]["base"], document["pass_k"]["head"], strict=False):
        if base["k"] == head["k"] and (base["k"] <= 4 or base["k"] == 8):
            yield f"pass^{base['k']}: BASE {_spread(base)}, HEAD {_spread(head)} over {counted(base['tasks'], 'task')}"


def _spread(each: Mapping[str, Any]) -> str:
    return f"{each['value']:.3f} [{each['low']:.3f}, {each['high']:.3f}]"


def _named(side: Mapping[str, Any]) -> str:
    parts = [side["name"], side["kind"], side["commit"][:12], side["agent"]]
    return ", ".join(str(part) for part in parts if part)


def _judged(line: Mapping[str, Any]) -> int:
    return int(line["lost"] + line["won"] + line["tied"])


def _safe(words: object) -> str:
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", visible(one_line(str(words), 1000)))


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 1e300


def _gauge(gauge: Gauge) -> dict[str, Any]:
    return asdict(gauge)


def _measure(found: Measure | None) -> dict[str, Any] | None:
    if found is None:
        return None
    gap = found.difference
    return {
        "base": found.base, "head": found.head, "difference": gap.value, "low": gap.low, "high": gap.high,
        "pairs": found.pairs,
    }  # fmt: skip


def _pair(made: Pair) -> dict[str, Any]:
    return {
        "scenario": made.key.scenario,
        "prompt": made.key.prompt,
        "trial": made.key.trial,
        "outcome": made.how,
        "newly": list(made.newly),
        "mended": list(made.mended),
        "base_run": f"base/{made.base.run.id}",
        "head_run": f"head/{made.head.run.id}",
        "base_said": _said(made.base.run),
        "head_said": _said(made.head.run),
    }


def _said(run: RunResult) -> str:
    return run.output[:2000] if run.error is None else f"error: {run.error[:2000]}"


def _both(made: Pair) -> Sequence[tuple[str, Side]]:
    return (("base", made.base), ("head", made.head))


def _runs(made: Pair, base: Path | str | None) -> Iterator[dict[str, Any]]:
    for side, found in _both(made):
        run = found.run
        yield {
            "id": f"{side}/{run.id}",
            "side": side,
            "scenario": run.scenario,
            "prompt": run.prompt,
            "trial": run.trial,
            "text": made.key.prompt,
            "batch": made.batch,
            "free": made.free,
            "input": run.input,
            "output": run.output,
            "error": run.error,
            "latency_ms": run.latency_ms,
            "tokens": run.tokens,
            "cost": run.cost,
            "tape": below(run.tape, base),
            "reproduce": run.reproduce,
        }


def _cells(made: Pair) -> Iterator[dict[str, Any]]:
    for side, found in _both(made):
        for name, (severity, outcome) in found.verdicts.items():
            yield {
                "side": side,
                "scenario": made.key.scenario,
                "invariant": name,
                "severity": severity,
                "prompt": found.run.prompt,
                "trial": made.key.trial,
                "verdict": outcome,
                "run": f"{side}/{found.run.id}",
            }
