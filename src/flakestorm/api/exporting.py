"""Failing runs of a report as sessions: the input that really failed, what the tools had said, and the contract."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from flakestorm.config.model import Config, ContextAttack, LlmFault
from flakestorm.config.replays import ReplaySession
from flakestorm.engine.events import CellResult, Report, RunResult
from flakestorm.errors import Misuse
from flakestorm.faults.schedule import parse_injection
from flakestorm.sessions.files import file_name, write_session
from flakestorm.sessions.taped import session_of
from flakestorm.tape.reader import Tape

__all__ = ["TOP_LEVEL", "Exported", "export", "session_for"]

TOP_LEVEL = "top-level"
"""As a session's contract: the config's top-level invariants."""

_SUFFIX = re.compile(r" \([^()]*\)$")


@dataclass(frozen=True, slots=True)
class Exported:
    """A session that was written.

    Args:
        file: where; tape: the run's tape, copied beside it.
        run: the run it was made of.
        replies: how many recorded tool replies it holds.
    """

    file: Path
    tape: Path
    run: str
    replies: int


def export(report: Report, config: Config, folder: Path, *, run: str | None = None) -> list[Exported]:
    """Write sessions for the failing runs of a report; of several trials of one cell that failed, for the first.

    Args:
        report: the report.
        config: of the project, for its contract.
        folder: where sessions go; tapes go to `tapes/` in it.
        run: only this run, failing or not.

    Raises:
        Misuse: there is no such run, its tape is gone, or a file cannot be written.
    """
    return [_exported(report, each, config, folder) for each in _chosen(report, run)]


def _chosen(report: Report, name: str | None) -> Sequence[RunResult]:
    if name is not None:
        found = [run for run in report.runs if name == run.id]
        if not found:
            known = ", ".join(run.id for run in report.runs[:10])
            raise Misuse(
                f"the report has no run {name!r}; its runs are {known}{' ...' if len(report.runs) > 10 else ''}"
            )
        return found
    failed = {cell.run for cell in report.cells if cell.verdict == "fail"}
    first = {(run.scenario, run.prompt, run.input): run for run in reversed(report.runs) if run.id in failed}
    return [run for run in report.runs if first.get((run.scenario, run.prompt, run.input)) is run]


def session_for(report: Report, run: RunResult, config: Config, **said: str) -> ReplaySession:
    """The session that a run of a report is.

    Args:
        report, run: which.
        config: names the rules.
        said: the session's `id` and `name`.

    Raises:
        Misuse: there is no tape of it, or no rule to judge it by.
    """
    broken = [cell for cell in report.cells if cell.run == run.id and cell.verdict == "fail"]
    source = Path(run.tape)
    if not run.tape or not source.is_file():
        raise Misuse(
            f"the tape of {run.id} is gone ({run.tape or 'none was written'}); run the command again and export then"
        )
    return session_of(
        Tape.open(source).exchanges(),
        input=[turn.input for turn in run.turns] or run.input,
        contract=_contract(report, run, broken, config),
        source=f"flakestorm {report.command}, {run.id}, seed {report.seed}",
        captured_at=report.started_at,
        expected_failure="; ".join(f"{cell.invariant}: {cell.reason}" for cell in broken) or None,
        faults=list(_faults(run)),
        **said,
    )


def _exported(report: Report, run: RunResult, config: Config, folder: Path) -> Exported:
    name = file_name(f"{run.scenario}-{run.prompt}-{run.id}").removesuffix(".yaml")
    source = Path(run.tape)
    session = session_for(report, run, config, id=name, name=f"{run.scenario}, prompt {run.prompt}")
    file, copy = folder / f"{name}.yaml", folder / "tapes" / f"{name}.tape"
    write_session(session, file, about=[f"What made {run.id} fail; its tape is tapes/{copy.name}."])
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    except OSError as error:
        raise Misuse(f"{copy}: it cannot be written: {error.strerror or error}; choose another -o") from error
    return Exported(file, copy, run.id, len(session.tool_responses))


def _faults(run: RunResult) -> Iterator[str]:
    """The faults that are not in the tools' replies already, as the run's own command line says them."""
    words = shlex.split(run.reproduce)
    for flag, text in pairwise(words):
        if flag != "--inject" or text.startswith("agent/"):  # what the input was made is the input
            continue
        if isinstance(parse_injection(text).spec, (LlmFault, ContextAttack)):
            yield text


def _contract(report: Report, run: RunResult, broken: Sequence[CellResult], config: Config) -> str:
    """The name of the rules that were broken: the contract's, or those at top level."""
    contract = config.contract
    by_contract = "contract" in report.command or run.id.startswith("contract/")
    top = {str(i.id) for i in config.invariants}
    own = {str(i.id) for i in (contract.invariants or config.invariants)} if contract is not None else set()
    failed = {_SUFFIX.sub("", cell.invariant) for cell in broken}
    if contract is not None and (by_contract or not failed or (failed & own and not failed & top)):
        return contract.name
    if top:
        return TOP_LEVEL
    if contract is not None:
        return contract.name
    raise Misuse("the config has neither a contract nor invariants, so nothing could judge the session; add some")
