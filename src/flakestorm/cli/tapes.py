"""`flakestorm tapes`: list, show, import, export, prune."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flakestorm.cli.options import Globals, from_option, global_options
from flakestorm.cli.saved import store_folder
from flakestorm.errors import FlakestormError, Misuse
from flakestorm.reports.text import counted

if TYPE_CHECKING:
    from flakestorm.tape.shelf import Summary

__all__ = ["tapes"]

_NAMED = 10
"""How many runs a message names."""


@click.group(invoke_without_command=True)
@global_options
def tapes(options: Globals) -> int:
    """Recorded tapes: the evidence of every run. Alone, it lists them."""
    if click.get_current_context().invoked_subcommand is None:
        return _list(options, None)
    return 0


@tapes.command("list", short_help="List the tapes in a folder.")
@global_options
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), required=False)
def list_(options: Globals, folder: Path | None) -> int:
    """List the tapes in FOLDER; by default those in the report folder and in .flakestorm.

    Saved reports keep their tapes in .flakestorm. One that only the store still has is listed as REPORT/RUN, the name
    by which `show` and `export` know it.

    With --format json, one `flakestorm-tapes/1` object. A file that cannot be read is named, and the exit code is 2.
    """
    return _list(options, folder)


@tapes.command()
@global_options
@click.argument("tape", type=click.Path(path_type=Path))
def show(options: Globals, tape: Path) -> int:
    """Print a tape: every exchange of the run, decoded. TAPE is a file, or REPORT/RUN for one in the store.

    With --format json, one `flakestorm-tape/1` object.
    """
    from flakestorm.tape.reader import Tape, describe
    from flakestorm.tape.text import lines

    opened = Tape.open(_in_store(tape, options) or tape)
    if options.format == "json":
        _put_pieces(_spelled(describe(opened)), options.output)
    else:
        _put("\n".join(lines(opened)), options.output)
    return 0


def _spelled(described: Mapping[str, Any]) -> Iterator[bytes]:
    """A tape's document as JSON, piece by piece: what its exchanges unpack to is never there all at once."""
    import orjson

    head = orjson.dumps({**described, "exchanges": []}, option=orjson.OPT_INDENT_2).removesuffix(b"[]\n}")
    before = head + b"[\n    "
    for exchange in described["exchanges"]:
        yield before
        yield orjson.dumps(exchange, option=orjson.OPT_INDENT_2).replace(b"\n", b"\n    ")
        before = b",\n    "
    yield b"\n  ]\n}\n" if described["exchanges"] else head + b"[]\n}\n"


@tapes.command("import", short_help="Make tapes out of other tools' recordings.")
@global_options
@click.argument("files", metavar="FILE...", type=click.Path(path_type=Path), nargs=-1, required=True)
@from_option
def import_(options: Globals, files: tuple[Path, ...], form: str) -> int:
    """Make tapes out of other tools' recordings, one per file, in the folder that -o names (.flakestorm/tapes).

    VCR cassettes are read as vcrpy, pytest-recording, betamax and Ruby's VCR write them: YAML or JSON, perhaps gzipped.
    Traces of OpenTelemetry (OTLP JSON, GenAI conventions), Langfuse and LangSmith hold conversations and no bytes:
    their model calls become chat completions. Secrets are left out, as in every tape. With -c, `boundary.tools` names
    plain-HTTP tools.

    A file that cannot be imported is named with the reason, the others are imported, and the exit code is 2.
    """
    from flakestorm.importers.files import import_file, tape_names
    from flakestorm.tape.shelf import in_store
    from flakestorm.tape.text import plain

    folder = options.output or in_store("")
    tools = _tools(options)
    refused = 0
    for file, name in zip(files, tape_names(files), strict=True):
        try:
            made = import_file(file, folder / name, form=form, tools=tools)
        except FlakestormError as error:
            click.echo(f"error: {plain(str(error))}", err=True)
            refused += 1
            continue
        kinds = ", ".join(f"{count} {kind}" for kind, count in made.calls.items())
        total = counted(sum(made.calls.values()), "exchange")
        click.echo(f"{plain(str(made.tape))}: {total}{f' ({kinds})' if kinds else ''}")
    return 2 if refused else 0


@tapes.command(short_help="Copy tapes out of the store.")
@global_options
@click.argument("name", metavar="REPORT[/RUN]")
def export(options: Globals, name: str) -> int:
    """Copy the tapes of a saved report, or of one of its runs, to the folder that -o names (the current one).

    REPORT is what `flakestorm report` calls it, e.g. 20261122-073645-ab12 or `latest`.
    """
    import shutil

    from flakestorm.store.sqlite import Store
    from flakestorm.tape.text import plain

    report, _, run = name.partition("/")
    folder = options.output or Path()
    with Store(store_folder(options)) as store:
        found = [kept for kept in store.tapes(store.find(report)) if not run or kept.run == run]
    if not found:
        raise Misuse(f"{name}: the store has no such tape; `flakestorm tapes` lists those that are there")
    for kept in found:
        target = folder / f"{kept.run.replace('/', '-')}.tape"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(kept.path, target)
        except OSError as error:
            raise Misuse(f"{target}: it cannot be written: {error.strerror or error}; choose another -o") from error
        click.echo(plain(str(target)))
    return 0


@tapes.command(short_help="Remove old reports from the store, with their tapes.")
@global_options
@click.option("--keep", type=click.IntRange(min=0), help="So many of the newest reports stay.")
@click.option("--older-than", "days", type=click.FloatRange(min=0), help="Only reports older than so many days go.")
def prune(options: Globals, keep: int | None, days: float | None) -> int:
    """Remove saved reports from .flakestorm, and the tapes that no other report has. Report folders stay as they are.

    With both options, a report goes only if both say so.
    """
    from datetime import UTC, datetime, timedelta

    from flakestorm.store.sqlite import Store

    if keep is None and days is None:
        raise Misuse("say what may go: --keep N, --older-than DAYS, or both")
    before = None if days is None else datetime.now(UTC) - timedelta(days=days)
    folder = store_folder(options)
    Store(folder).close()  # one that is not there is not made in order to be pruned
    with Store(folder, write=True) as store:
        gone = store.prune(keep=keep, before=before)
    click.echo(f"removed {counted(len(gone.reports), 'report')}, {counted(gone.tapes, 'tape')} ({gone.bytes:,} bytes)")
    return 0


def _in_store(name: Path, options: Globals) -> Path | None:
    """Where the tape REPORT/RUN lies in the store, or that of a REPORT with one; None for a file, or no such name.

    Raises:
        Misuse: the report has several tapes, or none of this run.
    """
    from flakestorm.store.sqlite import Store

    report, _, run = name.as_posix().partition("/")
    if name.exists():
        return None
    try:
        with Store(store_folder(options)) as store:
            kept = store.tapes(store.find(report))
    except Misuse:
        return None
    found = [tape.path for tape in kept if tape.run == run or not run]
    if len(found) == 1:
        return found[0]
    runs = ", ".join(tape.run for tape in kept[:_NAMED]) + ("" if len(kept) <= _NAMED else ", ...") or "none"
    if not run:
        first = f"; say which: {report}/{kept[0].run} ({runs})" if kept else ""
        raise Misuse(f"{report} is a saved report with {counted(len(kept), 'tape')}{first}")
    raise Misuse(f"the saved report {report} has no tape of a run {run}; it has those of {runs}")


def _stored(options: Globals, listed: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """The tapes that nothing but the store has, as REPORT/RUN, and where they lie: those whose own file is gone, or has
    been written to again since."""
    from flakestorm.store.content import digest_of
    from flakestorm.store.sqlite import Store

    there, folder = {path.resolve() for path in listed}, store_folder(options)
    if not Store.lies_in(folder):
        return
    with Store(folder) as store:
        kept = store.tapes()
    for tape in kept:
        original = tape.original.resolve()
        if original not in there or digest_of(original) != tape.digest:
            yield Path(tape.report, tape.run), tape.path


def _tools(options: Globals) -> Sequence[tuple[str, str]]:
    if options.config is None:
        return ()
    from flakestorm.config.load import load

    return tuple(load(options.config).boundary.tools.items())


def _list(options: Globals, folder: Path | None) -> int:
    import orjson

    from flakestorm.errors import TapeDamaged
    from flakestorm.tape.shelf import STORE, find, summary
    from flakestorm.tape.text import plain

    folders = [folder] if folder is not None else [*_report_folders(options), STORE]
    found: list[Summary] = []
    refused: list[FlakestormError] = []
    named = [(path, path) for path in find(folders)]
    try:
        named += [] if folder is not None else _stored(options, [path for path, _ in named])
    except Misuse as error:
        refused.append(error)
    for name, path in named:
        try:
            found.append(replace(summary(path), path=name))
        except TapeDamaged as error:
            refused.append(error)
    if options.format == "json":
        listed = [
            {"tape": str(s.path), "run": s.run, "input": s.input, "exchanges": s.exchanges, "complete": s.complete}
            for s in found
        ]
        document = {"format": "flakestorm-tapes/1", "tapes": listed, "refused": [str(each) for each in refused]}
        _put(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode(), options.output)
    elif found:
        _put("\n".join(_table(found)), options.output)
    elif not refused:
        click.echo(f"no tapes in {' or '.join(str(folder) for folder in folders)}", err=True)
    for each in refused:
        click.echo(f"error: {plain(str(each))}", err=True)
    return 2 if refused else 0


def _report_folders(options: Globals) -> list[Path]:
    """Where the config says reports go; without a config, where they go by default."""
    if options.config is None and not options.config_path.exists():
        return [Path("reports")]
    from flakestorm.config.load import load

    config = load(options.config_path)
    folder = Path(config.folder) / config.output.path
    try:
        return [folder.relative_to(Path.cwd())]
    except ValueError:
        return [folder]


def _table(found: Sequence[Summary]) -> Iterator[str]:
    from flakestorm.tape.text import plain

    rows = [("TAPE", "RUN", "EXCHANGES", "INPUT")]
    for tape in found:
        count = f"{tape.exchanges}{'' if tape.complete else ' (interrupted)'}"
        words = " ".join((tape.input or "").split())
        rows.append(
            (plain(str(tape.path)), plain(tape.run), count, plain(words if len(words) <= 60 else words[:59] + "…"))
        )
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip()


def _put(text: str, output: Path | None) -> None:
    """Print the text, or write it to the file that -o names.

    Raises:
        Misuse: it cannot be written there.
    """
    if output is None:
        click.echo(text)
    else:
        _put_pieces([f"{text}\n".encode()], output)


def _put_pieces(pieces: Iterable[bytes], output: Path | None) -> None:
    """As `_put`, for what is long."""
    if output is None:
        for piece in pieces:
            click.echo(piece, nl=False)
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("wb") as file:
            file.writelines(pieces)
    except OSError as error:
        raise Misuse(f"{output}: it cannot be written: {error.strerror or error}; choose another -o") from error
