from __future__ import annotations

import io
import re
import unicodedata
from dataclasses import replace

import pytest

from flakestorm.engine.events import FaultTally, ScenarioInfo, Score
from flakestorm.reports.terminal import summary, text
from report_samples import empty, hostile, large, sample

ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Encoded(io.StringIO):
    """A stream that can hold one encoding only."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a StringIO has none of its own
        return self._encoding

    def write(self, text: str) -> int:
        text.encode(self._encoding)
        return super().write(text)


def test_the_summary_of_a_failed_contract() -> None:
    lines = text(sample(), files=["reports/report.html"]).splitlines()
    assert lines[0] == (
        "✕ FAIL  no-false-booking (critical) failed in booking-times-out: 2 of 2 runs claimed a booking."
    )
    assert lines[1] == "contract run: 8 runs · 8.1 s · seed 42"
    assert "contract  71.43 [55.10, 83.20]  (13 of 19 passed, 7 inconclusive, a critical invariant failed)" in lines
    assert lines[-1] == "report: reports/report.html"
    assert "note: model-cut-short: no planned fault fired in 2 of 2 runs." in lines


def test_faults_that_did_not_fire_in_every_run_are_told_of() -> None:
    base = sample()
    told = (FaultTally("tool/a=error", 2, 2, 0, 0, 0), FaultTally("tool/b=error", 2, 0, 1, 1, 0))
    run = replace(base.runs[4], impossible=base.runs[2].fired, masked=base.runs[2].fired * 5)
    report = replace(
        base,
        scenarios=(*base.scenarios, ScenarioInfo("two", ("tool/a=error", "tool/b=error"), told)),
        runs=(*base.runs[:4], run, *base.runs[5:]),
    )
    drawn = text(report, width=200)
    assert "two: tool/b=error fired in 0 of 2 runs; masked in 1, impossible in 1" in drawn.splitlines()
    assert "tool/a=error fired" not in drawn
    assert "; masked: tool/search_flights#1 error:503, " in drawn
    assert " and 1 more; impossible: tool/search_flights#1 error:503" in " ".join(drawn.split())


def test_the_map_has_scenarios_down_where_that_fits() -> None:
    lines = text(sample(), width=100).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("scenario"))
    assert lines[at].split() == ["scenario", "always-answers", "no-false-booking", "whole-sentences", "fast"]
    assert re.split(r" {2,}", lines[at + 3]) == ["booking-times-out", "✓ 1/1 +1?", "✕ 0/2", "◐ 1/2", "◐ 1/2"]


def test_many_invariants_are_turned_and_what_fits_nowhere_is_a_list() -> None:
    turned = text(large(2, 30), width=60).splitlines()
    assert any(line.split() == ["invariant", "scenario-000", "scenario-001"] for line in turned)
    listed = text(large(30, 30), width=40).splitlines()
    assert "scenario-007" in listed
    assert "  ✓ 1/1  invariant-01" in listed


def test_what_did_not_pass_is_told_with_its_reproducer() -> None:
    lines = text(sample(), limit=1).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("✕ booking-times-out"))
    assert lines[at : at + 6] == [
        "✕ booking-times-out × no-false-booking  (critical, 2 runs)",
        '  found (?i)is booked in "Your flight NW-118 to Oslo is booked."',
        "  prompt 0: Book the cheapest flight to Oslo on 12 May.",
        "  output: Your flight NW-118 to Oslo is booked.",
        "  faults: tool/book_flight#1 timeout:300 (no reply)",
        "  flakestorm run --seed 42 --prompt 0 --inject tool/book_flight#1=timeout:300",
    ]
    assert "and 5 more that did not pass; the HTML and JSON reports have them all" in lines


def test_inconclusive_cells_say_what_was_missing_and_chaos_is_cleared_where_it_is_innocent() -> None:
    shown = text(sample())
    assert "faults: none of 1 planned fired; tools seen: search_flights, book_flight" in shown
    assert "also fails without chaos: chaos is not the cause" in shown
    assert "? model-cut-short × always-answers, whole-sentences, fast  (high, 2 runs)" in shown


@pytest.mark.parametrize("width", [1, 20, 34, 60, 80, 200])
def test_nothing_but_commands_is_wider_than_the_terminal(width: int) -> None:
    lines = [line for line in text(sample(), width=width).splitlines() if "flakestorm run" not in line]
    assert max(map(len, lines)) <= max(width, 20)
    assert "  flakestorm run --seed 42 --prompt 0 --inject tool/book_flight#1=timeout:300" in text(
        sample(), width=width
    )


@pytest.mark.parametrize("color", [True, False])
def test_hostile_text_cannot_reach_the_terminal(color: bool) -> None:
    shown = ANSI.sub("", text(hostile(), color=color, files=["\x1b[2J\nreport: evil"]))
    assert {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")} <= {"\n"}
    assert "\\x1b[31mRED" in shown
    assert "[bold]markup[/bold]" in shown


def test_a_newline_in_the_headline_cannot_forge_a_line() -> None:
    forged = replace(sample(), headline="broken\n✓ PASS  all is well", notes=("a\nreport: b",))
    lines = text(forged).splitlines()
    assert not [line for line in lines if line.startswith(("✓ PASS", "report:"))]


def test_a_note_of_several_lines_keeps_them() -> None:
    noted = replace(sample(), notes=("the agent ended; its last lines:\n    Traceback\n    OSError: no model",))
    assert text(noted).splitlines()[-3:] == [
        "note: the agent ended; its last lines:",
        "      Traceback",
        "      OSError: no model",
    ]


def test_color_only_where_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def shown(stream: io.StringIO, *, color: bool = True) -> str:
        summary(sample(), stream=stream, color=color)
        return stream.getvalue()

    assert "\x1b[" in shown(Terminal())
    assert "\x1b[" not in shown(Terminal(), color=False)
    assert "\x1b[" not in shown(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in shown(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[" not in shown(Terminal())


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_any_encoding_can_hold_it(encoding: str) -> None:
    stream = Encoded(encoding)
    summary(replace(sample(), headline="日本 – ✕"), stream=stream)
    assert stream.getvalue().startswith("✕ FAIL" if encoding == "utf-8" else "x FAIL")


def test_the_default_is_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    summary(empty())
    assert capsys.readouterr().out.startswith("? INCONCLUSIVE  The agent could not be reached.")


def test_an_interrupted_report_says_so() -> None:
    assert "interrupted: only what had finished is shown" in text(replace(sample(), interrupted=True))


def test_nothing_that_failed_is_shown_as_full_marks() -> None:
    scores = {"robustness": Score(0.9999, 0.999, 1.0, 19_999, 20_000, 0), "chaos": Score(1.0, 0.9, 1.0, 30, 30, 0)}
    report = replace(sample(), scores=scores)
    said = [line for line in text(report).splitlines() if line.lstrip("| ").startswith(("robustness", "chaos"))]
    assert ["0.999" in said[0], "1.000" in said[1]] == [True, True]
    assert "1.000" not in said[0].replace("0.999 to 1.000", "").replace("0.999, 1.000", "")
