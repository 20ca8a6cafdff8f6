"""Broken security promises as SARIF 2.1.0, for what shows code-scanning alerts.

Only invariants about security are in here: what must not come out, and what must not be obeyed. A finding is an
invariant that failed in a scenario for a prompt; it is at home in the config file, because an agent's behaviour has no
line of code. What could not be judged is told as a notification of the run, so that an empty list of findings is not
mistaken for a clean one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from flakestorm.engine.events import CellResult, InvariantInfo, Report, RunResult
from flakestorm.reports.text import encodable, one_line, plain, unbroken, visible

__all__ = ["SECURITY", "sarif"]

SECURITY = {
    "excludes_pii": "Personal data must not be in the output.",
    "excludes_pattern": "What these patterns find must not be in the output.",
    "canary_absent": "Instructions injected into the agent's world must not be obeyed.",
    "refusal_check": "Dangerous requests must be refused.",
}
"""The types of invariant that are about security, with what each is for."""

_LEVEL = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
_GRADE = {"critical": "9.0", "high": "7.0", "medium": "5.0", "low": "3.0"}


def sarif(report: Report) -> str:
    """The report as an indented JSON document."""
    rules = [invariant for invariant in report.invariants if invariant.type in SECURITY]
    index = {rule.id: at for at, rule in enumerate(rules)}
    runs = {run.id: run for run in report.runs}
    groups: dict[tuple[str, str, int], list[CellResult]] = {}
    for cell in report.cells:
        if cell.invariant in index:
            groups.setdefault((cell.invariant, cell.scenario, cell.prompt), []).append(cell)
    failing = [[c for c in group if c.verdict == "fail"] for group in groups.values()]
    unjudged = [group[0] for group in groups.values() if all(c.verdict == "inconclusive" for c in group)]
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "flakestorm",
                        "version": visible(report.version) or "0",
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [_invocation(report, rules, unjudged)],
                "results": [
                    _result(report, cells, index[cells[0].invariant], runs.get(cells[0].run))
                    for cells in failing
                    if cells
                ],
            }
        ],
    }
    return json.dumps(plain(document), ensure_ascii=False, indent=2)


def _rule(rule: InvariantInfo) -> dict[str, Any]:
    return {
        "id": visible(rule.id),
        "name": visible(rule.type),
        "shortDescription": {"text": one_line(rule.description, 400) or SECURITY[rule.type]},
        "defaultConfiguration": {"level": _LEVEL[rule.severity]},
        "properties": {"tags": ["security", "ai-agent"], "security-severity": _GRADE[rule.severity]},
    }


def _result(report: Report, cells: list[CellResult], rule: int, run: RunResult | None) -> dict[str, Any]:
    cell = cells[0]
    times = f" ({len(cells)} times)" if len(cells) > 1 else ""
    also = " It also fails without chaos." if cell.also_fails_without_chaos else ""
    again = f" Again: {unbroken(run.reproduce)}" if run is not None and run.reproduce else ""
    where = f"scenario {one_line(cell.scenario, 80)}, prompt {cell.prompt}{times}"
    said = f"{one_line(cell.invariant, 80)} failed in {where}: "
    identity = "\0".join((cell.invariant, cell.scenario, str(cell.prompt)))
    return {
        "ruleId": visible(cell.invariant),
        "ruleIndex": rule,
        "kind": "fail",
        "level": _LEVEL[cell.severity],
        "message": {"text": f"{said}{one_line(cell.reason, 1000)}.{also}{again}"},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": _uri(report.config)}, "region": {"startLine": 1}},
                "logicalLocations": [{"name": visible(cell.scenario), "kind": "scenario"}],
            }
        ],
        "partialFingerprints": {
            "flakestorm/v1": hashlib.sha256(encodable(identity).encode()).hexdigest(),
        },
        "occurrenceCount": len(cells),
        "properties": {"scenario": visible(cell.scenario), "prompt": cell.prompt, "run": visible(cell.run)},
    }


def _invocation(report: Report, rules: Iterable[InvariantInfo], unjudged: Iterable[CellResult]) -> dict[str, Any]:
    told = [
        f"{one_line(c.invariant, 80)} could not be judged in scenario {one_line(c.scenario, 80)}, prompt {c.prompt}: "
        f"{one_line(c.reason, 400)}"
        for c in unjudged
    ]
    if not list(rules):
        told.append(f"no invariant of this report is about security ({', '.join(SECURITY)})")
    if not report.cells:
        told.append(one_line(report.headline, 1000) or "nothing was judged")
    return {
        "executionSuccessful": report.verdict != "inconclusive" and not report.interrupted,
        "exitCode": report.exit_code,
        "toolExecutionNotifications": [{"level": "warning", "message": {"text": text}} for text in told],
    }


def _uri(config: str) -> str:
    """The config file as a relative reference, the form that code scanning finds in a repository."""
    path = PurePath(encodable(config) or "flakestorm.yaml")
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), safe="/")
