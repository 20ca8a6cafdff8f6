"""Where a judging command's results go: the terminal, a report folder, or the one file that was asked for.

Without `-o`, every command gets a folder of its own below `output.path`, so no run overwrites another's evidence::

    reports/20260102-150405-contract-run/report.html  report.json  tapes/r-0001.tape ...

With `-o FILE`, the report is FILE and its tapes lie beside it in `FILE-without-suffix.tapes/`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from datetime import datetime
from pathlib import Path

import click

from flakestorm.cli.forms import SUFFIX, form_of, text, write
from flakestorm.cli.options import Globals
from flakestorm.cli.saved import Saving
from flakestorm.config.model import Config, Output
from flakestorm.core.record import Record
from flakestorm.engine.events import Listener, Report
from flakestorm.reports.trend import Point

__all__ = ["ON_STDOUT", "Place", "how_to_resume", "place_for", "present", "results_only", "watching"]


ON_STDOUT = frozenset({"json", "junit", "markdown", "sarif", "otel"})
"""The forms that, asked for by `--format` without `-o`, are printed in place of a summary."""


class Place(Record, frozen=True):
    """Where the results of one command go.

    Args:
        form: `html`, `json`, `terminal`, `junit`, `markdown`, `sarif` or `otel`.
        file: the one file asked for by `-o`; None for a folder of its own.
        folder: where reports are written; the report's paths are relative to it.
        tapes: where tapes are written.
        stdout: whether the machine-readable document goes to stdout instead of a summary.
    """

    form: str
    file: Path | None
    folder: Path
    tapes: Path
    stdout: bool


def place_for(options: Globals, config: Config, command: str) -> Place:
    """Decide from the options and the config's `output` block.

    A file whose suffix no form has gets the form that `--format`, or a config that names another than the usual one,
    says.

    Paths are absolute from the start, because an agent in this process may change the current folder.

    Raises:
        Misuse: the form asked for is not available in this version, or none is told by the file's suffix.
    """
    default = config.output.format
    form = form_of(options.format, options.output, default, chosen=default != Output().format)
    if options.output is not None:
        file = options.output.absolute()
        return Place(form, file, file.parent, file.with_name(f"{file.stem}.tapes"), stdout=False)
    date, time = datetime.now().strftime("%Y%m%d %H%M%S").split()
    known = {"timestamp": f"{date}-{time}", "date": date, "time": time, "command": command.replace(" ", "-")}
    name = config.output.filename_template or "{timestamp}-{command}"
    for placeholder, value in known.items():
        name = name.replace(f"{{{placeholder}}}", value)
    first = Path(config.folder, config.output.path, name).absolute()
    folder, n = first, 2
    while folder.exists():  # two commands in one second
        folder, n = first.with_name(f"{first.name}-{n}"), n + 1
    return Place(form, None, folder, folder / "tapes", stdout=options.format in ON_STDOUT)


def watching(options: Globals, *, progress: bool = True) -> AbstractContextManager[Listener]:
    """The progress display, while entered: on stderr, and only where somebody watches."""
    from flakestorm.reports.progress import Progress

    return Progress(enabled=progress and not options.quiet, color=not options.no_color)


def results_only() -> AbstractContextManager[object]:
    """While entered, what is printed goes to stderr: stdout is for results, whatever an agent in this process says."""
    return redirect_stdout(sys.stderr)


def present(
    report: Report, place: Place, options: Globals, saved: Saving | None = None, *, history: Sequence[Point] = ()
) -> int:
    """Write the reports, print the summary, and give the exit code.

    Args:
        report: what was found out.
        place, options: where to, and how much of it.
        saved: what has saved it in the store.
        history: of a `ci`, earlier ones and this one, the oldest first.

    Raises:
        Misuse: a report cannot be written; the message says where.
    """
    files = list(_write(report, place, history))
    from flakestorm.reports import terminal  # now that nobody else is importing it
    from flakestorm.reports.text import one_line

    if place.stdout:
        click.echo(text(report, place.form))
    elif options.quiet:
        click.echo(f"{report.verdict}: {one_line(report.headline, 1000)}")
    else:
        terminal.summary(report, files=files, color=not options.no_color)
        _trend(history)
    if saved is not None:
        saved.close()  # which may have waited for the disk meanwhile
        if saved.id is not None and not (place.stdout or options.quiet):
            click.echo(f"saved: {saved.id} (`flakestorm report {saved.id}` shows it again)")
    if saved is not None and saved.problem is not None:
        click.echo(f"note: this report was not saved for later: {one_line(saved.problem, 1000)}", err=True)
    if report.interrupted or report.stopped:
        click.echo(how_to_resume(report, files, saved), err=True)
    return report.exit_code


def _trend(history: Sequence[Point]) -> None:
    """One line for each score there is, the overall one first."""
    from flakestorm.reports.trend import line

    bars = _can_draw()
    for name in dict.fromkeys(name for point in history for name in ("overall", *point.scores)):
        said = line(history, name, bars=bars)
        if said:
            click.echo(f"trend: {said}")


def _can_draw() -> bool:
    """Whether standard output's encoding has block characters."""
    try:
        "▁█".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _write(report: Report, place: Place, history: Sequence[Point]) -> Iterator[Path]:
    if place.file is not None:
        yield write(report, place.form, place.file, history=history)
        return
    if place.form not in ("json", "terminal"):
        yield write(report, place.form, place.folder / f"report{SUFFIX[place.form]}", history=history)
    yield write(report, "json", place.folder / "report.json")


def how_to_resume(report: Report, files: Sequence[Path], saved: Saving | None) -> str:
    """The same command again, as it was typed, going on from the JSON report, else from what is saved."""
    phases = [Path(phase.report).with_name("report.json") for phase in report.phases if phase.report]
    written = next(iter(phases or [file for file in files if file.suffix == ".json"]), None)
    why = "interrupted" if report.interrupted else f"the budget was reached ({report.stopped})"
    kept = str(written) if written is not None else None if saved is None else saved.id
    single = report.command == "verify" or (report.command == "run" and "robustness" not in report.scores)
    if kept is None or single:
        return f"{why}; the report holds the runs that had finished"
    typed = ["flakestorm", *sys.argv[1:]]
    if "--resume" in typed:
        del typed[typed.index("--resume") : typed.index("--resume") + 2]
    return f"{why}; what had finished is kept. To resume: {shlex.join([*typed, '--resume', kept])}"
