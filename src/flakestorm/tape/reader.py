"""Reading tapes back, one line at a time, believing nothing.

A tape may come from a stranger: every line is bounded, its seal is checked against the line before, and its members
are checked for type. What does not fit raises `TapeDamaged` with the file and line.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
from msgspec import convert

from flakestorm.core.conversation import Conversation, Turn
from flakestorm.core.record import Record
from flakestorm.errors import Misuse, TapeDamaged
from flakestorm.tape.document import Documents
from flakestorm.tape.files import MAX_LINE_BYTES, lines_of
from flakestorm.tape.lines import FILE, START, Read, open_seal, seal
from flakestorm.tape.migrate import STEPS, migrated
from flakestorm.tape.model import FORMAT, Exchange
from flakestorm.tape.redact import Redactor
from flakestorm.tape.said import digest
from flakestorm.tape.texts import from_json

__all__ = ["MAX_LINE_BYTES", "Footer", "Tape", "describe"]

_PATTERNS = 1000  # that a tape may have been recorded with
_FORMAT = re.compile(r"flakestorm-tape/(\d{1,9})")
_REPORT = b'"format":"flakestorm-report/'


class Footer(Record, frozen=True):
    """How the run ended.

    Args:
        output: the agent's output; empty when there is an error.
        error: why there is no output, or None.
        digest: what was asked and said, as one hash (`said.digest`).
        stdin: of a recorded command, what it was given to read; None where that was nothing that could be kept.
        turns: of a conversation, its turns.
        origin: the seal of who recorded it, and the chain value that it is of (`origin`); None where it has none.
    """

    output: str
    error: str | None
    digest: str
    stdin: bytes | None = None
    turns: tuple[Turn, ...] = ()
    origin: tuple[str, bytes] | None = None


class Tape:
    """One recorded run. Opening reads the first line only; exchanges are read as they are asked for.

    Args:
        path: the file.
        header: what its first line says: `format`, `version`, and what the recorder was given (`run`, `input`, ...).
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path, self.header = path, header
        self.form = _form(header)
        """The number of the file's form."""
        self._footer: Footer | None = None
        self._read = False

    @classmethod
    def open(cls, path: Path | str) -> Tape:
        """A tape by its path.

        Raises:
            TapeDamaged: there is no such file, it is not a tape, or it is of a newer format.
        """
        path = Path(path)
        with closing(_lines(path)) as lines:
            for _, content in lines:
                return cls(path, _header(path, content))
        raise TapeDamaged(f"{path} is not a tape: it is empty")

    def __iter__(self) -> Iterator[Exchange]:
        """The exchanges in the order they ended, read one at a time.

        A long request body is put together when it is asked for, so a list of them takes no more memory than the file.

        Raises:
            TapeDamaged: on reaching a line that cannot be read; the exchanges before it have been given.
        """
        footer: Footer | None = None
        read = Read()
        for line, content in _lines(self.path):
            if line == 1:
                continue
            if footer is not None:
                raise TapeDamaged(f"{self.path}:{line}: there is more after the footer; the tape was added to")
            try:
                if "digest" in content:
                    footer = _footer(content)
                else:
                    yield read.exchange(migrated(content, self.form))
            except ValueError as error:
                raise TapeDamaged(f"{self.path}:{line}: this line cannot be read: {error}") from error
        self._footer, self._read = footer, True

    def exchanges(self) -> list[Exchange]:
        """All exchanges, in order of arrival.

        Raises:
            TapeDamaged: a line cannot be read.
        """
        return sorted(self, key=lambda exchange: exchange.n)

    @property
    def footer(self) -> Footer | None:
        """How the run ended; None if the recording was interrupted. Reads the tape to its end, once.

        Raises:
            TapeDamaged: a line cannot be read.
        """
        if not self._read:
            for _ in self:
                pass
        return self._footer

    @property
    def key(self) -> str | None:
        """What the tape's placeholders are made with; None for a tape that has none."""
        value = self.header.get("key")
        return value if isinstance(value, str) else None

    def redactor(self, *, known: Iterable[str] | None = None, patterns: Iterable[str] = ()) -> Redactor:
        """What makes live calls comparable with this tape's: the same secrets become the same placeholders.

        Args:
            known: as for `Redactor`.
            patterns: as for `Redactor`, besides those that it was recorded with.

        Raises:
            TapeDamaged: the tape's own patterns cannot be used.
        """
        own = self.header.get("redact", [])
        if not isinstance(own, list) or len(own) > _PATTERNS or not all(isinstance(entry, str) for entry in own):
            raise TapeDamaged(f"{self.path}:1: 'redact' must be a list of up to {_PATTERNS} strings")
        try:
            return Redactor(self.key, known=known, patterns=dict.fromkeys((*own, *patterns)))
        except Misuse as error:
            raise TapeDamaged(f"{self.path}:1: {error}") from error

    @property
    def complete(self) -> bool:
        """Whether the recording was finished. An incomplete tape reads fine, as far as it goes."""
        return self.footer is not None

    @property
    def input(self) -> str | None:
        """What the agent was given, several turns as a `Conversation`; None for a run that had no input."""
        value, turns = self.header.get("input"), self.header.get("turns")
        if isinstance(turns, list) and turns and all(isinstance(turn, str) for turn in turns):
            return Conversation(turns)
        return value if isinstance(value, str) else None

    def verify(self) -> None:
        """Prove that this is the whole recording, as it was written.

        Raises:
            TapeDamaged: a line was changed, moved, added or is missing, the tape has no end, or what it holds is not
                what its digest says.
        """
        exchanges, footer = self.exchanges(), self.footer
        if footer is None:
            raise TapeDamaged(
                f"{self.path} is cut short: it has no footer, because the recording was interrupted or the end is "
                f"missing; {_intact(len(exchanges))}"
            )
        if digest(exchanges, footer.output, form=self.form) != footer.digest:
            raise TapeDamaged(f"{self.path}: the exchanges are not those its digest was made of; it was edited")


def describe(tape: Tape) -> dict[str, Any]:
    """A tape as `flakestorm tapes show --format json` prints it; exchanges in order of arrival, each decoded when it is
    asked for (`Documents`).

    Raises:
        TapeDamaged: a line cannot be read.
    """
    exchanges = tape.exchanges()
    footer = tape.footer
    output = footer.output if footer else ""
    return {
        "format": FORMAT,
        "version": tape.header.get("version"),
        "run": tape.header.get("run"),
        "input": tape.input,
        "output": output,
        "error": footer.error if footer else None,
        "digest": footer.digest if footer else digest(exchanges, output),
        "complete": footer is not None,
        **({"turns": [asdict(turn) for turn in footer.turns]} if footer and footer.turns else {}),
        "exchanges": Documents(exchanges),
    }


def _lines(path: Path) -> Generator[tuple[int, dict[str, Any]], None, None]:
    """Line numbers (from 1) and contents, their seals checked."""
    number, chain = 0, START
    try:
        with closing(lines_of(path, MAX_LINE_BYTES)) as lines:
            for line in lines:
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise TapeDamaged(f"{path}:{number}: the line is longer than {MAX_LINE_BYTES} bytes")
                before = chain
                try:
                    content, chain = open_seal(line, before)
                except ValueError as error:
                    raise _damaged(path, number, line, error) from error
                if "digest" in content and "origin" in content:
                    content["origin"] = _origin(content.pop("origin"), content, before)
                yield number, content
    except OSError as error:
        raise TapeDamaged(f"the tape {path} cannot be read: {error.strerror}") from error


def _origin(said: Any, rest: Mapping[str, Any], before: bytes) -> tuple[str, bytes] | None:
    """The seal of a last line, and the chain value that the line has without it; None where there can be no such."""
    try:
        return (said, seal(rest, before)[1]) if isinstance(said, str) else None
    except (TypeError, RecursionError):  # it is nested deeper than anything that was ever written
        return None


def _damaged(path: Path, number: int, line: bytes, error: ValueError) -> TapeDamaged:
    if number == 1:
        found = _FORMAT.search(line[:1000].decode("utf-8", "replace"))
        if found is None:
            return _no_tape(path)
        if int(found[1]) != FILE and int(found[1]) not in STEPS:
            return _too_new(path, found[0])
    if not line.endswith(b"\n"):
        return TapeDamaged(f"{path}:{number}: the tape is cut short in the middle of a line; {_intact(number - 2)}")
    reason = "it is not JSON" if isinstance(error, orjson.JSONDecodeError) else str(error)
    return TapeDamaged(f"{path}:{number}: the tape was edited or damaged at this line: {reason}; {_intact(number - 2)}")


def _no_tape(path: Path) -> TapeDamaged:
    """What a file that is read as a tape is instead, where that can be told."""
    with suppress(OSError), path.open("rb") as file:
        if _REPORT in file.read(200).replace(b'": "', b'":"'):
            return TapeDamaged(
                f"{path} is not a tape: it is a report, and each of its runs has a tape of its own; give that of the "
                "run you mean, which is 'tape' in its 'runs'"
            )
    return TapeDamaged(f"{path} is not a tape: its first line is not a tape's header")


def _header(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    kind = content.get("format")
    if not isinstance(kind, str) or not _FORMAT.fullmatch(kind):
        raise _no_tape(path)
    if _form(content) != FILE and _form(content) not in STEPS:
        raise _too_new(path, kind)
    return content


def _form(header: Mapping[str, Any]) -> int:
    found = _FORMAT.fullmatch(str(header.get("format")))
    return int(found[1]) if found else 0


def _footer(content: dict[str, Any]) -> Footer:
    output, error, value = content.get("output"), content.get("error"), content["digest"]
    if not isinstance(output, str) or not isinstance(value, str) or not (error is None or isinstance(error, str)):
        raise ValueError("the footer's 'output', 'error' and 'digest' must be strings")
    stdin = from_json(content["stdin"]) if "stdin" in content else None
    turns = convert(content.get("turns", []), tuple[Turn, ...])
    return Footer(output, error, value, stdin, turns, content.get("origin"))


def _too_new(path: Path, kind: str) -> TapeDamaged:
    return TapeDamaged(
        f"{path} is a {kind}, and this version reads flakestorm-tape/1 to {FILE}; upgrade flakestorm to read it"
    )


def _intact(count: int) -> str:
    return f"{max(count, 0)} exchange{'' if count == 1 else 's'} before that are intact"
