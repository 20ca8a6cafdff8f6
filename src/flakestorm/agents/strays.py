"""What a launched agent started and let go of: processes in a session of their own (`setsid`, daemons).

A signal to the agent's process group does not reach them. They still carry the variable FLAKESTORM_RUN that the agent
was launched with, and its value is a token that nobody can guess and nobody else was given: whoever has it was started
by that agent. Known from `/proc`, so only on Linux; elsewhere nothing is looked for.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

__all__ = ["end_strays", "token_of"]

_NAME = "FLAKESTORM_RUN"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,}")  # a shorter one may have been made up by hand, and be others' as well
_ROUNDS = 5  # one that is about to start another when it is looked for is found with the other in the next round


def token_of(env: Mapping[str, str]) -> str:
    """What the processes of a program launched in this environment are known by; empty if that is nothing, or nothing
    of its own."""
    token = env.get(_NAME, "")
    return token if _TOKEN.fullmatch(token) and token != os.environ.get(_NAME) else ""


def end_strays(token: str) -> int:
    """Kill every process that carries this token, whatever group or session it is in.

    Args:
        token: see `token_of`; of an empty one there is nobody.

    Returns:
        How many there were.
    """
    if not token or not hasattr(os, "pidfd_open"):
        return 0
    mark = f"{_NAME}={token}".encode()
    ended: set[str] = set()
    for _ in range(_ROUNDS):
        found = {entry.name for entry in _processes() if _end(int(entry.name), mark)}
        if found <= ended:  # those are on their way out
            break
        ended |= found
    return len(ended)


def _processes() -> list[Path]:
    with suppress(OSError):
        return [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return []


def _end(pid: int, mark: bytes) -> bool:
    """Kill this process if it carries the mark. What is held is the process, not its number: should it end meanwhile,
    nobody else is hit."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if mark not in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:  # it has ended, or is not ours
        return False
    finally:
        os.close(handle)
    return True
