"""Running a command as if flakestorm were not there: its standard streams and its exit code pass through."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import IO

from flakestorm.agents import warden
from flakestorm.agents.environ import inherited
from flakestorm.agents.strays import end_strays, token_of
from flakestorm.boundary.hub import Hub
from flakestorm.boundary.session import Crossing
from flakestorm.errors import Misuse

__all__ = ["KEPT_BYTES", "Ran", "demand", "launch"]

KEPT_BYTES = 64 * 2**20
"""How much of a command's output, and of its input, is kept."""

_CHUNK_BYTES = 64 * 1024
_LATE_S = 2.0  # for output that somebody still holds the pipe of, after the command has ended
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended.

    Args:
        code: its exit code as a shell says it: 128 and the number of the signal that ended it.
        output: its standard output.
        stdin: what it was given to read; None where that was a terminal.
        interrupted: whether a signal to flakestorm ended it.
    """

    code: int
    output: str
    stdin: bytes | None
    interrupted: bool = False

    @property
    def error(self) -> str | None:
        """How it failed, if it did."""
        return f"the command exited with code {self.code}" if self.code else None


def demand(argv: Sequence[str], cwd: Path) -> None:
    """There must be such a program.

    Raises:
        Misuse: there is none, or no such folder.
    """
    if not cwd.is_dir():
        raise Misuse(f"the folder {cwd}, in which the command is to run, does not exist")
    if not argv:
        raise Misuse("there is no command to run; give it after --")
    if which(argv[0]) is None and which(str(cwd / argv[0])) is None and not _is_python(argv[0]):
        raise Misuse(f"there is no program {argv[0]!r}, neither on PATH nor in {cwd}")


async def launch(argv: Sequence[str], *, cwd: Path, line: Crossing, stdin: bytes | None, quiet: bool = False) -> Ran:
    """Run a command whose calls cross on this line.

    Args:
        argv: the program and its arguments.
        cwd: where it runs.
        line: the run's crossing.
        stdin: what it reads; None gives it our own standard input.
        quiet: whether its output is only kept, not passed on.
    """
    hub = Hub(draws=None if line.draws is None else line.draws.draws)
    try:
        channel = await hub.channel({})
        env = {**inherited(), **channel.env}
        with channel.bind(line):
            ran = await _run(_argv(argv), cwd, env, stdin, quiet)
            await channel.settled(gone=True)
        channel.close()
        return ran
    finally:
        await hub.close()


async def _run(argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: bytes | None, quiet: bool) -> Ran:
    terminal = stdin is None and _is_terminal()
    if not terminal:
        warden.watch(None, token_of(env))
    try:
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - nothing else runs on this loop yet; it is what was asked for
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=None if terminal else subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=None if terminal else 0,  # with a terminal, its Ctrl-C reaches the command by itself
        )
    except OSError as error:
        raise Misuse(f"{argv[0]!r} cannot be started: {error.strerror or error}") from error
    read, written = bytearray(), bytearray()
    ended = threading.Event()
    threads = [threading.Thread(target=_drain, args=(process.stdout, written, quiet), daemon=True)]
    if not terminal:
        threads.append(threading.Thread(target=_feed, args=(process.stdin, stdin, read, ended), daemon=True))
    for thread in threads:
        thread.start()
    if not terminal:
        warden.watch(process.pid, token_of(env))
        warden.forget(None, token_of(env))
    with _forwarding(process, terminal) as signals:
        try:
            code = await asyncio.to_thread(process.wait)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            ended.set()
            end_strays(token_of(env))
            if not terminal:
                warden.forget(process.pid, token_of(env))
    await asyncio.to_thread(threads[0].join, _LATE_S)
    code = code if code >= 0 else 128 - code
    output = bytes(written[:KEPT_BYTES]).decode("utf-8", "replace")
    return Ran(code, output, None if terminal else bytes(read), bool(signals))


def _feed(pipe: IO[bytes], given: bytes | None, read: bytearray, ended: threading.Event) -> None:
    """Give the command its input, and remember it. What it never reads because it has ended is not waited for."""
    with suppress(OSError, ValueError), pipe:
        if given is not None:
            read += given
            pipe.write(given)
            return
        source = sys.stdin.fileno() if sys.stdin is not None else -1
        while source >= 0 and not ended.is_set():
            ready, _, _ = select.select([source], [], [], 0.1)
            if not ready:
                continue
            chunk = os.read(source, _CHUNK_BYTES)
            if not chunk:
                return
            if len(read) < KEPT_BYTES:
                read += chunk
            pipe.write(chunk)
            pipe.flush()


def _drain(pipe: IO[bytes], written: bytearray, quiet: bool) -> None:
    """Pass the command's output on as it comes, and keep it."""
    with pipe:
        while chunk := os.read(pipe.fileno(), _CHUNK_BYTES):
            if len(written) < KEPT_BYTES:
                written += chunk
            if not quiet:
                with suppress(OSError):  # our own reader has left; the command goes on
                    _write(1, chunk)


def _write(out: int, data: bytes) -> None:
    while data:
        data = data[os.write(out, data) :]


@contextmanager
def _forwarding(process: subprocess.Popen[bytes], terminal: bool) -> Iterator[list[int]]:
    """While entered, signals to us are the command's; gives those that came."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def forward(number: int, _: object) -> None:
        came.append(number)
        with suppress(ProcessLookupError):
            if not terminal:
                os.killpg(process.pid, number)
            elif number != signal.SIGINT:
                process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_terminal() -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return os.isatty(sys.stdin.fileno())
    return False


def _is_python(word: str) -> bool:
    return word in ("python", "python3")


def _argv(argv: Sequence[str]) -> list[str]:
    """`python` means this interpreter where PATH knows none."""
    return [sys.executable, *argv[1:]] if _is_python(argv[0]) and which(argv[0]) is None else list(argv)
