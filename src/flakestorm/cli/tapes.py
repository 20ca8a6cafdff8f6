"""`flakestorm tapes`: list, show, import."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.errors import FlakestormError, Misuse

if TYPE_CHECKING:
    from flakestorm.tape.shelf import Summary

__all__ = ["tapes"]

STORE = Path(".flakestorm")
"""Where tapes go that belong to no report."""


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

    With --format json, one `flakestorm-tapes/1` object. A file that cannot be read is named, and the exit code is 2.
    """
    return _list(options, folder)


@tapes.command()
@global_options
@click.argument("tape", type=click.Path(path_type=Path))
def show(options: Globals, tape: Path) -> int:
    """Print a tape: every exchange of the run, decoded.

    With --format json, one `flakestorm-tape/1` object.
    """
    import orjson

    from flakestorm.tape.reader import Tape, describe
    from flakestorm.tape.text import lines

    opened = Tape.open(tape)
    if options.format == "json":
        text = orjson.dumps(describe(opened), option=orjson.OPT_INDENT_2).decode()
    else:
        text = "\n".join(lines(opened))
    _put(text, options.output)
    return 0


@tapes.command("import", short_help="Make tapes out of other tools' recordings.")
@global_options
@click.argument("files", metavar="FILE...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--from", "form", type=click.Choice(["auto", "vcr"]), default="auto", help="What recorded the files (auto: look)."
)
def import_(options: Globals, files: tuple[Path, ...], form: str) -> int:
    """Make tapes out of other tools' recordings, one per file, in the folder that -o names (.flakestorm/tapes).

    VCR cassettes are read as vcrpy, pytest-recording, betamax and Ruby's VCR write them: YAML or JSON, perhaps gzipped.
    Secrets are left out, as in every tape. With -c, `boundary.tools` names plain-HTTP tools.

    A file that cannot be imported is named with the reason, the others are imported, and the exit code is 2.
    """
    from flakestorm.importers.files import import_file, tape_names
    from flakestorm.tape.text import plain

    folder = options.output or STORE / "tapes"
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
        total = _exchanges(sum(made.calls.values()))
        click.echo(f"{plain(str(made.tape))}: {total}{f' ({kinds})' if kinds else ''}")
    return 2 if refused else 0


def _tools(options: Globals) -> Sequence[tuple[str, str]]:
    if options.config is None:
        return ()
    from flakestorm.config.load import load

    return tuple(load(options.config).boundary.tools.items())


def _list(options: Globals, folder: Path | None) -> int:
    import orjson

    from flakestorm.errors import TapeDamaged
    from flakestorm.tape.shelf import find, summary
    from flakestorm.tape.text import plain

    folders = [folder] if folder is not None else [*_report_folders(options), STORE]
    found: list[Summary] = []
    refused: list[TapeDamaged] = []
    for path in find(folders):
        try:
            found.append(summary(path))
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


def _exchanges(count: int) -> str:
    return f"{count} exchange{'' if count == 1 else 's'}"


def _put(text: str, output: Path | None) -> None:
    """Print the text, or write it to the file that -o names.

    Raises:
        Misuse: it cannot be written there.
    """
    if output is None:
        click.echo(text)
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise Misuse(f"{output}: it cannot be written: {error.strerror or error}; choose another -o") from error
