"""Text from strangers, made safe to show.

Agents, tools and models write what stands in a report. A terminal obeys escape sequences, and characters that
reorder or hide text lie to a reader anywhere, so both are shown as what they are instead of being obeyed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flakestorm.core.regex import later

if TYPE_CHECKING:
    from flakestorm.engine.events import MutationInfo

__all__ = ["counted", "encodable", "mutated", "one_line", "plain", "unbroken", "untold", "visible"]

_SURROGATE = later("[\ud800-\udfff]")

# C0 and C1 controls but tab and newline; soft hyphen, zero-width and bidirectional controls, line and paragraph
# separators, byte-order mark, language tags. Joiners (U+200C, U+200D) stay: emoji and several scripts need them.
_HIDDEN = later(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


def counted(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def untold(notes: Iterable[str], headline: str) -> list[str]:
    """The notes that the headline does not tell already, by themselves or as those of a phase (`chaos: ...`).

    Notes of several lines stay: in a sentence, the last words of a program cannot be read.
    """
    return [note for note in notes if "\n" in note or not any(part in headline for part in _parts(note))]


def _parts(note: str) -> tuple[str, ...]:
    phase, colon, rest = note.partition(": ")
    return (note, rest) if colon and rest and phase.isalpha() else (note,)


def encodable(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot hold, replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def plain(value: Any) -> Any:
    """The value with what JSON in UTF-8 cannot hold replaced: lone surrogates by U+FFFD, NaN and infinity by None."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, Mapping):
        return {encodable(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def visible(text: str) -> str:
    r"""The text with every control and invisible character shown as its escape, e.g. `\x1b` or `\u202e`.

    Newlines and tabs stay; carriage returns before a newline are dropped.
    """
    return _HIDDEN.sub(_escape, encodable(text.replace("\r\n", "\n")))


def one_line(text: str, limit: int) -> str:
    """The text on one line, visible, its white space collapsed, at most `limit` characters with an ellipsis."""
    line = " ".join(visible(text[: limit * 4 + 16]).split())
    return line if len(line) <= limit and len(text) <= limit * 4 + 16 else line[: limit - 1].rstrip() + "…"


def unbroken(text: str) -> str:
    r"""The text visible and on one line, nothing lost: newlines and tabs are shown as `\n` and `\t`."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def mutated(mutation: MutationInfo | None) -> str:
    """How an input came about, in one line; empty where it is none of a mutation."""
    if mutation is None:
        return ""
    said = f"{mutation.type}#{mutation.number} {mutation.operator} ({mutation.kind})"
    return one_line(f"{said} of: {mutation.original}", 240)
