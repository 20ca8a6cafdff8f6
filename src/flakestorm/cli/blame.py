"""`flakestorm blame TAPE|RUN`: which step made the run fail?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flakestorm.cli.judging import resume_option
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.saved import both, report_named, saving, store_folder
from flakestorm.cli.trust import approval, trust_option
from flakestorm.errors import Misuse

if TYPE_CHECKING:
    from flakestorm.api import Project
    from flakestorm.api.trusting import Approve
    from flakestorm.engine.events import Report, RunResult

__all__ = ["blame"]


@click.command(short_help="Find the step that made a recorded run fail, or say that it was no single one.")
@global_options
@click.option("--budget", type=click.IntRange(min=10), metavar="N", help="Make at most so many continuations (450).")
@click.option("--invariant", metavar="ID", help="The rule to go by (the most severe that the run breaks).")
@click.option("--healthy-input", "healthy", metavar="TEXT", help="What the agent should have been given as its input.")
@click.option("--try-model", metavar="NAME", default="", help="If a model call is blamed, have this model answer it.")
@click.option("--try-prompt", metavar="TEXT", default="", help="The same with TEXT added to its system prompt.")
@resume_option
@trust_option
@click.argument("name", metavar="TAPE|RUN")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND [ARG]...]")
def blame(
    options: Globals,
    budget: int | None,
    invariant: str | None,
    healthy: str | None,
    try_model: str,
    try_prompt: str,
    resume: str | None,
    trusted: bool,
    name: str,
    command: tuple[str, ...],
) -> int:
    """Find the step that made a recorded run fail, or say that it was no single one.

    \b
    flakestorm blame failed.tape
    flakestorm blame reports/20260102-150405-contract-run/report.json#r-0007
    flakestorm blame latest#r-0007 --invariant admits-outage

    The agent runs again and again: the tape answers up to an event, the real world from there on. RUN is a JSON report,
    or what the store knows it by, and the run's id (needed where more than one fails). What a tape, or a report in a
    file, names that is not known to be yours is not run, unless you say so: at the question (on a terminal), or with
    --trust-tape.

    Exit code: 0 a step is named, 1 there is none to name, 3 it cannot be told.
    """
    from flakestorm.api.blame_case import agent_of, case_of
    from flakestorm.api.blame_stages import Mending
    from flakestorm.api.blaming import blame as find
    from flakestorm.cli.forms import ahead
    from flakestorm.cli.judging import how
    from flakestorm.cli.output import place_for, present, results_only, watching
    from flakestorm.engine.blame import Terms
    from flakestorm.tape.match import MODES

    tape, run, breaks, report = _meant(name, options)
    approve = approval(trusted=trusted)
    project = _project(options, report, Path(name.partition("#")[0]), approve)
    work = agent_of(project, tape, command, approve=approve)
    case = case_of(
        work, tape, run=run, breaks=breaks, invariant=invariant, healthy=healthy,
        mode=next((each for each in MODES if each == work.config.boundary.match), "renamed"),
    )  # fmt: skip
    terms = Terms() if budget is None else Terms(budget=budget)
    place = place_for(options, work.config, "blame")
    with (
        results_only(),
        watching(options) as shown,
        saving(store_folder(options, work.config)) as save,
    ):
        earlier = None if resume is None else report_named(resume, options)
        listener = both(both(shown, save), ahead(place.form))
        told = how(options, place, listener=listener, resume=earlier)
        found = find(work, case, told, terms, Mending(try_model, try_prompt))
    return present(found, place, options, save)


def _project(options: Globals, report: Report | None, file: Path, approve: Approve) -> Project | None:
    """The config that is named, or lies here; else the report's own, if that may be run.

    Args:
        options: -c, and where to look.
        report: the report; file: where it was read, if not in the store.
        approve: whom to ask.
    """
    from flakestorm import api
    from flakestorm.api.trusting import demand_of_report

    if options.config is not None or options.config_path.exists():
        return api.load(options.config_path)
    if report is not None and report.config and Path(report.config).is_file():
        if file.is_file():
            demand_of_report(file, report.config, approve=approve)
        return api.load(report.config)
    return None


def _meant(name: str, options: Globals) -> tuple[Path, RunResult | None, tuple[str, ...], Report | None]:
    """The tape, and the run of a report that it is of, where it is one."""
    from flakestorm.api.blame_case import failing_run

    if Path(name).is_file() and not _is_report(Path(name)):
        return Path(name), None, (), None
    where, _, of = name.partition("#")
    if not of and not Path(where).is_file() and re.fullmatch(r"r-\d{4,}", where):
        where, of = _newest_with(where, options), where
    if Path(where).is_file() and not _is_report(Path(where)):
        raise Misuse(f"{where} is not a report; give a tape alone, or REPORT#RUN")
    report = report_named(where, options)
    run, breaks = failing_run(report, of)
    return Path(run.tape), run, breaks, report


def _newest_with(run: str, options: Globals) -> str:
    """The id of the newest saved report in which this run fails."""
    from flakestorm.store.sqlite import Store

    with Store(store_folder(options)) as store:
        for entry in store.entries():
            cells = store.document(entry.id).get("cells", [])
            if any(cell.get("run") == run and cell.get("verdict") == "fail" for cell in cells):
                return entry.id
    raise Misuse(f"no saved report has a run {run} that fails; `flakestorm report` lists the reports")


def _is_report(path: Path) -> bool:
    from flakestorm.reports.document import FORMAT

    with path.open("rb") as file:
        return FORMAT.encode() in file.read(200)
