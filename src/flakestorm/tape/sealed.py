"""A tape file while it grows: each line is sealed to the one before, and written in one piece.

A secret that was learned after a line was written which holds it is taken out when the run is over.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from flakestorm.errors import TapeError
from flakestorm.tape.cleaning import Cleaner
from flakestorm.tape.files import Growing
from flakestorm.tape.lines import START, Lines, seal
from flakestorm.tape.redact import Redactor
from flakestorm.tape.said import Said

__all__ = ["SealedFile", "cleaned_header", "without_late_secrets"]

_AS_IT_IS = ("key", "redact")


class SealedFile:
    """A growing tape file. A full disk must not break the agent's calls, so failures wait for `close`."""

    def __init__(self, path: Path) -> None:
        self.path, self._chain, self._failure = path, START, cast("OSError | None", None)
        with suppress(OSError):  # an old tape makes way: emptying it would make the file system wait for the disk
            if stat.S_ISREG(os.lstat(path).st_mode):
                path.unlink()
        try:
            self._raw = Growing(path)
        except OSError as error:
            raise TapeError(f"the tape {path} cannot be written: {error.strerror}") from error

    def append(self, line: Mapping[str, Any], *, mark: Callable[[bytes], str] | None = None) -> None:
        """One more line; nothing where an earlier one could not be written, or the file is closed.

        Args:
            line: what it says.
            mark: for a last line that carries the seal of who recorded it (`origin`): makes it, of the chain value that
                the line has without it.
        """
        if self._failure is not None:
            return
        data, chain = seal(line, self._chain)
        if mark is not None:
            data, chain = seal({**line, "origin": mark(chain)}, self._chain)
        try:
            if self._raw.append(data):
                self._chain = chain
        except OSError as error:
            self._failure = error

    def moved_to(self, other: SealedFile) -> None:
        """The other one, whole so far, takes this one's place."""
        self._raw.close(finish=False)
        other.path.replace(self.path)
        other.path = self.path

    def close(self) -> None:
        try:
            self._raw.close(finish=self._failure is None)
        except OSError as error:
            self._failure = self._failure or error
        if self._failure is not None:
            raise TapeError(
                f"the tape {self.path} is incomplete: {self._failure.strerror}; what was written before stays readable"
            ) from self._failure


def cleaned_header(header: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """The header without secrets; `input` is the agent's, who knows what is in it."""
    command = header.get("command")
    if isinstance(command, Mapping):  # what an option's value is, is told by the word before it
        argv = json.dumps(command.get("argv"), default=str, ensure_ascii=False)
        redactor.discover(argv.encode("utf-8", "surrogatepass"))
    return {name: value if name in _AS_IT_IS else _clean(value, redactor) for name, value in header.items()}


def _clean(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, Mapping):
        return {name: _clean(part, redactor) for name, part in value.items()}
    return [_clean(part, redactor) for part in value] if isinstance(value, (list, tuple)) else value


def without_late_secrets(
    file: SealedFile, header: Mapping[str, Any], redactor: Redactor, said: Said
) -> tuple[SealedFile, Said]:
    """The same file, or one in its place where lines were written before a secret in them was known to be one."""
    from flakestorm.tape.reader import Tape  # few runs come to this

    try:
        tape, cleaner = Tape.open(file.path), Cleaner(redactor)
        if tape.header == cleaned_header(tape.header, redactor) and all(
            cleaner.exchange(each) is each for each in tape
        ):
            return file, said
        part, lines, said = SealedFile(file.path.with_name(f".part-{file.path.name}")), Lines(), Said()
        part.append(cleaned_header(header, redactor))
        cleaner = Cleaner(redactor)
        for each in tape:
            line, _, request = lines.line(now := cleaner.exchange(each))
            said.add(now, request)
            part.append(line)
        file.moved_to(part)
    except (TapeError, OSError) as error:
        raise TapeError(f"secrets that were learned late are still on the tape {file.path}: {error}") from error
    return part, said
