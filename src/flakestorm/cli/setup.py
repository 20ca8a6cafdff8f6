"""Commands that help to get going: `init`, `profiles`, `schema`, `completion`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.errors import Misuse

__all__ = ["completion", "init", "profiles", "schema"]


@click.command()
@global_options
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--port", "ports", type=int, multiple=True, metavar="N", help="Look for a running agent at this port.")
@click.option("--no-probe", is_flag=True, help="Ask nothing that runs on this machine; only read files.")
def init(options: Globals, path: Path | None, force: bool, ports: tuple[int, ...], no_probe: bool) -> int:
    """Write a commented starter config to PATH (flakestorm.yaml), for the agent that is found there.

    An agent that runs on a usual port is found by its /openapi.json, or greeted once; files are read, never run.
    """
    from flakestorm.config.starter import starter
    from flakestorm.discovery.project import find
    from flakestorm.discovery.running import PORTS
    from flakestorm.reports.text import visible

    target = path or options.output or options.config_path
    if target.is_dir():
        target = target / "flakestorm.yaml"
    if target.exists() and not force:
        raise Misuse(f"{target} exists already; use --force to overwrite it")
    found = find(target.parent, ports=() if no_probe else ports or PORTS)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(starter(found), encoding="utf-8")
    except OSError as error:
        raise Misuse(f"{target} cannot be written: {error.strerror}") from error
    click.echo(f"wrote {target}")
    for note in found.notes:
        click.echo(f"found {visible(note)}")
    if tools := [*found.urls, *found.functions]:
        click.echo(f"tools {visible(', '.join(tools))}")
    edit = "" if found.endpoint else "nothing was found here, so edit it, "
    named = "" if target == Path("flakestorm.yaml") else f" -c {shlex.quote(str(target))}"
    click.echo(f"next: {edit}`flakestorm verify{named}`, then `flakestorm contract run{named}`")
    return 0


@click.command()
@global_options
def profiles(options: Globals) -> int:
    """List the built-in chaos profiles."""
    from flakestorm.faults import profiles as known
    from flakestorm.faults.schedule import Schedule

    found = [(profile, Schedule.written(profile.scenario)) for profile in map(known.profile, known.names())]
    if options.format == "json":
        listing = [{"name": p.name, "description": p.description, "faults": s.describe()} for p, s in found]
        return _put(json.dumps(listing, indent=2), options.output)
    lines = ((f"{p.name}: {p.description}", *(f"    {line}" for line in s.describe())) for p, s in found)
    return _put("\n".join(line for each in lines for line in each), options.output)


@click.command()
@global_options
def schema(options: Globals) -> int:
    """Print the JSON Schema of flakestorm.yaml, for editors and validators."""
    import orjson

    from flakestorm.config.schema import schema as make

    return _put(orjson.dumps(make(), option=orjson.OPT_INDENT_2).decode(), options.output)


def _put(text: str, output: Path | None) -> int:
    """Print the text, or write it to the file that -o names.

    Raises:
        Misuse: it cannot be written there.
    """
    if output is None:
        click.echo(text)
        return 0
    from flakestorm.reports.files import write_whole

    write_whole(output, f"{text}\n".encode())
    return 0


@click.command()
@global_options
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(_: Globals, shell: str) -> int:
    """Print the script that lets your shell complete commands and options.

    \b
    bash, in ~/.bashrc:                   eval "$(flakestorm completion bash)"
    zsh, in ~/.zshrc:                     eval "$(flakestorm completion zsh)"
    fish: flakestorm completion fish > ~/.config/fish/completions/flakestorm.fish
    """
    from click.shell_completion import get_completion_class

    from flakestorm.cli.main import cli

    made = get_completion_class(shell)
    if made is None:
        raise Misuse(f"this version of click completes nothing for {shell}")
    script = made(cli, {}, "flakestorm", "_FLAKESTORM_COMPLETE")
    click.echo(script.source_template % script.source_vars())
    return 0
