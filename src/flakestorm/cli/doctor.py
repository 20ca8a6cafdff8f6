"""`flakestorm doctor`: does the agent do the same again, and what keeps it from that?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.errors import Misuse

if TYPE_CHECKING:
    from flakestorm.api import Project
    from flakestorm.api.diagnosing import Diagnosis

__all__ = ["doctor"]


@click.command(context_settings={"ignore_unknown_options": True})
@global_options
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def doctor(options: Globals, command: tuple[str, ...]) -> int:
    """Record one run, replay it, and list what differs with its likely source.

    Runs COMMAND, or else asks the configured agent the first golden prompt. It runs once against the real world; the
    replays (five, or --trials) get what the world said then, the same clock and the same draws.

    Exits 0 if nothing differed, 1 if something did, 3 if there was nothing to compare. With --format json, one
    `flakestorm-doctor/1` object.

    \b
    flakestorm doctor -- python agent.py "a flight to Oslo"
    """
    from flakestorm import api
    from flakestorm.api.diagnosing import REPLAYS, diagnose
    from flakestorm.cli.output import results_only

    if options.format not in (None, "json", "terminal"):
        raise Misuse(f"doctor has no form {options.format}; leave out --format, or say json")
    project = _running(options, command) if command else api.load(options.config_path)
    with tempfile.TemporaryDirectory(prefix="flakestorm-doctor-") as tapes, results_only():
        found = diagnose(
            project,
            api.Options(seed=options.seed, tapes=Path(tapes)),
            replays=options.trials or REPLAYS,
            done=lambda n: _tell(options, n),
        )
    if options.format == "json":
        import orjson

        text = orjson.dumps(_document(found), option=orjson.OPT_INDENT_2).decode()
    else:
        text = "\n".join(_lines(found))
    if options.output is None:
        click.echo(text)
    else:
        _write(options.output, text)
    return found.exit_code


def _running(options: Globals, command: tuple[str, ...]) -> Project:
    """The config, where there is one, with this command as its agent."""
    from msgspec.structs import replace

    from flakestorm import api
    from flakestorm.config.model import Agent, Config

    longest_ms = 300_000
    path = options.config_path
    if options.config is None and not path.exists():
        agent = {"type": "command", "start": list(command), "timeout": longest_ms}
        return api.Project(Config.of({"version": "2.0", "agent": agent, "golden_prompts": [""]}).at("."), path)
    config = api.load(path).config
    agent_ = Agent.of({"type": "command", "start": list(command), "cwd": str(Path.cwd()), "timeout": longest_ms})
    agent_ = replace(agent_, env=config.agent.env, mcp=config.agent.mcp)
    return api.Project(replace(config, agent=agent_, written_prompts=[""]).at(config.folder), path)


def _tell(options: Globals, n: int) -> None:
    import sys

    if not options.quiet and sys.stderr.isatty():
        click.echo("recorded" if n == 0 else f"replayed {n}", err=True)


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise Misuse(f"the findings cannot be written to {file}: {error.strerror}") from error


def _document(found: Diagnosis) -> dict[str, Any]:
    first = found.runs[0]
    return {
        "format": "flakestorm-doctor/1",
        "deterministic": {0: True, 1: False}.get(found.exit_code),
        "exit_code": found.exit_code,
        "replays": len(found.runs) - 1,
        "calls": found.calls,
        "error": first.error,
        "draws": found.draws.header,
        "divergences": [
            {
                "site": finding.difference.site,
                "where": finding.difference.where,
                "source": finding.difference.source,
                "recorded": finding.difference.recorded,
                "replayed": finding.difference.replayed,
                "replays": list(finding.replays),
            }
            for finding in found.findings
        ],
        "notes": list(found.notes),
    }


def _lines(found: Diagnosis) -> Iterator[str]:
    from flakestorm.reports.text import counted, one_line

    replays, first = len(found.runs) - 1, found.runs[0]
    if found.exit_code == 3:
        why = "it makes no call and says nothing" if first.error is None else one_line(first.error, 2000)
        yield f"could not be judged: {why}"
    elif found.exit_code == 0:
        same = f"{counted(found.calls, 'call')} and the output"
        yield f"deterministic: {same} were the same in {replays} of {replays} replays"
    else:
        sites = dict.fromkeys(finding.difference.site for finding in found.findings)
        yield f"not deterministic: {', '.join(sites)}"
    for finding in found.findings:
        difference = finding.difference
        yield f"{difference.site}: {difference.where} differs in {len(finding.replays)} of {replays} replays"
        yield f"  likely source: {difference.source} ({ADVICE[difference.source]})"
        yield f"  recorded  {one_line(difference.recorded, 300)}"
        yield f"  replayed  {one_line(difference.replayed, 300)}"
    if first.error is not None and found.exit_code != 3:
        yield f"note: the agent ended with an error: {one_line(first.error, 1000)}"
    for note in found.notes:
        yield f"note: {one_line(note, 1000)}"


ADVICE = {
    "clock": "a time that comes from elsewhere than Python's time and datetime",
    "uuid": "a uuid that comes from elsewhere than Python's uuid and os.urandom",
    "random": "a random value, or an address in memory, that comes from elsewhere than Python's random and os.urandom",
    "hash seed": "the order of a set, or hash(); sort it. PYTHONHASHSEED is the same in recordings and their replays",
    "concurrency": "threads or tasks whose order is open; wait for each, or sort what they found",
    "temp path": "the name of a temporary file; keep it out of requests",
    "pid": "the number of a process; keep it out of requests",
    "port": "the number of a free port; keep it out of requests",
    "unknown": "compare the two",
}
