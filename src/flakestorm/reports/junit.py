"""The same report as JUnit XML, for what shows test results: one suite per scenario, one test case per judged cell.

A cell that failed is a `failure`. An inconclusive cell is never a silent pass: it is `skipped` where other runs of the
same invariant in the same scenario were conclusive (a probabilistic fault need not fire every time), and an `error`
where none was, because then the promise could not be judged at all, which is what exit code 3 is about. A latency limit
under load is a test case of its level. Where the whole did not pass although no cell says so (it was interrupted, its
budget was spent, its score is too low or there is none), the verdict is a test case of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flakestorm.engine.events import CellResult, Report, RunResult, Score
from flakestorm.engine.latency import in_words
from flakestorm.engine.loaded import LimitAt
from flakestorm.reports.excerpt import excerpt
from flakestorm.reports.grid import Square, grid_of
from flakestorm.reports.text import mutated, one_line, unbroken, visible

if TYPE_CHECKING:
    from junitparser import TestCase, TestSuite

__all__ = ["DETAIL_CHARS", "junit"]

DETAIL_CHARS = 2_000
"""How much of an output stands beside a failure; all of it is in the JSON report and on the tape."""

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NOT_XML = re.compile("[\ufffe\uffff]|[\U0001fffe\U0001ffff]")


def junit(report: Report) -> str:
    """The report as an XML document. Characters that XML cannot hold are shown as escapes."""
    from junitparser import JUnitXml

    xml = JUnitXml(_text(f"flakestorm {one_line(report.command, 80)}"))
    runs = {run.id: run for run in report.runs}
    limits = {level.scenario: level.limits for level in (report.load.levels if report.load else ()) if level.runs}
    suites = [
        _suite(report, row, runs, limits.get(row[0].scenario.name, ()))
        for row in grid_of(report).rows
        if any(square.cells for square in row)
    ]
    suites = suites or [_verdict(report)]
    for suite in suites:
        suite.update_statistics()
    if report.verdict != "pass" and not any(suite.failures or suite.errors for suite in suites):
        suites.append(_verdict(report))
        suites[-1].update_statistics()
    for suite in suites:
        xml.add_testsuite(suite)
    # The sums are written here: the library would add `skipped`, which the schema in common use forbids there.
    xml.tests, xml.failures, xml.errors = (
        sum(getattr(suite, name) for suite in suites) for name in ("tests", "failures", "errors")
    )
    xml.time = round(sum(suite.time for suite in suites), 3)
    text: bytes = xml.tostring()
    return f"{_HEAD}{text.decode()}\n"


def _suite(report: Report, row: tuple[Square, ...], runs: dict[str, RunResult], limits: Sequence[LimitAt]) -> TestSuite:
    from junitparser import TestSuite

    name = row[0].scenario.name if row else ""
    suite = TestSuite(_text(one_line(name, 200)))
    if report.started_at:
        suite.timestamp = _text(one_line(report.started_at, 40)).removesuffix("Z")
    for key, value in (("seed", report.seed), ("verdict", report.verdict), ("headline", report.headline)):
        suite.add_property(key, _text(one_line(str(value), 1000)))
    for score, found in report.scores.items():
        if found.value is not None:
            name_ = _text(f"score.{one_line(score, 40)}")
            suite.add_property(name_, f"{found.value:g}")
            suite.add_property(f"{name_}.evidence", _evidence(found))
    for square in row:
        for cell in square.cells:
            suite.add_testcase(_case(report.command, square, cell, runs.get(cell.run)))
    for limit in limits:
        suite.add_testcase(_limit(report.command, name, limit))
    return suite


def _evidence(score: Score) -> str:
    """What a score rests on: its 95% interval and its counts."""
    interval = "" if score.low is None or score.high is None else f"95% interval {score.low:g} to {score.high:g}; "
    return f"{interval}{score.passed} of {score.conclusive} passed, {score.inconclusive} inconclusive"


def _limit(command: str, level: str, limit: LimitAt) -> TestCase:
    from junitparser import Error, Failure, TestCase

    classname = _text(f"{one_line(command, 80)}.{one_line(level, 160)}")
    case = TestCase(_text(in_words(limit)), classname=classname, time=0.0)
    if limit.verdict != "pass":
        case.result = [(Failure if limit.verdict == "fail" else Error)(_text(limit.reason), "latency limit")]
    return case


def _case(command: str, square: Square, cell: CellResult, run: RunResult | None) -> TestCase:
    from junitparser import Error, Failure, Skipped, TestCase

    case = TestCase(
        _text(f"{one_line(cell.invariant, 160)} [prompt {cell.prompt}, trial {cell.trial}]"),
        classname=_text(f"{one_line(command, 80)}.{one_line(cell.scenario, 160)}"),
        time=round((run.latency_ms if run else 0.0) / 1000, 3),
    )
    if cell.verdict == "pass":
        return case
    open_kind = Skipped if square.conclusive else Error
    result = (Failure if cell.verdict == "fail" else open_kind)(
        _text(one_line(cell.reason, 1000)), _text(one_line(square.invariant.type or cell.severity, 80))
    )
    result.text = _text("\n".join(_detail(cell, run)))
    case.result = [result]
    return case


def _detail(cell: CellResult, run: RunResult | None) -> list[str]:
    """What a reader of a test report needs, so that most need not open another one."""
    said = [f"{cell.severity}: {visible(cell.reason)}"]
    if cell.also_fails_without_chaos:
        said.append("also fails without chaos: chaos is not the cause")
    if cell.also_fails_unmutated:
        said.append("also fails unmutated: the mutation is not the cause")
    if run is None:
        return said
    said.append(f"input: {one_line(run.input, 400)}")
    said += [f"mutation: {mutated(run.mutation)}"] if run.mutation else []
    said.append(
        f"output: {excerpt(run.output, DETAIL_CHARS)}" if run.error is None else f"error: {one_line(run.error, 400)}"
    )
    if run.fired:
        said.append("fired: " + "; ".join(one_line(f"{f.site} {f.mode}", 160) for f in run.fired[:8]))
    if run.reproduce:
        said.append(f"again: {unbroken(run.reproduce)}")
    return said


def _verdict(report: Report) -> TestSuite:
    """The verdict as a test case: a file without test cases, or with none that did not pass, looks like success."""
    from junitparser import Error, Failure, TestCase, TestSuite

    suite = TestSuite(_text(one_line(report.command, 80)))
    case = TestCase("verdict", classname=_text(one_line(report.command, 80)), time=0.0)
    kind = Failure if report.verdict == "fail" else Error
    case.result = [kind(_text(one_line(report.headline, 1000)), report.verdict)]
    suite.add_testcase(case)
    return suite


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", visible(text))
