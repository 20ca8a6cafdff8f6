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
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from flakestorm.cli.options import FORMATS, Globals
from flakestorm.config.model import Config
from flakestorm.engine.events import Listener, Report, RunResult
from flakestorm.errors import FlakestormError, Misuse
from flakestorm.reports.files import write_whole

__all__ = ["Place", "exchanges_of", "place_for", "present", "results_only", "watching"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the results of one command go.

    Args:
        form: `html`, `json` or `terminal`.
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

    Paths are absolute from the start, because an agent in this process may change the current folder.

    Raises:
        Misuse: the form asked for is not available in this version.
    """
    by_suffix = {".json": "json", ".html": "html", ".htm": "html", ".txt": "terminal"}
    suffix = None if options.output is None else by_suffix.get(options.output.suffix.lower())
    form = options.format or suffix or config.output.format
    if form not in FORMATS:
        raise Misuse(f"output.format {form!r} is not available in this version; available: {', '.join(FORMATS)}")
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
    return Place(form, None, folder, folder / "tapes", stdout=options.format == "json")


def watching(options: Globals, *, progress: bool = True) -> AbstractContextManager[Listener]:
    """The progress display, while entered: on stderr, and only where somebody watches."""
    from flakestorm.reports import terminal

    return terminal.progress(enabled=progress and not options.quiet, color=not options.no_color)


def results_only() -> AbstractContextManager[object]:
    """While entered, what is printed goes to stderr: stdout is for results, whatever an agent in this process says."""
    return redirect_stdout(sys.stderr)


def present(report: Report, place: Place, options: Globals) -> int:
    """Write the reports, print the summary, and give the exit code.

    Raises:
        Misuse: a report cannot be written; the message says where.
    """
    from flakestorm.reports import document, terminal
    from flakestorm.reports.text import one_line

    files = list(_write(report, place))
    if place.stdout:
        click.echo(document.dumps(report))
    elif options.quiet:
        click.echo(f"{report.verdict}: {one_line(report.headline, 1000)}")
    else:
        terminal.summary(report, files=files, color=not options.no_color)
    if report.interrupted:
        click.echo(_how_to_resume(report, files), err=True)
    return report.exit_code


def _write(report: Report, place: Place) -> Iterator[Path]:
    from flakestorm.reports import document, html, terminal

    if place.file is None:
        if place.form == "html":
            yield html.write_html(report, place.folder / "report.html", exchanges=exchanges_of)
        yield document.write_json(report, place.folder / "report.json")
    elif place.form == "json":
        yield document.write_json(report, place.file)
    elif place.form == "html":
        yield html.write_html(report, place.file, exchanges=exchanges_of)
    else:
        yield write_whole(place.file, terminal.text(report).encode())


def _how_to_resume(report: Report, files: Sequence[Path]) -> str:
    """The same command again, as it was typed, going on from the JSON report, where there is one."""
    saved = next((file for file in files if file.suffix == ".json"), None)
    if saved is None or report.command in ("run", "verify"):
        return "interrupted; the report holds the runs that had finished"
    typed = ["flakestorm", *sys.argv[1:]]
    if "--resume" in typed:
        del typed[typed.index("--resume") : typed.index("--resume") + 2]
    return f"interrupted; what had finished is kept. To resume: {shlex.join([*typed, '--resume', str(saved)])}"


def exchanges_of(run: RunResult) -> list[dict[str, Any]]:
    """The exchanges of a run as its tape tells them; none if there is no readable tape."""
    from flakestorm.tape.reader import Tape, describe

    try:
        found: list[dict[str, Any]] = describe(Tape.open(Path(run.tape)))["exchanges"]
    except (FlakestormError, OSError):
        return []
    return found
