"""How a running program was started, where the system says so (Linux)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Started", "listening", "started"]

_PROC = Path("/proc")
_LISTENS = "0A"
_OF_SHELLS = re.compile(
    r"_|(OLD)?PWD|SHLVL|PS1|LS_COLORS|COLUMNS|LINES|PORT|PATH|VIRTUAL_ENV.*|TERM.*|COLORTERM|LANG|LC_.*|SSH_.*|XDG_.*|TMUX.*"
    r"|STY|WINDOW.*|DISPLAY|DBUS_.*|GPG_.*|VSCODE_.*|KONSOLE_.*|ITERM_.*|HIST.*|PYTEST_.*|INVOCATION_ID|JOURNAL_STREAM"
)
"""Variables that tell of where somebody sits, and not of what a program needs."""


@dataclass(frozen=True, slots=True)
class Started:
    """A program that listens.

    Args:
        argv, cwd: how and where it was started.
        missing: names of variables that it has and we have not, or have otherwise; their values are nobody's business.
    """

    argv: tuple[str, ...]
    cwd: Path
    missing: tuple[str, ...] = ()


def listening(proc: Path = _PROC) -> dict[int, str]:
    """The ports of this machine that somebody listens on, with their sockets; empty where the system does not say."""
    found: dict[int, str] = {}
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text(encoding="ascii").splitlines()[1:]
        except (OSError, ValueError):
            continue
        for line in lines:
            words = line.split()
            if len(words) > 9 and words[3] == _LISTENS:
                found.setdefault(int(words[1].rpartition(":")[2], 16), words[9])
    return found


def started(port: int, proc: Path = _PROC, environ: Mapping[str, str] | None = None) -> Started | None:
    """The program that listens on a port; None where that is not known."""
    socket = listening(proc).get(port)
    if socket is None:
        return None
    for process in proc.iterdir() if proc.is_dir() else ():
        if not process.name.isdigit():
            continue
        try:
            if not any(str(each.readlink()) == f"socket:[{socket}]" for each in (process / "fd").iterdir()):
                continue
            argv = tuple(word.decode() for word in (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0"))
            told = dict(part.partition(b"=")[::2] for part in (process / "environ").read_bytes().split(b"\0") if part)
            cwd = (process / "cwd").readlink()
        except (OSError, UnicodeDecodeError):
            continue  # it ended meanwhile, or is not ours
        ours = os.environb if environ is None else {k.encode(): v.encode() for k, v in environ.items()}
        other = sorted(os.fsdecode(name) for name, value in told.items() if ours.get(name) != value)
        return Started(argv, cwd, tuple(name for name in other if not _OF_SHELLS.fullmatch(name)))
    return None
