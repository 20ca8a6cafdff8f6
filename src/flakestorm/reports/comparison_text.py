"""A `flakestorm-compare/1` document for people: as text, as Markdown, and as a page.

All of them are made of the document, so a comparison read back from the store or from a file shows the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from flakestorm.reports.text import counted, one_line, visible

__all__ = ["markdown", "page", "text"]

SHOWN, ON_PAGE = 10, 200
"""How many pairs that differ are told in text, and on the page."""

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#+!|~&:@$=)]|^[^a-zA-Z]")
_TITLE = {"regression": "REGRESSION", "no regression": "NO REGRESSION", "inconclusive": "INCONCLUSIVE"}


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
    from flakestorm.reports.pages import source, still

    rates = document["pass_rate"] or {}
    return still(
        "compare.html.j2",
        source("summary.css"),
        found=document,
        title=_TITLE[document["conclusion"]].capitalize(),
        facts=_facts(document),
        versions=[(side, _named(document[side]), rates.get(side)) for side in ("base", "head")],
        lines=[*list(_rates(document))[2:], *_measures(document), *_pass_k(document)],
        limit=ON_PAGE,
    )


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
