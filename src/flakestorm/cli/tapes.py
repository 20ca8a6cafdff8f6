"""`flakestorm tapes show`."""

from __future__ import annotations

from pathlib import Path

import click

from flakestorm.cli.options import Globals, global_options

__all__ = ["tapes"]


@click.group()
@global_options
def tapes(options: Globals) -> None:
    """Recorded tapes: the evidence of every run."""


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
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text + "\n", encoding="utf-8")
    else:
        click.echo(text)
    return 0
