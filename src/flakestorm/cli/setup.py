"""Commands that help to get going: `init`, `verify`, `profiles`, `schema`."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.errors import Misuse

__all__ = ["check_reach", "init", "profiles", "schema", "verify"]

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
def verify(options: Globals) -> int:
    """Start or reach the agent, ask it the first golden prompt, and say what crossed its boundary."""
    return check_reach(options)


def check_reach(options: Globals) -> int:
    """What `verify` does; gives its exit code."""
    from flakestorm import api
    from flakestorm.cli.judge import how
    from flakestorm.cli.output import place_for, results_only
    from flakestorm.reports.text import one_line

    project = api.load(options.config_path)
    agent = project.config.agent
    place = place_for(options, project.config, "verify")
    with results_only():
        report = project.probe(how(options, place))
    if not report.runs:
        click.echo(f"agent: not reachable\n{one_line(report.headline, 2000)}")
        return 3
    run = report.runs[0]
    click.echo(f"agent: {'answers' if run.error is None else 'answers with an error'} ({run.latency_ms:g} ms)")
    if run.error is not None:
        click.echo(f"  {one_line(run.error, 2000)}")
    crossed = ", ".join(f"{n} {kind}" for kind, n in run.calls.items() if n)
    seen = f" ({one_line(', '.join(run.seen), 1000)})" if run.seen else ""
    click.echo(f"boundary: {crossed or 'no call crossed it'}{seen}")
    if not crossed and agent.start is None and agent.type != "python":
        click.echo(
            "  no fault can reach this agent: let flakestorm launch it (agent.start), or run it in process "
            "(agent.type: python), so that its calls pass the boundary"
        )
    resets = agent.reset_endpoint or agent.reset_function
    click.echo(f"reset: {'works' if resets and run.error is None else 'see the error above' if resets else 'none'}")
    return 0 if run.error is None else 3


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
