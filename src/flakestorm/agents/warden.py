"""Kills the agents of a flakestorm that was itself killed and could not.

A small shell holds the reading end of a pipe and is told the process groups, and the tokens of their programs, as they
come and go. When flakestorm ends, however it ends, the system closes the other end; the shell then kills the groups
that are left, and whoever else carries one of the tokens (see `strays`). One shell serves all programs and costs about
a millisecond, once.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
from contextlib import suppress

__all__ = ["forget", "watch"]

_SCRIPT = """\
trap '' HUP INT QUIT TERM
known=' '
while read -r change one; do
    case $change in
        watch) known="$known$one " ;;
        forget) known="${known%% $one *} ${known#* $one }" ;;
    esac
done
for one in $known; do kill -s KILL -- "-${one%%:*}"; done 2>/dev/null
for round in 1 2 3; do
    for one in $known; do
        token=${one#*:}
        [ -n "$token" ] || continue
        for file in $(grep -lszxF "FLAKESTORM_RUN=$token" /proc/[0-9]*/environ); do
            pid=${file#/proc/}
            kill -s KILL "${pid%/environ}"
        done
    done
    case $known in *[!\\ ]*) sleep 0.1 ;; *) break ;; esac
done 2>/dev/null
"""

_lock = threading.Lock()
_shell: subprocess.Popen[bytes] | None = None


def watch(group: int | None, token: str = "") -> None:
    """This process group is to die with flakestorm, and so is who carries this token. Without a group, of a program
    that is about to be started: it must not outlive a flakestorm that is killed before it knows the group."""
    global _shell
    with _lock:
        if _shell is None or _shell.poll() is not None:
            _shell = _start()
        _tell(f"watch {'' if group is None else group}:{token}\n")


def forget(group: int | None, token: str = "") -> None:
    """This process group is gone, or, without a group, known by now."""
    with _lock:
        _tell(f"forget {'' if group is None else group}:{token}\n")


def _start() -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(  # noqa: S603 - a fixed script
            ["/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for flakestorm, not for its warden
            cwd="/",
            env={name: os.environ[name] for name in ("PATH", "FLAKESTORM_RUN") if name in os.environ},  # no secret
        )
    except OSError:  # a system without a shell: the other nets have to do
        return None


def _tell(message: str) -> None:
    if _shell is not None and _shell.stdin is not None:
        with suppress(OSError):
            _shell.stdin.write(message.encode())


@atexit.register
def _dismiss() -> None:
    with _lock:
        if _shell is not None and _shell.stdin is not None:
            with suppress(OSError):
                _shell.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                _shell.wait(1)
