"""From the file somebody recorded to the tape beside others: `flakestorm tapes import`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flakestorm.core.site import Kind
from flakestorm.errors import Misuse, TapeError
from flakestorm.importers import langfuse, langsmith, otel, vcr
from flakestorm.importers.document import read_document
from flakestorm.importers.spans import Traced
from flakestorm.importers.taping import write_tape
from flakestorm.tape.reader import Tape

__all__ = ["AUTO", "FORMS", "Imported", "import_file", "read_runs", "tape_names"]

AUTO = "auto"
"""The form that means: find out."""

_SUFFIXES = {".yaml", ".yml", ".json", ".gz"}


@dataclass(frozen=True, slots=True)
class Form:
    """A form of recording: how to tell it, how to read it, and what to call it in a message."""

    recognises: Callable[[Any], bool]
    runs: Callable[[Any], list[Traced]]
    what: str


def _cassette(document: Any) -> list[Traced]:
    return [Traced("", None, "", None, [*vcr.crossings(document)])]


FORMS: dict[str, Form] = {
    "langfuse": Form(langfuse.recognises, langfuse.traces, "a Langfuse export (a trace with 'observations')"),
    "otel": Form(otel.recognises, otel.traces, "an OpenTelemetry export (OTLP JSON with 'resourceSpans')"),
    "langsmith": Form(langsmith.recognises, langsmith.traces, "runs of LangSmith (with 'run_type')"),
    "vcr": Form(vcr.recognises, _cassette, "a VCR cassette (a list of 'interactions')"),
}
"""What can be imported, by the name `--from` gives it."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A tape that was made.

    Args:
        tape: where it lies.
        calls: number of exchanges per kind; kinds without any are left out.
    """

    tape: Path
    calls: dict[Kind, int]


def tape_names(files: Iterable[Path]) -> list[str]:
    """A file name for each recording's tape, all different: the recording's own, and a number where that is taken."""
    names: list[str] = []
    taken: set[str] = set()
    for file in files:
        stem = file.name
        while Path(stem).suffix.lower() in _SUFFIXES:
            stem = Path(stem).stem
        name, n = stem, 2
        while name.casefold() in taken:  # some file systems do not tell upper from lower case
            name, n = f"{stem}-{n}", n + 1
        taken.add(name.casefold())
        names.append(f"{name}.tape")
    return names


def import_file(file: Path, tape: Path, *, form: str = AUTO, tools: Sequence[tuple[str, str]] = ()) -> Imported:
    """Make a tape out of a recording. A tape made of the same file before is replaced; any other file is not.

    Args:
        file: the recording.
        tape: where the tape shall be; its folder is made.
        form: a key of `FORMS`, or `AUTO`.
        tools: (tool name, URL glob) pairs that name plain-HTTP tools.

    Raises:
        Misuse: it cannot be imported, or not to there; the message is one line: file and reason.
    """
    name, runs = read_runs(file, form=form)
    source = {"from": name, "file": os.path.relpath(file, tape.parent)}
    _make_room(file, tape, source)
    alone = runs[0] if len(runs) == 1 else Traced("", None, "", None, [])
    header = {"run": tape.stem, "input": alone.input, "imported": source}
    crossings = [crossing for run in runs for crossing in run.crossings]
    try:
        made = write_tape(tape, crossings, header=header, tools=tools, output=alone.output, error=alone.error)
        return Imported(tape, made)
    except OSError as error:
        raise Misuse(f"{tape}: the tape cannot be written: {error.strerror or error}") from None


def read_runs(file: Path, *, form: str = AUTO) -> tuple[str, list[Traced]]:
    """The form of a recording, and the runs in it.

    Raises:
        Misuse: it cannot be imported; the message is one line: file and reason.
    """
    try:
        document = read_document(file)
        name = form if form != AUTO else next((n for n, each in FORMS.items() if each.recognises(document)), "")
        if not name:
            raise ValueError(f"its form is not known; what can be imported is {' or '.join(_forms())}")
        return name, FORMS[name].runs(document)
    except ValueError as error:
        raise Misuse(f"{file}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise Misuse(f"{file}: it is nested too deeply") from None


def _forms() -> list[str]:
    return [form.what for form in FORMS.values()]


def _make_room(file: Path, tape: Path, source: dict[str, str]) -> None:
    """Make the folder, and see that nothing is lost by writing there.

    Raises:
        Misuse: it cannot be made, or there is something else.
    """
    try:
        tape.parent.mkdir(parents=True, exist_ok=True)
        if not tape.exists():
            return
        there = Tape.open(tape).header.get("imported")
    except OSError as error:
        raise Misuse(f"{tape.parent}: the folder cannot be made: {error.strerror or error}") from None
    except TapeError:
        there = None
    if there != source:
        what = "the tape of another recording" if there else "and was not imported"
        raise Misuse(f"{file}: {tape} is already there, {what}; choose another folder with -o")
