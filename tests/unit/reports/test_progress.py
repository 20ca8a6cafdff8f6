from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from flakestorm.engine.events import Finished, Note, Planned, RunFinished, RunStarted
from flakestorm.reports.progress import Progress, is_terminal, wants_color
from report_samples import sample


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_rich_is_not_imported_until_a_bar_is_drawn() -> None:
    code = (
        "import sys, flakestorm.reports.progress as p, flakestorm.reports.terminal as t\n"
        "from report_samples import sample\n"
        "p.Progress(); t.summary(sample()); sys.exit('rich' in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=env, stdout=subprocess.DEVNULL).returncode == 0


def finished(bar: Progress) -> None:
    report = sample()
    bar(Planned("contract run", len(report.runs)))
    for run in report.runs:
        bar(RunStarted(run.id, run.scenario, run.prompt))
        bar(RunFinished(run))
    bar(Finished(report))


def test_the_bar_counts_runs_chaos_and_missing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    finished(Progress(stream=stream))
    assert "8/8" in stream.getvalue()
    assert "4 hit by chaos, 1 without an answer" in stream.getvalue()


def test_no_bar_without_a_terminal_but_notes_are_told() -> None:
    stream = io.StringIO()
    bar = Progress(stream=stream)
    finished(bar)
    bar(Note("the agent \x1b[31m restarted"))
    assert stream.getvalue() == "note: the agent \\x1b[31m restarted\n"


def test_disabled_is_silent() -> None:
    stream = Terminal()
    bar = Progress(stream=stream, enabled=False)
    finished(bar)
    bar(Note("n"))
    assert stream.getvalue() == ""


def test_leaving_the_context_takes_the_bar_down() -> None:
    stream = Terminal()
    with Progress(stream=stream, color=False) as bar:
        bar(Planned("chaos", 3))
        bar(Note("[bold]hello"))
    assert "note: [bold]hello" in stream.getvalue()
    assert stream.getvalue().rstrip().endswith(("\x1b[?25h", "\x1b[2K"))
    bar.close()


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert (is_terminal(Terminal()), wants_color(Terminal())) == (True, True)
    assert (is_terminal(io.StringIO()), wants_color(io.StringIO())) == (False, False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color(Terminal())
