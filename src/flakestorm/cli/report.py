"""`flakestorm report` and `flakestorm score`: what was found out earlier, again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from flakestorm.cli.forms import form_of, text, write
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.saved import comparison_named, history_of, report_named, store_folder
from flakestorm.errors import Misuse
from flakestorm.reports.text import counted

if TYPE_CHECKING:
    from flakestorm.store.sqlite import Entry

__all__ = ["SCORES", "report", "score"]

SCORES = ("overall", "contract", "robustness", "chaos", "replay")
"""Whose number a report is known by: the first of these that it has."""


@click.command()
@global_options
@click.argument("name", metavar="[FILE|RUN]", required=False)
@click.option("--otel-endpoint", metavar="URL", help="Send it to this OTLP receiver, as spans.")
def report(options: Globals, name: str | None, otel_endpoint: str | None) -> int:
    """Render a saved report in any form; without a name, list the saved ones.

    \b
    flakestorm report                                  those that are saved, the newest first
    flakestorm report latest --format markdown
    flakestorm report 20261122-073645-ab12 -o report.html
    flakestorm report out/report.json --format junit -o results.xml
    flakestorm report latest --otel-endpoint http://localhost:4318

    FILE is a JSON report; RUN the id of a saved one, the beginning or the last four digits of it, or `latest`.
    """
    if otel_endpoint is not None:
        return _send(name or "latest", otel_endpoint, options)
    if name is None:
        return _list(options)
    compared = comparison_named(name, options)
    if compared is not None:
        return _compared(compared, options)
    found = report_named(name, options)
    form = form_of(options.format, options.output, "terminal")
    history = history_of(store_folder(options), found) if found.phases else []
    if options.output is not None:
        write(found, form, options.output, history=history)
    elif form == "terminal":
        from flakestorm.reports import terminal

        terminal.summary(found, color=not options.no_color)
    else:
        click.echo(text(found, form, history=history))
    return 0


@click.command()
@global_options
@click.argument("name", metavar="[FILE|RUN]", required=False)
def score(options: Globals, name: str | None) -> int:
    """Print a saved report's score and nothing else: the overall one, else the command's own.

    Without a name, the newest saved report's; comparisons have no score and are passed over. Exits 3, printing
    `no data`, where nothing was conclusive.
    """
    scores = report_named(name or _newest(options), options).scores
    value = next((scores[key].value for key in SCORES if key in scores), None)
    click.echo("no data" if value is None else f"{value:g}")
    return 3 if value is None else 0


def _send(name: str, endpoint: str, options: Globals) -> int:
    """Runs, exchanges, faults and verdicts as spans, to where spans are gathered."""
    import os

    from flakestorm.cli.forms import taped
    from flakestorm.importers.messages import conversation
    from flakestorm.reports.otel import document
    from flakestorm.reports.otlp import send, target

    if options.output is not None or options.format not in (None, "otel"):
        raise Misuse("--otel-endpoint sends the report and writes no file; leave out -o and --format")
    where = target(endpoint)
    found = report_named(name, options)
    sent = send(document(found, tapes=taped, conversation=conversation), endpoint, os.environ)
    if not options.quiet:
        click.echo(f"sent {counted(sent, 'span')} of {counted(len(found.runs), 'run')} to {where}")
    return 0


def _newest(options: Globals) -> str:
    """The name of the newest saved report that is no comparison.

    Raises:
        Misuse: there is none.
    """
    from flakestorm.store.sqlite import Store

    with Store(store_folder(options)) as store:
        found = next((entry.id for entry in store.entries() if entry.command != "compare"), None)
    if found is None:
        raise Misuse("only comparisons are saved here, and they have no score; run `flakestorm contract run` or `ci`")
    return found


def _compared(document: Mapping[str, Any], options: Globals) -> int:
    """A comparison has forms of its own."""
    from flakestorm.cli.compare import form_of, written
    from flakestorm.reports.files import write_whole

    if options.output is not None:
        write_whole(options.output, f"{written(document, form_of(options))}\n".encode())
    else:
        click.echo(written(document, options.format or "terminal"))
    return 0


def _list(options: Globals) -> int:
    import orjson

    from flakestorm.store.sqlite import Store

    with Store(store_folder(options)) as store:
        found = store.entries()
    if options.format == "json":
        listed = [
            {"id": e.id, "command": e.command, "started_at": e.started_at, "verdict": e.verdict,
             "exit_code": e.exit_code, "done": e.done, "runs": e.runs, "scores": e.scores}
            for e in found
        ]  # fmt: skip
        document = {"format": "flakestorm-reports/1", "reports": listed}
        click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        click.echo("\n".join(_table(found)))
    return 0


def _table(found: Sequence[Entry]) -> Iterator[str]:
    from flakestorm.reports.text import one_line

    rows = [("REPORT", "COMMAND", "VERDICT", "SCORE", "RUNS")]
    for entry in found:
        value = next((entry.value(key) for key in SCORES if entry.value(key) is not None), None)
        shown = "" if value is None else f"{value:g}"
        verdict = entry.verdict if entry.done else "never finished"
        rows.append((entry.id, one_line(entry.command, 40), verdict, shown, str(entry.runs)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
