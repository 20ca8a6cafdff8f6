"""The tapes that lie in a folder, each in one line: `flakestorm tapes`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from flakestorm.core.record import Record

__all__ = ["STORE", "Summary", "find", "keep_from_git", "summary"]

STORE = Path(".flakestorm")
"""The folder of what belongs to no report: tapes, and where a standing gateway is."""


def keep_from_git(folder: Path = STORE) -> Path:
    """The folder, made if need be, with a file by which git leaves alone what lies there: conversations, keys.

    Raises:
        OSError: it cannot be made there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as out:
        out.write("*\n")
    return folder


class Summary(Record, frozen=True):
    """What a list tells about a tape.

    Args:
        path: where it lies.
        run: the run it is the record of, empty if it does not say.
        input: what the agent was given; None for a run that had no input.
        exchanges: how many there are.
        complete: False if the recording was interrupted.
    """

    path: Path
    run: str
    input: str | None
    exchanges: int
    complete: bool


def find(folders: Iterable[Path]) -> list[Path]:
    """Every tape file in these folders and below, sorted within each; folders that do not exist hold none."""
    found: dict[Path, Path] = {}
    for folder in folders:
        for path in sorted((*folder.rglob("*.tape"), *folder.rglob("*.tape.zst"))):
            if path.is_file():
                found.setdefault(path.resolve(), path)
    return list(found.values())


def summary(path: Path) -> Summary:
    """Read a tape to its end and say what is on it.

    Raises:
        TapeDamaged: it cannot be read.
    """
    from flakestorm.tape.reader import Tape  # who asks for the store alone reads none

    tape = Tape.open(path)
    exchanges = sum(1 for _ in tape)
    run = tape.header.get("run")
    return Summary(path, run if isinstance(run, str) else "", tape.input, exchanges, tape.complete)
