"""What the config adds to the secrets that are known by themselves: `boundary.redact`.

An entry that begins with `$` is a JSON path (`$.user.ssn`, `$.items[*].code`, `$..iban`); any other is a regular
expression, in RE2's syntax. Of an expression with groups, the first group is the secret, else all that it matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from flakestorm.core.regex import later
from flakestorm.errors import ConfigError

__all__ = ["Patterns"]

_STEP = later(r"\.\.([\w-]+|\*)|\.([\w-]+|\*)|\[(?:(\d+|\*)|'([^']*)'|\"([^\"]*)\")\]")
_DEPTH = 64


class Patterns:
    """The entries of `boundary.redact`.

    Raises:
        ConfigError: one of them is neither a regular expression nor a JSON path; the message names it.
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        keyed = [(entry, f"boundary.redact[{index}]") for index, entry in enumerate(entries) if entry]
        self.entries = tuple(entry for entry, _ in keyed)
        self._paths = [_path(entry, key) for entry, key in keyed if entry.startswith("$")]
        self._compiled = [_compile(entry, key) for entry, key in keyed if not entry.startswith("$")]

    def __bool__(self) -> bool:
        return bool(self._paths or self._compiled)

    def secrets(self, body: bytes) -> Iterator[bytes]:
        """What they name in a body."""
        for start, end in self.places(body):
            yield body[start:end]
        if self._paths:
            for document in _documents(body):
                for path in self._paths:
                    for value in _at(document, path, 0):
                        yield from _leaves(value)

    def places(self, body: bytes) -> Iterator[tuple[int, int]]:
        """(start, end) of what the expressions match, however short; of no placeholder."""
        for compiled in self._compiled:
            for found in compiled.finditer(body):
                start, end = found.span(1 if compiled.groups and found.group(1) is not None else 0)
                if start < end and not body[start:end].startswith(b"[secret:"):
                    yield start, end


def _compile(entry: str, key: str) -> Any:
    import re2  # few configs have patterns, and it takes a while

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    try:
        return re2.compile(entry.encode(), options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        said = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ConfigError(
            f"{entry!r} is no regular expression that RE2 knows: {said}; a JSON path begins with '$'", key=key
        ) from error


def _path(entry: str, key: str) -> list[tuple[bool, str]]:
    """Steps: (at any depth, the name or index; `*` for all)."""
    steps, at = list[tuple[bool, str]](), 1
    while at < len(entry):
        found = _STEP.match(entry, at)
        if found is None:
            raise ConfigError(
                f"{entry!r} is no JSON path from position {at} on; "
                "write names and indexes, e.g. $.user.ssn, $.items[*].code or $..iban",
                key=key,
            )
        steps.append((found[1] is not None, next(group for group in found.groups() if group is not None)))
        at = found.end()
    return steps


def _documents(body: bytes) -> Iterator[Any]:
    try:
        yield orjson.loads(body)
    except orjson.JSONDecodeError:
        for line in body.splitlines():
            line = line.removeprefix(b"data:").strip()
            if line[:1] in (b"{", b"["):
                try:
                    yield orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue


def _at(value: Any, steps: list[tuple[bool, str]], depth: int) -> Iterator[Any]:
    if not steps:
        yield value
        return
    (anywhere, name), rest = steps[0], steps[1:]
    children: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = [(str(index), each) for index, each in enumerate(value)]
    for key, child in children:
        if name in (key, "*"):
            yield from _at(child, rest, depth + 1)
        if anywhere and depth < _DEPTH:
            yield from _at(child, steps, depth + 1)


def _leaves(value: Any) -> Iterator[bytes]:
    if isinstance(value, str):
        yield value.encode("utf-8", "surrogatepass")
    elif isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value).encode()
