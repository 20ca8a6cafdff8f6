"""`flakestorm shrink`: the smallest form of a failing case."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from flakestorm import api
from flakestorm.cli.forms import text, write
from flakestorm.cli.judging import how, resume_option
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.output import ON_STDOUT, how_to_resume, place_for, results_only, watching
from flakestorm.cli.saved import both, report_named, saving, store_folder
from flakestorm.errors import Misuse
from flakestorm.reports.text import counted, one_line

__all__ = ["shrink"]

_SHOWN = 9
SESSION_LIMIT_BYTES = 16 * 1024 * 1024


@click.command()
@global_options
@click.argument("case")
@click.option("--budget", type=click.IntRange(min=2), metavar="RUNS", help="Make at most so many runs (200).")
@click.option("--shorten", is_flag=True, help="Also look for a shorter input than the golden prompt.")
@resume_option
def shrink(options: Globals, case: str, budget: int | None, shorten: bool, resume: str | None) -> int:
    """Reduce a failing case to its smallest form.

    CASE is a report and one of its runs (FILE#RUN, or ID#RUN of a saved one; without #RUN the first that failed, and it
    is said which), a tape, or a session file (FILE#ID, where it holds several). The last line is a command that shows
    the failure again with as few, as weak and as early faults as can be; -o FILE also writes it as a session. With
    --format json, one `flakestorm-report/1` object instead: its finding is the smallest form.

    \b
    flakestorm shrink reports/latest/report.json#r-0007
    """
    from flakestorm.api import shrinking
    from flakestorm.sessions.files import write_session

    project = api.load(options.config_path)
    form = (
        options.format or project.config.output.format
    )  # -o is a session's file, whose suffix says nothing of reports
    place = place_for(options._replace(format=form), project.config, "shrink")
    found = _case(case, options, project)
    earlier = None if resume is None else report_named(resume, options)
    with (
        results_only(),
        watching(options) as shown,
        saving(store_folder(options, project.config)) as save,
    ):
        told = how(options, place, listener=both(shown, save), resume=earlier)
        smallest = project.shrink(found, told, budget=budget, shorter=shorten)
    file = None
    if options.output is None and smallest.report is not None:
        file = write(smallest.report, "json", place.folder / "report.json")
    if options.output is not None and smallest.case is not None:
        about = [f"The smallest form of {case}. Shows the failure without it: {smallest.line}"]
        write_session(shrinking.session_of(smallest, project.config), options.output, about=about)
    document = smallest.report if options.format in ON_STDOUT else None
    if not options.quiet and document is None:
        _tell(smallest, len(found.atoms), options.output or file)
    if save.problem is not None:
        click.echo(f"note: this report was not saved for later: {one_line(save.problem, 1000)}", err=True)
    if smallest.interrupted:
        what = "nothing was made smaller yet" if smallest.case is None else "this fails, and may not be the smallest"
        click.echo(f"{smallest.why}: {what}", err=True)
        if smallest.report is not None:
            click.echo(how_to_resume(smallest.report, [file] if file else [], save), err=True)
    elif smallest.case is None:
        click.echo(f"{case}: {smallest.why} ({smallest.runs} runs)", err=True)
    sys.stdout.flush()
    if document is not None:
        click.echo(text(document, place.form))
    elif smallest.case is not None:
        click.echo(smallest.line)
    return 3 if smallest.report is None else smallest.report.exit_code


def _tell(smallest: Any, before: int, file: Path | None) -> None:
    """What became of the case, what a reader must know, and where it was written."""
    if smallest.case is not None:
        click.echo(
            f"{before} -> {len(smallest.case.atoms)} faults in {smallest.runs} runs; "
            f"breaks {smallest.invariant}: {smallest.reason}"
        )
    for note in smallest.report.notes if smallest.report is not None else ():
        click.echo(f"note: {one_line(note, 1000)}")
    if file is not None and file.exists():
        click.echo(f"{'report' if file.name == 'report.json' else 'session'}: {file}")


def _case(name: str, options: Globals, project: api.Project) -> Any:
    """The case a user means.

    Raises:
        Misuse: there is none of that name, or it does not fail.
    """
    from flakestorm.api import shrinking

    golden = project.config.golden_prompts
    where, _, of = name.rpartition("#") if "#" in name else (name, "", "")
    if where.endswith((".yaml", ".yml", ".json")) and (Path(where).exists() or not of):
        session = _session(Path(where), of)
        if session is not None:
            return session
    if "#" not in name and Path(name).is_file() and not name.endswith(".json"):
        return shrinking.case_of_tape(Path(name), golden=golden)
    report = report_named(where, options)
    failing = {cell.run: cell.invariant for cell in reversed(report.cells) if cell.verdict == "fail"}
    failing |= {finding.run: finding.invariant for finding in report.findings}
    ids = {each.id: each for each in report.runs}
    chosen = of or next((each for each in ids if each in failing), "")
    if not chosen:
        raise Misuse(f"{name}: no run of this report failed, so there is nothing to shrink; {where}#RUN takes any run")
    if chosen not in ids:
        known = ", ".join(sorted(failing)[:5]) or "none"
        raise Misuse(f"{name}: the report has no run {of}; runs that failed: {known}")
    others = [each for each in ids if each in failing and each != chosen]
    if not of and others:
        some = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
        click.echo(
            f"{counted(len(others) + 1, 'run')} of {where} failed; this is {chosen}. Say which for another: "
            f"{where}#{others[0]} ({some})",
            err=True,
        )
    return shrinking.case_of_run(ids[chosen], golden=golden, invariant=failing.get(chosen, ""), seed=report.seed)


def _session(path: Path, name: str) -> Any:
    """The case of a session in a file; None if it holds none.

    Args:
        path: the file.
        name: the session's id; empty where it has only one.
    """
    import yaml

    from flakestorm.api.shrinking import case_of_session
    from flakestorm.config.replays import ReplaySession
    from flakestorm.reports.document import FORMAT

    try:
        if path.stat().st_size > SESSION_LIMIT_BYTES:
            return None
        data = path.read_bytes()
        if FORMAT.encode() in data[:200]:
            return None
        found = yaml.safe_load(data)
    except OSError as error:
        raise Misuse(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise Misuse(f"{path}: not a session: {str(error).splitlines()[0]}") from error
    several = found.get("sessions") if isinstance(found, dict) and set(found) == {"sessions"} else found
    if isinstance(several, list):
        found = _one_of(several, path, name)
    if not isinstance(found, dict) or "format" in found or "input" not in found:
        return None
    try:
        session = ReplaySession.of(found)
    except ValueError as error:
        raise Misuse(f"{path}: not a session: {error}") from error
    if name and session.id != name:
        raise Misuse(f"{path}: there is no session {name!r} in it; there is {session.id}")
    return case_of_session(session)


def _one_of(sessions: list[Any], path: Path, name: str) -> Any:
    """The session of this id; without one, the only one there is.

    Raises:
        Misuse: there is none, or there are several.
    """
    ids = [str(each.get("id", "")) if isinstance(each, dict) else "" for each in sessions]
    if not name and len(sessions) == 1:
        return sessions[0]
    if name in ids:
        return sessions[ids.index(name)]
    known = ", ".join(each for each in ids[:_SHOWN] if each)
    if name:
        raise Misuse(f"{path}: there is no session {name!r} in it; there are {known or 'none'}")
    raise Misuse(
        f"{path} holds {counted(len(sessions), 'session')} ({known}); say which: {path}#{ids[0]}"
        if sessions
        else f"{path} holds no session"
    )
