"""Sessions out of what other tools recorded: trace files, and LangSmith's own runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from flakestorm.config.model import Config
from flakestorm.config.replays import LangSmithProject, LangSmithRun, ReplaySession, TraceFile
from flakestorm.errors import ConfigError, Misuse
from flakestorm.sessions.files import Incident, file_name, read_sessions, write_session
from flakestorm.sessions.taped import session_of

__all__ = ["from_file", "from_langsmith", "from_sources", "write_sessions"]


def from_file(
    file: Path, *, contract: str, form: str = "auto", tools: Sequence[tuple[str, str]] = ()
) -> list[ReplaySession]:
    """The sessions in a recording, one per run in it: a tape, a VCR cassette, or traces of another tool.

    Args:
        file: the recording.
        contract: what they are to be judged by.
        form: a key of `importers.files.FORMS`, or `auto`.
        tools: (tool name, URL glob) pairs that name plain-HTTP tools.

    Raises:
        Misuse: it cannot be read, or does not say what the agent was asked.
    """
    if file.suffix == ".tape" and form == "auto":
        return [incident.session for incident in read_sessions(file, contract=contract)]
    from flakestorm.importers.files import read_runs

    name, runs = read_runs(file, form=form)
    found = _sessions(runs, tools, contract=contract, source=name, stem=file.stem)
    if not found:
        raise Misuse(
            f"{file}: it does not say what the agent was asked, so there is no session in it; `flakestorm tapes "
            "import` makes a tape of it"
        )
    return found


def from_langsmith(
    *, contract: str, run: str | None = None, project: LangSmithProject | None = None
) -> list[ReplaySession]:
    """The sessions of a run at LangSmith, or of those of a project that its filter lets through.

    Raises:
        Misuse: there is no key, no such run or project, or what is there cannot be imported.
        WorldFailed: LangSmith cannot be reached.
    """
    from flakestorm.importers.langsmith import traces
    from flakestorm.importers.langsmith_api import LangSmith, Wanted

    client = LangSmith()
    if run is not None:
        trees = [client.run(run)]
    else:
        asked = None if project is None else project.filter
        wanted = Wanted() if asked is None else Wanted(asked.status, asked.date_range, asked.min_latency_ms)
        trees = client.project("" if project is None else project.project, wanted)
    found: list[ReplaySession] = []
    for tree in trees:
        try:
            runs = traces(tree)
        except ValueError as error:
            raise Misuse(f"LangSmith's {' '.join(str(error).split())}") from None
        errors = next(
            (str(each["error"]) for each in tree if each.get("error") and not each.get("parent_run_id")), None
        )
        sessions = _sessions(runs, (), contract=contract, source="langsmith", stem=f"langsmith-{tree[0]['id']}")
        if not sessions:
            raise Misuse(f"LangSmith's run {tree[0]['id']} does not say what the agent was asked")
        captured = str(tree[0].get("start_time") or "") or None
        found += [_with(each, expected_failure=errors, captured_at=captured) for each in sessions]
    return found


def from_sources(config: Config, *, contract: str) -> list[Incident]:
    """The sessions of a config's `replays.sources`. A LangSmith project is fetched only with `auto_import`.

    Raises:
        ConfigError: a file that it names is not there.
        Misuse, WorldFailed: as `from_file` and `from_langsmith`.
    """
    folder = Path(config.folder)
    tools = tuple(config.boundary.tools.items())
    found: list[Incident] = []
    for index, source in enumerate(config.replays.sources):
        sessions: list[ReplaySession] = []
        if isinstance(source, TraceFile):
            form = str(type(source).__struct_config__.tag)
            if not (folder / source.file).exists():
                raise ConfigError(f"there is no file {folder / source.file}", key=f"replays.sources[{index}].file")
            sessions = from_file(folder / source.file, contract=contract, form=form, tools=tools)
        elif isinstance(source, LangSmithRun):
            sessions = from_langsmith(contract=contract, run=source.run_id)
        elif source.auto_import:
            sessions = from_langsmith(contract=contract, project=source)
        found += [Incident(session, None, folder, f"replays.sources[{index}].") for session in sessions]
    return found


def write_sessions(sessions: Iterable[ReplaySession], folder: Path) -> list[Path]:
    """Write each into a file of its own; one whose name is taken by another session gets a number."""
    written: list[Path] = []
    for session in sessions:
        name = Path(file_name(session.id))
        file = next(
            file
            for n in itertools.count(1)
            if (file := folder / (name if n == 1 else name.with_stem(f"{name.stem}-{n}"))) not in written
        )
        write_session(session, file)
        written.append(file)
    return written


def _sessions(
    runs: Iterable[Any], tools: Sequence[tuple[str, str]], *, contract: str, source: str, stem: str
) -> list[ReplaySession]:
    from flakestorm.importers.taping import exchanges_of

    asked = [run for run in runs if run.input]
    return [
        session_of(
            exchanges_of(run.crossings, tools=tools),
            id=stem if len(asked) == 1 else f"{stem}-{run.id or number}",
            input=run.input,
            contract=contract,
            source=source,
            expected_failure=run.error,
        )
        for number, run in enumerate(asked, 1)
    ]


def _with(session: ReplaySession, **more: Any) -> ReplaySession:
    from msgspec.structs import replace

    return replace(session, **{name: value for name, value in more.items() if value is not None})
