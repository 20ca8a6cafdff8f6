"""Evidence in reasons: short, one line, and harmless, whatever an agent said."""

from __future__ import annotations

__all__ = ["QUOTE_CHARS", "brief", "mask", "plain", "quote", "quote_around"]

QUOTE_CHARS = 100
"""How much of a text a reason quotes, in characters."""


def plain(text: str, limit: int = QUOTE_CHARS) -> str:
    """One line: white space collapsed, unprintable characters escaped, cut with an ellipsis after `limit`."""
    line = " ".join(text[: 4 * limit + 64].split())
    cut = len(line) > limit or len(text) > 4 * limit + 64
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line[:limit])
    return f"{shown.rstrip()}…" if cut else shown


def brief(error: str, limit: int = 300) -> str:
    """An error on one line: its first line and, for a traceback or the last words of a program, its last."""
    lines = [line for line in map(str.strip, error.splitlines()) if line] or [""]
    return plain(lines[0], limit) if len(lines) == 1 else f"{plain(lines[0], limit)} … {plain(lines[-1], limit)}"


def quote(text: str, limit: int = QUOTE_CHARS) -> str:
    """The beginning of a text in double quotes; an empty text says so."""
    return f'"{plain(text, limit)}"' if text.strip() else "an empty output"


def quote_around(text: str, start: int, end: int, limit: int = QUOTE_CHARS) -> str:
    """What stands at text[start:end], quoted with some of its surroundings."""
    margin = max(0, limit - (end - start)) // 2
    left = max(0, start - margin)
    return f'"{"…" if left else ""}{plain(text[left : end + margin], limit)}{"…" if end + margin < len(text) else ""}"'


def mask(secret: str) -> str:
    """A text made unreadable but recognisable to its owner: its first and last character, or nothing if short."""
    return f"{plain(secret[0])}***{plain(secret[-1])}" if len(secret) >= 6 else "***"
