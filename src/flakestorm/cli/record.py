"""`flakestorm record`: the calls of a program, or of the configured agent, onto a tape."""

from __future__ import annotations

import os
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.trust import tell_unsealed
from flakestorm.core.conversation import prompt_of
from flakestorm.errors import Misuse

if TYPE_CHECKING:
    from flakestorm.config.model import Config

__all__ = ["config_of", "named_tools", "record"]


@click.command(
    context_settings={"allow_interspersed_args": False},
    short_help="Run a program or the configured agent, and record its calls on a tape.",
)
@global_options
@click.option(
    "--input", "texts", multiple=True, metavar="TEXT", help="Give the configured agent this input; several are turns."
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND [ARG]...")
def record(options: Globals, texts: tuple[str, ...], command: tuple[str, ...]) -> int:
    """Run a program, or give the configured agent an input, and record what crosses its boundary.

    The program's input, output and exit code pass through. The tape goes to the file that -o names, by default to
    .flakestorm/tapes; a copy of what that file held is kept there too. `boundary.tools` of the config, where there is
    one, names plain-HTTP tools, and `boundary.redact` what else is secret.

    \b
    flakestorm record -o booking.tape -- python agent.py "a flight to Oslo"
    flakestorm record -o booking.tape --input "a flight to Oslo"
    flakestorm verify-tape booking.tape
    """
    from flakestorm.tape.shelf import in_store, make_room

    if bool(command) == bool(texts):
        raise Misuse("say what to record: a program (record -- COMMAND), or an input for the agent (--input TEXT)")
    path = options.output or in_store(f"record-{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}.tape")
    make_room(path, partial(click.echo, err=True))
    if texts:
        return _agent(options, prompt_of(texts), path)
    from flakestorm.api.recording import record_command
    from flakestorm.api.snapshots import snapshots_of

    config = config_of(options)
    snapshots = snapshots_of(config, path)
    ran = record_command(
        command,
        path,
        tools=named_tools(config),
        config=config,
        within=snapshots.stages,
        told=lambda count: _tell(options, count, path, snapshots.failure),
    )
    return 130 if ran.interrupted and ran.code == 0 else ran.code


def config_of(options: Globals) -> Config | None:
    """The config, where there is one."""
    if options.config is None and not options.config_path.exists():
        return None
    from flakestorm.config import load

    return load(options.config_path)


def named_tools(config: Config | None) -> tuple[tuple[str, str], ...]:
    """What the config calls plain-HTTP tools."""
    if config is None:
        return ()
    from flakestorm.config import tools_of

    return tuple(tools_of(config))


def _agent(options: Globals, text: str, path: Path) -> int:
    from flakestorm.api import Options, load
    from flakestorm.api.asking import ask
    from flakestorm.api.recording import folder_for, moment
    from flakestorm.api.snapshots import snapshots_of
    from flakestorm.boundary.draws import fresh
    from flakestorm.tape.lanes import CONNECTIONS

    folder_for(path)
    project = load(options.config_path)
    facts = {
        "command": {"config": str(options.config_path.absolute())},
        "utc_offset_s": moment()["utc_offset_s"],
    }
    if project.config.agent.type in ("http", "command"):
        facts["lanes"] = CONNECTIONS
    snapshots = snapshots_of(project.config, path)
    run = ask(project, text, path, Options(seed=options.seed), within=snapshots.stages, facts=facts, draws=fresh())
    click.echo(run.output or "", nl=bool(run.output))
    _tell(options, sum(run.calls.values()), path, snapshots.failure)
    if run.error is None:
        return 0
    from flakestorm.reports.text import visible

    click.echo(f"error: {visible(run.error)}", err=True)
    return 3 if run.error.startswith("unreachable") else 1


def _tell(options: Globals, count: int, path: Path, failure: str | None) -> None:
    if failure is not None:
        click.echo(f"warning: {failure}; the tape is whole, but a fork from there on has nothing to restore", err=True)
    tell_unsealed(quiet=options.quiet)
    if not options.quiet:
        click.echo(f"recorded {count} call{'' if count == 1 else 's'} on {path}", err=True)
