"""What saves and puts back the state around an agent: `agent.snapshot` while a run is recorded, `agent.restore` where a
fork of it begins.

A tape brings back a conversation, not a database or a disk; only its owner knows how to. So both are the owner's: a
command line, which finds `FLAKESTORM_SITE` and `FLAKESTORM_TAPE` in its environment, or a function of the two. What was
saved before the call of a site is what a fork at that site needs.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import shlex
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flakestorm.boundary.session import outside
from flakestorm.core.call import Call
from flakestorm.core.loading import importing_from, load_object
from flakestorm.core.pipeline import Interceptor
from flakestorm.core.site import Site
from flakestorm.errors import ConfigError, Misuse, WorldFailed

if TYPE_CHECKING:
    from flakestorm.config.model import Config

__all__ = ["Snapshots", "command_hook", "restoring", "snapshots_of"]

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class Snapshots:
    """Saves the state before each call that a recorded run makes; the call waits for it.

    Args:
        save: is given the call's site.

    `failure` is the first one that did not come about, in words; there are none after it, and the run goes on.
    """

    def __init__(self, save: Callable[[Site], object] | None) -> None:
        self._save, self._lock = save, threading.Lock()  # one at a time, whatever the agent does at once
        self.failure: str | None = None

    @property
    def stages(self) -> tuple[Interceptor, ...]:
        """What stands between the recorder and the world; nothing where nothing is saved."""
        return () if self._save is None else (self._stage,)

    def _stage(self, call: Call) -> Call:
        with self._lock:
            if self._save is not None and call.site is not None and self.failure is None:
                try:
                    with outside():
                        self._save(call.site)
                except Exception as error:
                    self.failure = f"no snapshot at {call.site}, nor after it: {error}"
        return call


def snapshots_of(config: Config | None, tape: Path) -> Snapshots:
    """Those that the config asks for, of a run that is recorded on this tape."""
    said = None if config is None else config.agent.snapshot
    return Snapshots(None if config is None or said is None else _hook("agent.snapshot", said, config, tape))


def restoring(config: Config | None, tape: Path) -> Callable[[Site], None] | None:
    """What the config puts back at a fork of this tape; None where it says nothing."""
    said = None if config is None else config.agent.restore
    return None if config is None or said is None else _hook("agent.restore", said, config, tape)


def command_hook(command: str, tape: Path, *, key: str, cwd: Path | None = None) -> Callable[[Site], None]:
    """What runs this command, which finds site and tape in its environment.

    Args:
        command: words as a shell has them; no shell runs them.
        tape: of the run whose state it is.
        key: what the user called it.
        cwd: where it runs; here when None.

    Raises:
        Misuse: it is no command line.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Misuse(f"{key} {command!r} is no command line: {error}") from error
    if not words:
        raise Misuse(f"{key} needs a command")

    def run(site: Site) -> None:
        env = {**os.environ, "FLAKESTORM_SITE": str(site), "FLAKESTORM_TAPE": str(tape.absolute())}
        try:
            done = subprocess.run(  # noqa: S603 - asked for
                words, env=env, cwd=cwd, check=False, stdin=subprocess.DEVNULL, stdout=2
            )
        except OSError as error:
            raise WorldFailed(f"{key} {words[0]!r} cannot be started: {error.strerror}") from error
        if done.returncode:
            raise WorldFailed(f"{key} {command!r} exited with code {done.returncode}")

    return run


def _hook(key: str, said: str, config: Config, tape: Path) -> Callable[[Site], None]:
    folder = Path(config.folder)
    if not _FUNCTION.fullmatch(said):
        return command_hook(said, tape, key=key, cwd=folder / (config.agent.cwd or "."))

    def call(site: Site) -> None:
        with importing_from(folder):
            try:
                found: Any = load_object(said, folder=folder, key=key)
            except ConfigError as error:  # noticed in the middle of a run, where it is the environment that failed
                raise WorldFailed(str(error)) from error
            if not callable(found):
                raise WorldFailed(f"{key}: {said} is {type(found).__name__}, not a function")
            result = found(str(site), str(tape.absolute()))
            if inspect.isawaitable(result):
                with ThreadPoolExecutor(1) as apart:  # here, a loop may be running
                    apart.submit(asyncio.run, _whole(result)).result()

    return call


async def _whole(result: Any) -> Any:
    return await result
