"""`flakestorm shrink`: the smallest form of a failing case."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from flakestorm import api
from flakestorm.cli.judge import how
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.output import place_for, results_only, watching
from flakestorm.cli.saved import report_named
from flakestorm.errors import Misuse

__all__ = ["shrink"]

SESSION_LIMIT_BYTES = 16 * 1024 * 1024


@click.command()
@global_options
@click.argument("case")
@click.option("--budget", type=click.IntRange(min=2), metavar="RUNS", help="Make at most so many runs (200).")
@click.option("--shorten", is_flag=True, help="Also look for a shorter input than the golden prompt.")
def shrink(options: Globals, case: str, budget: int | None, shorten: bool) -> int:
    """Reduce a failing case to its smallest form.

    CASE is a report and one of its runs (FILE#RUN, or ID#RUN of a saved one), a tape, or a session file. The last line
    is a command that shows the failure again with as few, as weak and as early faults as can be; -o FILE also writes it
    as a session.

    \b
    flakestorm shrink reports/latest/report.json#r-0007
    """
    from flakestorm.api import shrinking

    project = api.load(options.config_path)
    place = place_for(options, project.config, "shrink")
    found = _case(case, options, project)
    with results_only(), watching(options) as shown:
        smallest = project.shrink(found, how(options, place, listener=shown), budget=budget, shorter=shorten)
    if smallest.case is None:
        click.echo(f"{case}: {smallest.why} ({smallest.runs} runs)", err=True)
        return 130 if smallest.interrupted else 3
    if options.output is not None:
        contract = project.config.contract.name if project.config.contract else "default"
        _write(options.output, shrinking.session_of(smallest, contract=contract))
        click.echo(f"session: {options.output}")
    if not options.quiet:
        before, after = len(found.atoms), len(smallest.case.atoms)
        click.echo(
            f"{before} -> {after} faults in {smallest.runs} runs; breaks {smallest.invariant}: {smallest.reason}"
        )
    if smallest.interrupted:
        click.echo(f"{smallest.why}: this fails, and may not be the smallest", err=True)
    sys.stdout.flush()
    click.echo(smallest.line)
    return 130 if smallest.why == "interrupted" else 1


def _case(name: str, options: Globals, project: api.Project) -> Any:
    """The case a user means.

    Raises:
        Misuse: there is none of that name, or it does not fail.
    """
    from flakestorm.api import shrinking

    golden = project.config.golden_prompts
    if "#" not in name and name.endswith((".yaml", ".yml", ".json")) and (session := _session(Path(name))) is not None:
        return session
    if "#" not in name and Path(name).is_file() and not name.endswith(".json"):
        return shrinking.case_of_tape(Path(name), golden=golden)
    file, _, run = name.rpartition("#") if "#" in name else (name, "", "")
    report = report_named(file, options)
    failing = {cell.run: cell.invariant for cell in reversed(report.cells) if cell.verdict == "fail"}
    failing |= {finding.run: finding.invariant for finding in report.findings}
    ids = {each.id: each for each in report.runs}
    chosen = run or next(iter(sorted(failing)), "")
    if chosen not in ids:
        known = ", ".join(sorted(failing)[:5]) or "none failed"
        raise Misuse(f"{name}: the report has no run {run or 'that failed'}; runs that failed: {known}")
    return shrinking.case_of_run(ids[chosen], golden=golden, invariant=failing.get(chosen, ""), seed=report.seed)


def _session(path: Path) -> Any:
    """The case of a session file: its input, and an error for each tool reply that was one; None if it is none."""
    import yaml

    from flakestorm.api.shrinking import Case
    from flakestorm.config.replays import ReplaySession
    from flakestorm.core.conversation import prompt_of
    from flakestorm.core.site import Sites
    from flakestorm.engine.atoms import Atom

    try:
        if path.stat().st_size > SESSION_LIMIT_BYTES:
            return None
        found = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise Misuse(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise Misuse(f"{path}: not a session: {str(error).splitlines()[0]}") from error
    if not isinstance(found, dict) or "format" in found or "input" not in found:
        return None
    try:
        session = ReplaySession.of(found)
    except ValueError as error:
        raise Misuse(f"{path}: not a session: {error}") from error
    sites, atoms = Sites(), set[Atom]()
    for reply in session.tool_responses:
        site = sites.next("tool", reply.tool)
        if reply.status is not None and reply.status >= 400:
            atoms.add(Atom(site, f"error:{min(reply.status, 599)}"))
        elif reply.status == 0:
            atoms.add(Atom(site, "connection_reset"))
    return Case(frozenset(atoms), None, prompt_of(session.input))


def _write(path: Path, session: dict[str, object]) -> None:
    import yaml

    from flakestorm.reports.files import write_whole

    text = yaml.safe_dump(session, sort_keys=False, allow_unicode=True)
    write_whole(path, text.encode("utf-8", "replace"))
