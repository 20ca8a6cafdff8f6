"""Reading a pattern: its alternatives, and what each is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["FLAGS", "Branch", "Token", "branches", "read", "strange", "telling"]

FLAGS = re.compile(r"\(\?[imsx]+\)")
_ATOM = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\x\{[0-9A-Fa-f]+\}|\\x[0-9A-Fa-f]{2}|\\.|[^(]", re.DOTALL)
_GROUP = re.compile(r"\((?:\?[ims]*:)?")
_TIMES = re.compile(r"[*+?]\??|\{(\d+)(,?)(\d*)\}\??")
_STRANGE = re.compile(r"\[?[^\x00-\x7f](?:-?[^\x00-\x7f])*\]?|\\x\{[0-9A-Fa-f]{3,}\}")
_NO_END = 1 << 16

Branch = tuple["Token", ...]


@dataclass(frozen=True)
class Token:
    """A character, class, assertion or group, and how often it stands there."""

    atom: str
    times: str
    least: int
    most: int
    branches: tuple[tuple[Token, ...], ...] = ()


def branches(pattern: str) -> tuple[Branch, ...]:
    """The alternatives of a pattern.

    Args:
        pattern: in the syntax that RE2 and Python's `re` share.
    """
    found, _ = read(FLAGS.sub("", pattern), 0)
    while len(found) == 1 and (inner := _whole(found[0])):
        found = inner
    return found


def strange(run: Branch) -> bool:
    """Whether an alternative matches nothing that is all ASCII."""
    return any(
        token.least and (all(map(strange, token.branches)) if token.branches else _STRANGE.fullmatch(token.atom))
        for token in run
    )


def telling(run: Branch) -> str | None:
    """A character or class that is not ASCII and that every match of an alternative has; None where none is seen."""
    return next((token.atom for token in run if token.least and _STRANGE.fullmatch(token.atom)), None)


def read(pattern: str, at: int) -> tuple[tuple[Branch, ...], int]:
    """What stands from a place to the end of its group, and where that is."""
    found: list[list[Token]] = [[]]
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            found.append([])
            at += 1
            continue
        inner: tuple[Branch, ...] = ()
        if group := _GROUP.match(pattern, at):
            inner, at = read(pattern, group.end())
            atom, at = "", at + 1
        else:
            match = _ATOM.match(pattern, at)
            atom = match[0] if match else pattern[at]
            at += len(atom)
        times = _TIMES.match(pattern, at)
        found[-1].append(Token(atom, times[0] if times else "", *_count(times), inner))
        at = times.end() if times else at
    return tuple(map(tuple, found)), at


def _count(times: re.Match[str] | None) -> tuple[int, int]:
    """How often something stands there, at least and at most."""
    if times is None:
        return 1, 1
    if times[1] is None:
        return int(times[0][0] == "+"), 1 if times[0][0] == "?" else _NO_END
    return int(times[1]), int(times[3]) if times[3] else _NO_END if times[2] else int(times[1])


def _whole(branch: Branch) -> tuple[Branch, ...]:
    """The alternatives of a branch that is one group, behind a `\\b` perhaps; each then has the `\\b`."""
    before, last = branch[:-1], branch[-1]
    if last.branches and not last.times and all(token.atom == "\\b" for token in before):
        return tuple((*before, *inner) for inner in last.branches)
    return ()
