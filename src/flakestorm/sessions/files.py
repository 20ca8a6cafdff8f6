"""Sessions from wherever they are kept: the config, files, folders of files, tapes; and into files.

What a session holds is an incident, word for word, so nothing in a session's own file is expanded: `${VAR}` in an input
is what the user had typed. In the config's inline sessions it expands, as everywhere in a config.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from msgspec import Meta

from flakestorm.config.base import Strict
from flakestorm.config.load import reads, text_of
from flakestorm.config.marked import Mapping, Scalar, parse
from flakestorm.config.model import Config
from flakestorm.config.replays import ReplaySession
from flakestorm.core.conversation import turns_of
from flakestorm.errors import ConfigError, Misuse
from flakestorm.sessions.taped import session_of
from flakestorm.tape.model import FORMAT
from flakestorm.tape.reader import Tape

__all__ = ["Incident", "file_name", "in_config", "read_sessions", "session_document", "write_session"]

_SUFFIXES = (".yaml", ".yml", ".json", ".tape")
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What YAML takes for the end of a line, or for nothing at all, where it is not escaped."""
_REPORT = "flakestorm-report/1"
_TAPE = f'"format":"{FORMAT.partition("/")[0]}/'.encode()


@dataclass(frozen=True, slots=True)
class Incident:
    """A session, and where it stands.

    Args:
        session: the session.
        file: the file that holds it; None for one that stands in the config itself.
        folder: what a path in it is relative to.
        at: what comes before its keys in that file, or in the config: `replays.sessions[0].`.
    """

    session: ReplaySession
    file: Path | None
    folder: Path
    at: str = ""


class _Several(Strict, frozen=True, kw_only=True):
    """A file with several sessions."""

    sessions: Annotated[list[ReplaySession], Meta(description="incidents")]


def in_config(config: Config, *, contract: str) -> list[Incident]:
    """The sessions of a config's `replays.sessions`, those that stand in files included.

    Raises:
        ConfigError: a file cannot be read or is wrong.
    """
    folder = Path(config.folder)
    found: list[Incident] = []
    for index, session in enumerate(config.replays.sessions):
        at = f"replays.sessions[{index}]."
        if session.file:
            path = folder / session.file
            if not path.exists():
                raise ConfigError(f"there is no session file, tape or folder {path}", key=f"{at}file")
            found += read_sessions(path, contract=contract)
        else:
            found.append(Incident(session, None, folder, at))
    return found


def read_sessions(path: Path, *, contract: str) -> list[Incident]:
    """The sessions of a file, of a tape, or of all files of a folder, in order of their names.

    Args:
        path: the file or folder.
        contract: what a tape is judged by, since it names no contract.

    Raises:
        ConfigError: there is no such file, or it holds no session.
        TapeDamaged: a tape cannot be read.
    """
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix.lower() in _SUFFIXES and each.is_file())
        if not files:
            raise ConfigError("the folder holds no session: no file ends in .yaml, .yml, .json or .tape", file=path)
        return [incident for file in files for incident in read_sessions(file, contract=contract)]
    if _is_tape(path):
        return [_taped(path, contract)]
    text = _as_yaml(text_of(path))
    root = parse(text, file=str(path))
    if isinstance(root, Mapping) and isinstance(kind := root.entries.get("format"), Scalar) and kind.value == _REPORT:
        raise ConfigError(
            f"this is a report and no session; `flakestorm replay export --from-report {path}` makes sessions of its "
            "failing runs",
            file=path,
        )
    several = isinstance(root, Mapping) and set(root.entries) == {"sessions"}
    made: Sequence[ReplaySession]
    if several:
        made = reads(text, _Several, file=str(path), folder=path.parent, literal=True).sessions
    else:
        made = [reads(text, ReplaySession, file=str(path), folder=path.parent, literal=True)]
    found: list[Incident] = []
    for index, session in enumerate(made):
        at = f"sessions[{index}]." if several else ""
        if session.file:
            inner = path.parent / session.file
            if inner.resolve() == path.resolve():
                raise ConfigError("the session names its own file; give 'id' and 'input'", file=path, key=f"{at}file")
            found += read_sessions(inner, contract=contract) if inner.suffix == ".tape" else _one(inner, path)
        else:
            found.append(Incident(session, path, path.parent, at))
    return found


def _one(file: Path, named_in: Path) -> list[Incident]:
    """One step only: a file that names a file that names a file is nobody's incident."""
    session = reads(_as_yaml(text_of(file)), ReplaySession, file=str(file), folder=file.parent, literal=True)
    if session.file:
        raise ConfigError(f"named by {named_in}, it must hold the session itself", file=file, key="file")
    return [Incident(session, file, file.parent)]


def file_name(id: str) -> str:  # noqa: A002 -- as the key is called
    """A file name for a session of this id."""
    kept = "".join(c if c.isalnum() or c in "-_." else "-" for c in id).strip("-.")
    return f"{kept[:100] or 'session'}.yaml"


def session_document(session: ReplaySession) -> dict[str, Any]:
    """A session as plain data, without what is not set."""
    document = dict(session.given())
    document["contract"] = session.contract
    responses = [{"tool": each.tool, **each.given()} for each in session.tool_responses]
    if responses:
        document["tool_responses"] = responses
    order = list(type(session).__struct_fields__)
    return {key: document[key] for key in sorted(document, key=order.index)}


def write_session(session: ReplaySession, file: Path, *, about: Iterable[str] = ()) -> None:
    """Write a session into a file of its own.

    Args:
        session: the session.
        file: where; its folder is made.
        about: lines for whoever reads the file.

    Raises:
        Misuse: it cannot be written.
    """
    head = "".join(f"# {' '.join(line.split())}\n" for line in about)
    document = session_document(session)
    readable = not _BREAKS.search(json.dumps(document, ensure_ascii=False, default=str))
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=readable, width=110)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(head + text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise Misuse(f"{file}: the session cannot be written: {error.strerror or error}; choose another -o") from error


def _taped(path: Path, contract: str) -> Incident:
    tape = Tape.open(path)
    if tape.input is None:
        raise Misuse(
            f"{path}: the tape has no input, because it was made of other than a run of the configured agent; write a "
            "session with its 'input', or prove it with `flakestorm verify-tape`"
        )
    run, turns = tape.header.get("run"), list(turns_of(tape.input))
    session = session_of(
        tape.exchanges(),
        id=path.stem,
        input=turns if len(turns) > 1 else turns[0],
        contract=contract,
        source=f"tape {run or path.name}",
    )
    return Incident(session, path, path.parent)


def _is_tape(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _TAPE in file.read(4096).replace(b'": "', b'":"').split(b"\n", 1)[0]
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise ConfigError("there is no such session file, tape or folder", file=path) from None
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=path) from None


def _as_yaml(text: str) -> str:
    """JSON is YAML, but for tabs and for characters that are written as two escapes; a list is a list of sessions."""
    start = text.lstrip()[:1]
    if start not in ("{", "[") or (start == "{" and "\t" not in text and "\\u" not in text and "\\/" not in text):
        return text
    try:
        document = json.loads(text)
        if isinstance(document, list):
            document = {"sessions": document}
        return json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8", "replace").decode()
    except (ValueError, RecursionError):
        return text
