"""`flakestorm replay run | export | import`."""

from __future__ import annotations

from pathlib import Path

import click

from flakestorm import api
from flakestorm.cli.judge import carry_out
from flakestorm.cli.options import Globals, global_options
from flakestorm.errors import Misuse
from flakestorm.reports.text import counted

__all__ = ["replay"]


@click.group()
@global_options
def replay(options: Globals) -> None:
    """Replay incidents against a contract; export and import them."""


@replay.command()
@global_options
@click.argument("path", metavar="[PATH|DIR]", type=click.Path(path_type=Path), required=False)
def run(options: Globals, path: Path | None) -> int:
    """Replay sessions and judge each by its contract.

    The model is live; the tools that a session lists never are: their n-th call gets the n-th recorded reply. PATH is a
    session file (YAML or JSON), a tape, a folder of them, or the id of a session in the config. Without PATH the
    config's `replays` are run.

    Fails on any failing session.
    """
    return carry_out(options, "replay run", lambda project, told: project.replay(path, told))


@replay.command()
@global_options
@click.option(
    "--from-report", "report", metavar="FILE|REPORT", required=True, help="A JSON report, or a saved one's id."
)
@click.option("--run", "run_id", metavar="ID", help="Only this run, failing or not.")
def export(options: Globals, report: str, run_id: str | None) -> int:
    """Write sessions for the failing runs of a report, in the folder that -o names (sessions).

    A session holds the input that was really sent, what the tools said to the agent, the faults of the model, and the
    contract by name; the run's tape is copied beside it. `replay run` on the folder fails until the agent is fixed.
    """
    from flakestorm.api.exporting import export as write
    from flakestorm.cli.saved import report_named

    found = report_named(report, options)
    project = api.load(_config_of(options, found.config))
    folder = options.output or Path("sessions")
    made = write(found, project.config, folder, run=run_id)
    if not made:
        raise Misuse(f"{report}: no run of it failed, so there is nothing to export; --run ID exports one all the same")
    for each in made:
        click.echo(f"{each.file}: {each.run}, {counted(each.replies, 'recorded tool result')}")
    return 0


def _config_of(options: Globals, named: str) -> Path:
    """The config that -c names, else the one that the report was made with, where it is still there."""
    if options.config is None and named and Path(named).is_file():
        return Path(named)
    return options.config_path
