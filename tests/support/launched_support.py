"""A launched Python program that is asked again and again, each time as another run: recorded once, then played again.

The program's text defines `play(mode)`; it is run in a process of its own, under the shim, with threads that take turns
as often as they can while another one always has something to do.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from e2e_support import clean_env
from flakestorm.api.recording import line_of, moment
from flakestorm.api.replaying import drawing_for, load_tape
from flakestorm.boundary.channel import Channel
from flakestorm.boundary.draws import Drawing
from flakestorm.boundary.hub import Hub
from flakestorm.boundary.session import Crossing
from flakestorm.core.clock import Clock
from flakestorm.core.draws import Draws
from flakestorm.core.ledger import Ledger
from flakestorm.tape.lanes import CONNECTIONS
from flakestorm.tape.writer import Recorder

__all__ = ["Launched", "launched"]

PATIENCE_S = 120.0

_LOOP = """

if __name__ == "__main__":
    import json, sys, threading

    def always_busy():
        while True:
            pass

    sys.setswitchinterval(1e-4)
    threading.Thread(target=always_busy, daemon=True).start()
    print("answer", json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print("answer", json.dumps(play(line.strip())), flush=True)
"""


class Launched:
    """The program, waiting to be asked."""

    def __init__(self, process: asyncio.subprocess.Process, channel: Channel, draws: Draws) -> None:
        self._process, self._channel, self._draws = process, channel, draws

    async def record(self, path: Path, mode: str) -> Any:
        """One run, on a tape."""
        clock, drawing = Clock(time.perf_counter, skips=False), Drawing(self._draws)
        form = {} if self._draws.form > 1 else {"draws": {"seed": self._draws.seed, "epoch_ms": self._draws.epoch_ms}}
        header = {"run": "r", "lanes": CONNECTIONS, "draws": self._draws.header, **form, **moment()}
        recorder = Recorder(
            path, clock=clock.now, ledger=Ledger(), header=header, keep=False, reached=drawing.reach
        )  # fmt: skip
        answer = await self._run(line_of("r", recorder, clock, (), (), drawing), mode)
        recorder.close(output=json.dumps(answer))
        return answer

    async def replay(self, path: Path, mode: str) -> tuple[Any, list[str], str | None]:
        """One run with the tape in the world's place: its answer, what differs, and the digest of the tape that is
        rebuilt meanwhile."""
        loaded = load_tape(path)
        player, clock = loaded.player(), Clock(time.perf_counter, skips=False)
        recorder = Recorder(
            None, clock=clock.now, ledger=Ledger(), header={}, keep=False, redactor=loaded.redactor
        )  # fmt: skip
        drawing = drawing_for(player, loaded.tape)
        answer = await self._run(line_of("r", recorder, clock, (), (player.stage,), drawing), mode)
        recorder.close(output=json.dumps(answer))
        return answer, [*player.problems, *player.missing()], recorder.digest

    async def _run(self, line: Crossing, mode: str) -> Any:
        write = self._process.stdin
        assert write is not None
        with self._channel.bind(line):
            write.write(f"{mode}\n".encode())
            answer = await self.said()
            await self._channel.settled()
        return answer

    async def said(self) -> Any:
        """What it says next."""
        read = self._process.stdout
        assert read is not None
        async with asyncio.timeout(PATIENCE_S):
            while not (said := await read.readline()).startswith(b"answer "):
                assert said, "the program has ended; stderr says why"
        return json.loads(said[7:])


@asynccontextmanager
async def launched(
    program: str, folder: Path, env: Mapping[str, str], draws: Draws | None = None
) -> AsyncIterator[Launched]:
    """Launch it.

    Args:
        program: its text, which defines `play(mode)`.
        folder: where it is put.
        env: variables that it is given.
        draws: what it draws from.
    """
    file = folder / "launched_program.py"
    file.write_text(program + _LOOP)
    draws = draws or Draws(42, time.time_ns() // 1_000_000)
    hub = Hub(environ={}, draws=draws)
    try:
        channel = await hub.channel(dict(env))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(file),
            env={**clean_env(env), **channel.env},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            agent = Launched(process, channel, draws)
            await agent.said()
            yield agent
        finally:
            process.kill()
            await process.wait()
            channel.close()
    finally:
        await hub.close()
