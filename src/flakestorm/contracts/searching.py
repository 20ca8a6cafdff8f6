"""Regular expressions of a config on what an agent said, in bounded time.

Python's expressions backtrack: `(a+)+$` on thirty characters, or `\\s+$` on a long row of blanks, may take for ever,
and nothing can stop such a search from within. The agent decides what is searched. So a search that may take long is
handed to a helper, a process of its own that the system ends when it has used its processor time; the verdict is then
inconclusive. What may take long is told from the pattern and the length of the text; few searches are, and only those
pay for a helper, which serves all that follow.
"""

from __future__ import annotations

import atexit
import json
import re
import subprocess
import sys
import threading
from contextlib import suppress
from functools import lru_cache
from re import _constants as kinds  # type: ignore[attr-defined]  # how Python's own compiler reads a pattern
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

__all__ = ["LIMIT_S", "TooLong", "compiled", "search", "steps"]

LIMIT_S = 5
"""Processor seconds that one search may take."""

_QUICK_STEPS = 20_000_000
_REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, getattr(kinds, "POSSESSIVE_REPEAT", None))
_HELPER = """\
import json, re, signal, sys
for line in sys.stdin:
    pattern, flags, text, limit_s = json.loads(line)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    found = re.compile(pattern, flags).search(text)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    print(json.dumps(found and found.span()), flush=True)
"""


class TooLong(Exception):
    """A search was given up; `str()` says it in words."""


@lru_cache(maxsize=512)
def compiled(pattern: str, flags: int) -> re.Pattern[str]:
    """The pattern, compiled once.

    Raises:
        re.error: it is not a regular expression.
    """
    return re.compile(pattern, flags)


def search(pattern: str, flags: int, text: str) -> tuple[int, int] | None:
    """Where the pattern first matches; None where it does not.

    Raises:
        TooLong: it cannot be told in `LIMIT_S`.
        re.error: it is not a regular expression.
    """
    if steps(pattern, flags, len(text)) <= _QUICK_STEPS:
        found = compiled(pattern, flags).search(text)
        return None if found is None else found.span()
    return _helper.search(pattern, flags, text)


@lru_cache(maxsize=512)
def _shape(pattern: str, flags: int) -> tuple[bool, int]:
    """Whether one repetition stands in another, or refers back, and how many there are without a small bound."""
    return _look(parser.parse(pattern, flags), within=False)


def steps(pattern: str, flags: int, length: int) -> float:
    """How many steps a search may take, roughly, from above; infinite where that grows with a power of two."""
    nested, repeats = _shape(pattern, flags)
    return float("inf") if nested else float(max(length, 1)) ** (1 + repeats)


def _look(node: Any, *, within: bool) -> tuple[bool, int]:
    nested, repeats = False, 0
    for operator, argument in node:
        inside, many = within, 0
        if operator in _REPEATS:
            wide = argument[1] is kinds.MAXREPEAT or argument[1] > 100
            nested = nested or (within and argument[1] != argument[0])
            inside, many = within or wide, int(wide)
        nested = nested or operator in (kinds.GROUPREF, kinds.GROUPREF_EXISTS) or (within and operator is kinds.BRANCH)
        for part in _parts(argument):
            deeper, more = _look(part, within=inside)
            nested, many = nested or deeper, many + more
        repeats += many
    return nested, repeats


def _parts(argument: Any) -> list[Any]:
    """The patterns within an operator's argument."""
    if isinstance(argument, parser.SubPattern):
        return [argument]
    if isinstance(argument, (tuple, list)):
        return [part for item in argument for part in _parts(item)]
    return []


class _Helper:
    """One process that searches; made when it is needed, and anew after it was ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def search(self, pattern: str, flags: int, text: str) -> tuple[int, int] | None:
        asked = json.dumps([pattern, flags, text, LIMIT_S])
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(  # noqa: S603 - a fixed program
                    [sys.executable, "-I", "-S", "-c", _HELPER],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    encoding="ascii",
                    env={},
                    start_new_session=True,  # Ctrl-C is for flakestorm
                )
            said = _told(self._process, asked)
            if not said:
                self._end()
                raise TooLong(
                    f"the search was given up after {LIMIT_S} s on {len(text):,} characters, because the pattern "
                    "backtracks; write it without repetitions inside or beside one another"
                )
            found = json.loads(said)
        return None if found is None else (found[0], found[1])

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process, suppress(OSError):
                process.communicate()


def _told(process: subprocess.Popen[str], asked: str) -> str:
    try:
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - both were asked for
        process.stdin.write(asked + "\n")
        process.stdin.flush()
        return process.stdout.readline()
    except OSError:
        return ""


_helper = _Helper()
atexit.register(_helper.close)
