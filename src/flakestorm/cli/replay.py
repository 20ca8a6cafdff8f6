"""`flakestorm replay run | export | import`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from flakestorm import api
from flakestorm.cli.judging import carry_out, resume_option
from flakestorm.cli.options import Globals, from_option, global_options
from flakestorm.config.replays import ReplaySession
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
@click.option("--from-langsmith", "run_id", metavar="ID", help="Fetch this LangSmith run as a session.")
@click.option("--from-langsmith-project", "project", metavar="P", help="Fetch the runs of this LangSmith project.")
@click.option(
    "--filter-status", "status", type=click.Choice(["error", "warning", "all"]), help="Which of its runs (error)."
)
@click.option("--run", "now", is_flag=True, help="Replay what was fetched; without it, it is only written to files.")
@resume_option
def run(
    options: Globals,
    path: Path | None,
    run_id: str | None,
    project: str | None,
    status: str | None,
    now: bool,
    resume: str | None,
) -> int:
    """Replay sessions and judge each by its contract.

    The model is live; the tools that a session lists never are: their n-th call gets the n-th recorded reply. PATH is a
    session file (YAML or JSON), a tape, a folder of them, or the id of a session in the config. Without PATH the
    config's `replays` are run.

    With --from-langsmith the sessions are fetched first and written to a folder (sessions, or, without --run, the one
    that -o names). The key is taken from LANGSMITH_API_KEY. With --resume all sessions are run again, by the same seed.

    Fails on any failing session.
    """
    if run_id is not None or project is not None:
        if path is not None or (run_id is not None and project is not None):
            raise Misuse("give one of PATH, --from-langsmith and --from-langsmith-project")
        if status is not None and project is None:
            raise Misuse("--filter-status chooses among the runs of a project; give --from-langsmith-project too")
        files = _fetched(options, run_id, project, status, now)
        if not now:
            return 0
        return carry_out(options, "replay run", lambda project, told: project.replay(files, told), resume=resume)
    if status is not None:
        raise Misuse("--filter-status is for --from-langsmith-project")
    return carry_out(options, "replay run", lambda project, told: project.replay(path, told), resume=resume)


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


@replay.command("import")
@global_options
@click.argument("files", metavar="FILE...", type=click.Path(path_type=Path), nargs=-1, required=True)
@from_option
@click.option("--contract", metavar="NAME", help="What judges the sessions; the config's contract if absent.")
def import_(options: Globals, files: tuple[Path, ...], form: str, contract: str | None) -> int:
    """Make sessions out of tapes and other tools' recordings, in the folder that -o names (sessions).

    Traces of OpenTelemetry, Langfuse and LangSmith, VCR cassettes and tapes: what the agent was asked, and what its
    tools said. A file that cannot be imported is named with the reason, the others are imported, and the exit code
    is 2.
    """
    from flakestorm.api.sources import from_file, write_sessions
    from flakestorm.errors import FlakestormError
    from flakestorm.reports.text import visible

    name = contract or "default"
    tools: tuple[tuple[str, str], ...] = ()
    if options.config is not None or options.config_path.exists():
        config = api.load(options.config_path).config
        name = contract or (config.contract.name if config.contract is not None else name)
        tools = tuple(config.boundary.tools.items())
    refused, sessions = 0, []
    for file in files:
        try:
            sessions += from_file(file, contract=name, form=form, tools=tools)
        except FlakestormError as error:
            click.echo(f"error: {visible(str(error))}", err=True)
            refused += 1
    _say(sessions, write_sessions(sessions, options.output or Path("sessions")))
    return 2 if refused else 0


def _fetched(options: Globals, run_id: str | None, project: str | None, status: str | None, now: bool) -> list[Path]:
    """Fetch from LangSmith, and write what came.

    Raises:
        Misuse: nothing came, or LangSmith refuses.
    """
    from flakestorm.api.sources import from_langsmith, write_sessions
    from flakestorm.config.replays import LangSmithFilter, LangSmithProject

    config = api.load(options.config_path).config
    known = [s for s in config.replays.sources if isinstance(s, LangSmithProject) and s.project == project]
    asked = (known[0].filter if known else None) or LangSmithFilter()
    wanted = None
    if project is not None:
        chosen = LangSmithFilter(
            status=status or asked.status,  # type: ignore[arg-type]
            date_range=asked.date_range,
            min_latency_ms=asked.min_latency_ms,
        )
        wanted = LangSmithProject(project=project, filter=chosen)
    name = config.contract.name if config.contract is not None else "default"
    sessions = from_langsmith(contract=name, run=run_id, project=wanted)
    if not sessions:
        raise Misuse(
            f"the LangSmith project {project!r} has no run that the filter lets through (--filter-status all?)"
        )
    files = write_sessions(sessions, Path("sessions") if now else options.output or Path("sessions"))
    _say(sessions, files)
    return files


def _say(sessions: Sequence[ReplaySession], files: Sequence[Path]) -> None:
    for session, file in zip(sessions, files, strict=True):
        click.echo(f"{file}: {counted(len(session.tool_responses), 'recorded tool result')}", err=True)
