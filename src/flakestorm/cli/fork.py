"""`flakestorm fork`: the recorded program again, with one change at one site."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.trust import approval, tell_unsealed, trust_option
from flakestorm.errors import Misuse, TapeMismatch

if TYPE_CHECKING:
    from flakestorm.api.forked import Change, Forked
    from flakestorm.tape.fork import Tools

__all__ = ["fork"]

_MOST_BYTES = 64 * 2**20


@click.command(short_help="Run a tape's program again with one change at a site, and live after it.")
@global_options
@click.option("--at", "site", required=True, metavar="SITE", help="Where, e.g. tool/search#1.")
@click.option("--set", "file", type=click.Path(path_type=Path), help="Another reply: the whole body.")
@click.option("--fault", metavar="MODE", help="A fault on the recorded reply, e.g. error:503.")
@click.option("--resample", is_flag=True, help="Ask the world again.")
@click.option("--model", metavar="NAME", help="Ask another model of the same provider.")
@click.option("--tools", type=click.Choice(["live", "tape"]), default="live", help="Who answers tools after SITE.")
@click.option(
    "--restore",
    metavar="COMMAND",
    help="Run this at SITE: it makes the environment what it was there; default: the config's agent.restore.",
)
@trust_option
@click.argument("tape", type=click.Path(path_type=Path))
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND [ARG]...]")
def fork(
    options: Globals,
    site: str,
    file: Path | None,
    fault: str | None,
    resample: bool,
    model: str | None,
    tools: str,
    restore: str | None,
    trusted: bool,
    tape: Path,
    command: tuple[str, ...],
) -> int:
    """Run what was recorded again: calls before SITE are answered by the tape, at SITE one change applies, and after it
    the world answers. The new run is a tape of its own, in the file that -o names. Of a recording
    that the file held, a copy is kept in .flakestorm/tapes.

    \b
    flakestorm fork a.tape --at tool/search#1 --set empty.json -o b.tape
    flakestorm fork a.tape --at llm/gpt-4o#2 --resample --tools tape -o b.tape
    flakestorm fork a.tape --at tool/search#1 --fault error:503 -o b.tape -- python agent.py

    Runs the command that the tape names, or COMMAND here, or asks the recorded config's agent. What a tape names that
    is not known to be yours is not run, unless you say so: at the question (on a terminal), or with --trust-tape.

    Exit code: 0 forked (however the program then ended), 1 the program did something else before SITE, 2 usage, or
    the tape has no such site or is damaged, 3 the environment could not be restored.
    """
    if options.output is None:
        raise Misuse("name the file of the new tape with -o")
    change = _change(file, fault, resample, model)
    from flakestorm.api import load
    from flakestorm.api.forking import fork_program
    from flakestorm.api.snapshots import command_hook
    from flakestorm.cli.record import named_tools
    from flakestorm.tape.shelf import make_room

    if not _same(tape, options.output):  # that it is the tape itself is told as such
        make_room(options.output, partial(click.echo, err=True), forks=True)
    configured = options.config is not None or options.config_path.exists()
    project = load(options.config_path) if configured else None
    boundary = None if project is None else project.config.boundary
    try:
        forked = fork_program(
            tape,
            site,
            options.output,
            change,
            command,
            project=project,
            tools=cast("Tools", tools),
            names=named_tools(None if project is None else project.config),
            mode="renamed" if boundary is None else boundary.match,
            restore=None if restore is None else command_hook(restore, tape, key="--restore"),
            seed=options.seed or 0,
            quiet=options.format == "json",
            approve=approval(trusted=trusted),
        )
    except TapeMismatch as error:
        from flakestorm.tape.text import plain

        click.echo(f"not forked: before {site}, the program did something else than was recorded:", err=True)
        for problem in error.problems:
            click.echo(f"  {plain(problem)}", err=True)
        return 1
    _tell(options, tape, change, forked)
    tell_unsealed(quiet=options.quiet)
    return 130 if forked.interrupted else 0


def _same(tape: Path, other: Path) -> bool:
    return tape.exists() and other.exists() and tape.samefile(other)


def _change(file: Path | None, fault: str | None, resample: bool, model: str | None) -> Change:
    from flakestorm.api.forked import Change

    if sum((file is not None, fault is not None, resample, model is not None)) != 1:
        raise Misuse("say what is changed at the site: --set FILE, --fault MODE, --resample or --model NAME")
    if file is None:
        return Change(None, fault, model)
    try:
        with file.open("rb") as opened:
            body = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Misuse(f"the reply {file} cannot be read: {error.strerror}") from error
    if len(body) > _MOST_BYTES:
        raise Misuse(f"the reply {file} is larger than 64 MB")
    return Change(body)


def _tell(options: Globals, tape: Path, change: Change, forked: Forked) -> None:
    if options.format == "json":
        import orjson

        document = {
            "format": "flakestorm-fork/1",
            "tape": str(forked.path),
            "parent": str(tape),
            "site": str(forked.site),
            "change": str(change),
            "environment": forked.environment,
            "why": forked.why,
            "served": forked.served,
            "live": list(forked.live),
            "unanswered": list(forked.unanswered),
            "output": forked.output,
            "error": forked.error,
        }
        click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    if forked.code is None:  # what a command says has passed through
        click.echo(forked.output, nl=bool(forked.output))
    if options.quiet:
        return
    from flakestorm.tape.text import plain

    calls = f"{forked.served} call{'' if forked.served == 1 else 's'} from the tape"
    click.echo(
        f"forked at {plain(str(forked.site))} ({plain(str(change))}): {calls}, {len(forked.live)} live", err=True
    )
    for each in forked.unanswered:
        click.echo(f"  not on the tape: {plain(each)}", err=True)
    if forked.error is not None:
        click.echo(f"the program failed: {plain(forked.error)}", err=True)
    click.echo(f"environment: {forked.environment} ({plain(forked.why)})", err=True)
    click.echo(f"wrote {plain(str(forked.path))}", err=True)
