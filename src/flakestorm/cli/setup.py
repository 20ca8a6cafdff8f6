"""Commands that help to get going: `init`, `profiles`, `schema`."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.errors import Misuse

__all__ = ["init", "profiles", "schema"]

_USUAL_PORTS = (8000, 8080, 5000, 3000)


@click.command()
@global_options
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init(options: Globals, path: Path | None, force: bool) -> int:
    """Write a commented starter config to PATH (flakestorm.yaml)."""
    from flakestorm.config.starter import starter

    target = path or options.config_path
    if target.is_dir():
        target = target / "flakestorm.yaml"
    if target.exists() and not force:
        raise Misuse(f"{target} exists already; use --force to overwrite it")
    port = next((p for p in _USUAL_PORTS if _listens(p)), None)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(starter(port=port), encoding="utf-8")
    except OSError as error:
        raise Misuse(f"{target} cannot be written: {error.strerror}") from error
    told = f" (something listens on port {port}: it is the endpoint)" if port else ""
    click.echo(f"wrote {target}{told}\nnext: edit it, then `flakestorm verify` and `flakestorm contract run`")
    return 0


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@click.command()
@global_options
def profiles(options: Globals) -> int:
    """List the built-in chaos profiles."""
    from flakestorm.faults import profiles as known
    from flakestorm.faults.schedule import Schedule

    found = [(profile, Schedule.written(profile.scenario)) for profile in map(known.profile, known.names())]
    if options.format == "json":
        listing = [{"name": p.name, "description": p.description, "faults": s.describe()} for p, s in found]
        click.echo(json.dumps(listing, indent=2))
        return 0
    for profile, schedule in found:
        click.echo(f"{profile.name}: {profile.description}")
        for line in schedule.describe():
            click.echo(f"    {line}")
    return 0


@click.command()
@global_options
def schema(options: Globals) -> int:
    """Print the JSON Schema of flakestorm.yaml, for editors and validators."""
    import orjson

    from flakestorm.config.schema import schema as make

    text = orjson.dumps(make(), option=orjson.OPT_INDENT_2).decode()
    output = options.output
    if output is not None:
        output.write_text(text + "\n", encoding="utf-8")
    else:
        click.echo(text)
    return 0
