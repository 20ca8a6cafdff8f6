"""`flakestorm verify`: does the agent answer, and does flakestorm see what it does?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from flakestorm.cli.options import Globals, global_options

if TYPE_CHECKING:
    from flakestorm.api import Project
    from flakestorm.boundary.census import Census
    from flakestorm.engine.events import Report

__all__ = ["check_reach", "verify"]


@click.command()
@global_options
def verify(options: Globals) -> int:
    """Start or reach the agent, ask it the first golden prompt, and say what crossed its boundary.

    One line for each seam tells how many calls it saw, and one for each provider variable where its calls are led. With
    --format json, one `flakestorm-verify/1` object.
    """
    return check_reach(options)


def check_reach(options: Globals) -> int:
    """What `verify` does; gives its exit code."""
    from flakestorm import api
    from flakestorm.cli.judging import how
    from flakestorm.cli.output import place_for, results_only

    project = api.load(options.config_path)
    unwritten = options._replace(format="json")  # of the report itself, whatever -o ends with
    place = place_for(unwritten, project.config, "verify")
    with results_only():
        report, census = project.probe(how(options, place))
    found = _document(project, report, census)
    if options.format == "json":
        import orjson

        click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
    else:
        for line in _lines(found):
            click.echo(line)
    return 0 if found["agent"]["answers"] else 3


def _document(project: Project, report: Report, census: Census) -> dict[str, Any]:
    """Everything `verify` found out."""
    agent = project.config.agent
    run = report.runs[0] if report.runs else None
    answers = run is not None and run.error is None
    resets = agent.reset_endpoint or agent.reset_function
    return {
        "format": "flakestorm-verify/1",
        "agent": {
            "reached": run is not None,
            "answers": answers,
            "latency_ms": None if run is None else run.latency_ms,
            "error": report.headline if run is None else run.error,
        },
        "boundary": {
            "calls": {} if run is None else run.calls,
            "seen": [] if run is None else list(run.seen),
            "gateway": census.gateway,
            "seams": dict(census.seams),
            "variables": dict(census.variables),
        },
        "reset": "works" if resets and answers else "failed" if resets else "none",
        "advice": [] if run is None else [*run.remarks, *_advice(project, sum(run.calls.values()), census)],
    }


def _advice(project: Project, calls: int, census: Census) -> Iterator[str]:
    """What to do about calls that are not seen."""
    from flakestorm.boundary.census import unseen

    agent = project.config.agent
    here = agent.type not in ("http", "command")
    if missed := unseen() if here else ():
        yield f"{', '.join(missed)}: imported by the agent, and seen by no seam: such calls are not recorded or broken"
    if calls:
        return
    if here:
        yield (
            "nothing was seen of this agent: if it does call somebody, it uses another client than these, or a process "
            "of its own"
        )
    elif agent.type == "http" and not agent.start and census.gateway:
        yield (
            f"a gateway stands at {census.gateway}, but nothing of this agent came through it: start the agent with "
            "the variables that `flakestorm gateway` printed"
        )
    elif agent.type == "http" and not agent.start:
        yield (
            "no fault can reach this agent: run `flakestorm gateway` in this folder and start the agent with the "
            "variables that it prints; or let flakestorm launch it (agent.start)"
        )
    else:
        yield (
            "nothing was seen of this agent: if it does call somebody, it reads neither its provider's base-URL "
            "variable nor HTTP_PROXY; give it one of the variables above"
        )


def _lines(found: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    from flakestorm.boundary.census import IN_PROCESS, OUTSIDE
    from flakestorm.reports.text import one_line

    agent, boundary = found["agent"], found["boundary"]
    if not agent["reached"]:
        yield "agent: not reachable"
        yield one_line(agent["error"], 2000)
        return
    yield f"agent: {'answers' if agent['answers'] else 'answers with an error'} ({agent['latency_ms']:g} ms)"
    if agent["error"] is not None:
        yield f"  {one_line(agent['error'], 2000)}"
    crossed = ", ".join(f"{n} {kind}" for kind, n in boundary["calls"].items() if n)
    seen = f" ({one_line(', '.join(boundary['seen']), 1000)})" if boundary["seen"] else ""
    yield f"boundary: {crossed or 'no call crossed it'}{seen}"
    for name, words in {**IN_PROCESS, **OUTSIDE}.items():
        yield f"  {'in process: ' if name in IN_PROCESS else ''}{words}: {boundary['seams'][name]}"
    if boundary["gateway"]:
        yield f"gateway: {boundary['gateway']}, that of `flakestorm gateway`"
    for name, upstream in boundary["variables"].items():
        yield f"  {name} -> {one_line(upstream, 500)}"
    if not boundary["variables"]:
        yield "provider variables: none were set for this agent"
    for advice in found["advice"]:
        yield f"note: {one_line(advice, 1000)}"
    yield f"reset: {'see the error above' if found['reset'] == 'failed' else found['reset']}"
