"""Where tapes lie: the store, what is kept there of a tape that another takes the place of, and each in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from flakestorm.core.record import Record
from flakestorm.errors import Misuse, TapeError

__all__ = ["STORE", "Summary", "find", "in_store", "keep_from_git", "make_room", "summary"]

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


def in_store(name: str) -> Path:
    """The place in the store for a tape of this name, which git leaves alone.

    A store that cannot be made is told of when the tape is written there.
    """
    with suppress(OSError):
        keep_from_git()
    return STORE / "tapes" / name


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


def make_room(path: Path, told: Callable[[str], object], *, forks: bool = False) -> None:
    """Keep what is at the place where a tape is to be written: a copy goes to the store.

    Args:
        path: where a tape is to be written. What is no file (a pipe, a device) or is empty holds nothing.
        told: is given a line for whoever asked, where something was kept.
        forks: whether a tape that was forked from another needs no copy, because it can be forked again.

    Raises:
        Misuse: no copy can be kept.
    """
    if not path.is_file() or not path.stat().st_size or (forks and _is_fork(path)):
        return
    import shutil  # whoever asks for the store alone copies nothing
    from datetime import datetime

    written = datetime.fromtimestamp(path.stat().st_mtime)
    kept = STORE / "tapes" / f"{written:%Y%m%d-%H%M%S-%f}-{path.name}"
    try:
        keep_from_git()
        kept.parent.mkdir(exist_ok=True)
        shutil.copy2(path, kept)
    except OSError as error:
        raise Misuse(
            f"{path} is there already, and no copy of it could be kept as {kept} ({error.strerror}); name another file "
            "with -o"
        ) from error
    told(f"what {path} held is kept as {kept}")


def _is_fork(path: Path) -> bool:
    from flakestorm.tape.reader import Tape

    try:
        return "parent" in Tape.open(path).header
    except TapeError:
        return False
