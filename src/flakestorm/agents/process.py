"""Programs that are started and stopped: the agent under test as a process group of its own.

A program gets its own session, so a signal to its group reaches everything it started and nothing else. Two threads
keep it, whatever the event loop is doing: one drains its output into bounded memory, so it never blocks on a full pipe;
the other waits for its end, kills what it left behind (in its group, and by `flakestorm.agents.strays` outside it), and
reaps it. The wait leaves the process unreaped until its group is gone, so its number cannot be given to a stranger in
between.

Three nets make sure nothing outlives flakestorm: `stop` (SIGTERM, grace, SIGKILL), which turns into SIGKILL at once
when it is cancelled; `atexit`, for an interpreter that ends without having stopped its programs; and
`flakestorm.agents.warden`, for one that is killed. (PR_SET_PDEATHSIG is not used: it needs code between fork and exec,
which is unsafe in a process with threads, and it fires when the starting *thread* ends.)
"""

from __future__ import annotations

import asyncio
import atexit
import errno
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from shutil import which

from flakestorm.agents import warden
from flakestorm.agents.capture import TAIL_BYTES, Capture
from flakestorm.agents.strays import end_strays, token_of
from flakestorm.errors import AgentUnreachable

__all__ = ["ARGUMENT_LIMIT_BYTES", "Program"]

ARGUMENT_LIMIT_BYTES = 128 * 1024
"""What Linux takes of one argument or variable (MAX_ARG_STRLEN: 32 pages of 4 KB), the byte that ends it included."""

_CHUNK_BYTES = 64 * 1024
_STRANGER_S = 5.0  # how long somebody outside the group, who holds the pipe, may go on writing before we turn away

_alive: set[Program] = set()


class Program:
    """One program, running from the moment this is made.

    Args:
        argv: the program and its arguments.
        cwd: the folder it runs in.
        env: its whole environment; its FLAKESTORM_RUN is how processes are known that left the group.
        stdin: what it reads on standard input; by default there is nothing to read.
        stdout: where its output goes; by default the last 64 KB are kept.

    Raises:
        AgentUnreachable: it cannot be started; the message says why.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes | None = None,
        stdout: Capture | None = None,
    ) -> None:
        self.stdout, self.stderr = stdout or Capture(), Capture()
        self._token = token_of(env)
        warden.watch(None, self._token)
        try:
            self._popen = _spawn(argv, cwd, env, stdin)
            warden.watch(self._popen.pid, self._token)
        finally:
            warden.forget(None, self._token)
        self._grace_until = 0.0
        self._gone = threading.Event()
        self._ended: Future[int] = Future()
        self._ended.set_running_or_notify_cancel()  # a waiter that is cancelled must not cancel the end itself
        _alive.add(self)
        drain = threading.Thread(target=self._drain, name=f"flakestorm-drain-{self.pid}", daemon=True)
        drain.start()
        threading.Thread(target=self._keep, args=(drain,), name=f"flakestorm-keep-{self.pid}", daemon=True).start()

    @property
    def pid(self) -> int:
        """Number of the process, which is that of its group too."""
        return self._popen.pid

    @property
    def code(self) -> int | None:
        """Its exit code (negative: the signal that ended it), or None while it runs."""
        return self._ended.result() if self._ended.done() else None

    @property
    def running(self) -> bool:
        return not self._ended.done()

    async def wait(self) -> int:
        """Its exit code, once it and its group are gone and their output has been read."""
        return await asyncio.wrap_future(self._ended)

    async def stop(self, *, grace_s: float = 3.0) -> None:
        """End the whole group: SIGTERM, `grace_s` seconds of patience, then SIGKILL. Returns when it is gone.

        Cancelling this kills the group at once.
        """
        if not self.running:
            return
        self._grace_until = time.monotonic() + grace_s
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                await self.wait()
        except TimeoutError:
            self.kill()
            await self.wait()
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """SIGKILL to the whole group, without waiting for its end, nor for that of what has left it."""
        self._grace_until = 0.0
        if self.running:
            self._signal(signal.SIGKILL)

    def ending(self) -> str:
        """How it ended, with its last lines, to complete "the agent ..."."""
        code = self.code
        if code is None:
            how = "is still running"
        elif code < 0:
            how = f"was killed by {_signal_name(-code)}"
        else:
            how = f"exited with code {code}"
        lines = self.last_lines()
        return f"{how}; its last lines:\n{lines}" if lines else f"{how} without printing anything"

    def last_lines(self, count: int = 12) -> str:
        """The last lines of its stderr, or of its stdout if that is empty, indented."""
        text = self.stderr.data.strip() or self.stdout.data[-TAIL_BYTES:].strip()
        return "\n".join(f"    {line[:500]}" for line in text.decode("utf-8", "replace").splitlines()[-count:])

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _keep(self, drain: threading.Thread) -> None:
        """Wait for the end, clear the group, reap, and say so. Runs in a thread of its own."""
        _until_exit(self.pid)
        if self._grace_until == 0.0:
            self._signal(signal.SIGKILL)  # whatever it left behind; still unreaped, so the number is still its own
            code = self._popen.wait()
        else:
            code = self._popen.wait()
            # Ended output means that all have ended, even where nobody reaps orphans and their numbers linger.
            while time.monotonic() < self._grace_until and drain.is_alive() and _exists(self.pid):
                time.sleep(0.01)
            self._signal(signal.SIGKILL)
        end_strays(self._token)
        warden.forget(self.pid, self._token)
        self._gone.set()
        drain.join(_STRANGER_S)
        _alive.discard(self)
        self._ended.set_result(code)

    def _drain(self) -> None:
        """Read both pipes until they end, or hold nothing more from the group. Runs in a thread of its own."""
        streams = ((self._popen.stdout, self.stdout), (self._popen.stderr, self.stderr))
        pipes = [(pipe, capture) for pipe, capture in streams if pipe is not None]
        with selectors.DefaultSelector() as selector:
            for pipe, capture in pipes:
                selector.register(pipe, selectors.EVENT_READ, capture)
            while selector.get_map():
                gone = self._gone.is_set()
                ready = selector.select(0.0 if gone else 0.1)
                if (
                    gone and not ready
                ):  # all that the group wrote has been read; whoever still holds the pipe is no part
                    break
                for key, _ in ready:
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    if chunk:
                        key.data.add(chunk)
                    else:
                        selector.unregister(key.fileobj)
        for pipe, _ in pipes:
            pipe.close()


def _spawn(argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: bytes | None) -> subprocess.Popen[bytes]:
    if not cwd.is_dir():
        raise AgentUnreachable(f"the agent cannot be started: the folder {cwd} does not exist (agent.cwd)")
    # A file, not a pipe: input of any size is there at once and nobody has to keep writing.
    with tempfile.TemporaryFile() as source:
        if stdin is not None:
            source.write(stdin)
            source.seek(0)
        try:
            return subprocess.Popen(  # noqa: S603 - running what the config says is the purpose
                _with_python(argv, env),
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL if stdin is None else source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise AgentUnreachable(
                f"the agent cannot be started: there is no program {argv[0]!r}, neither on PATH nor from {cwd}"
            ) from error
        except PermissionError as error:
            raise AgentUnreachable(
                f"the agent cannot be started: {argv[0]!r} is not executable (chmod +x, or name its interpreter)"
            ) from error
        except OSError as error:
            raise AgentUnreachable(f"the agent cannot be started: {argv[0]!r}: {_why(error, argv, env)}") from error
        except ValueError as error:  # NUL bytes
            raise AgentUnreachable(f"the agent cannot be started: {argv[0]!r}: {error}") from error


def _why(error: OSError, argv: Sequence[str], env: Mapping[str, str]) -> str:
    """What the system says, and of what is too long, how long it is."""
    if error.errno != errno.E2BIG:
        return str(error)
    arguments = [len(os.fsencode(word)) for word in argv]
    variables = {name: len(os.fsencode(f"{name}={value}")) for name, value in env.items()}
    longest = max(variables, key=lambda name: variables[name], default="")
    named = f", the longest variable, {longest}, {variables[longest]:,}" if longest else ""
    return (
        f"Argument list too long: the longest argument has {max(arguments):,} bytes{named}, and all together have "
        f"{sum(arguments) + sum(variables.values()):,}; Linux takes {ARGUMENT_LIMIT_BYTES - 1:,} bytes of each"
    )


def _with_python(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """`python` means this interpreter where PATH knows none, as with a flakestorm that was called by its full path."""
    if argv[0] in ("python", "python3") and which(argv[0], path=env.get("PATH", os.defpath)) is None:
        return [sys.executable, *argv[1:]]
    return list(argv)


def _until_exit(pid: int) -> None:
    """Block until the process has ended, without reaping it where the system allows that."""
    if hasattr(os, "waitid"):
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@atexit.register
def _kill_all() -> None:
    for program in list(_alive):
        program.kill()
