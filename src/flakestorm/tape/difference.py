"""Where two JSON values differ, in words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import orjson

__all__ = ["differences"]

_MOST = 8
_SHOWN = 120


def differences(old: Any, new: Any, *, most: int = _MOST) -> list[str]:
    """One line for each place that differs, `messages[2].content: "old" -> "new"`; at most so many."""
    found = list(islice(_walk(old, new, ""), most + 1))
    return [*found[:most], "and more"] if len(found) > most else found


def _walk(old: Any, new: Any, at: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in (*old, *(key for key in new if key not in old)):
            where = f"{at}.{key}".lstrip(".").replace("\0json", "").rstrip(".")
            if key not in new:
                yield f"{where}: {_shown(old[key])} -> missing"
            elif key not in old:
                yield f"{where}: was not there -> {_shown(new[key])}"
            else:
                yield from _walk(old[key], new[key], where)
    elif isinstance(old, list) and isinstance(new, list):
        for n, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _walk(one, other, f"{at}[{n}]")
        for n in range(len(new), len(old)):
            yield f"{at}[{n}]: {_shown(old[n])} -> missing"
        for n in range(len(old), len(new)):
            yield f"{at}[{n}]: was not there -> {_shown(new[n])}"
    elif type(old) is not type(new) or old != new:
        if isinstance(old, str) and isinstance(new, str):
            yield f"{at or 'body'}: {_shown(*_near(old, new))}"
        else:
            yield f"{at or 'body'}: {_shown(old)} -> {_shown(new)}"


def _near(old: str, new: str) -> tuple[str, str]:
    """Both texts from a little before the place where they begin to differ."""
    at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    begin = max(0, at - 30)
    return ("…" * (begin > 0) + old[begin:], "…" * (begin > 0) + new[begin:])


def _shown(*values: Any) -> str:
    texts = [_excerpt(value) for value in values]
    return " -> ".join(texts)


def _excerpt(value: Any) -> str:
    try:
        text = orjson.dumps(value, default=str).decode()
    except (TypeError, ValueError):
        text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
