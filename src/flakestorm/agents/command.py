"""Agents that are command-line programs, run once per input."""

from __future__ import annotations

import asyncio
import errno
import time
from pathlib import Path

from flakestorm.agents.capture import Capture
from flakestorm.agents.commandline import PROMPT, command_line, takes_prompt
from flakestorm.agents.environ import folder_of
from flakestorm.agents.instances import environment, fill_port
from flakestorm.agents.process import Program
from flakestorm.agents.reading import ResponsePath, read_body
from flakestorm.agents.ready import free_port
from flakestorm.agents.reset import Reset
from flakestorm.config.model import Config
from flakestorm.core.answer import AgentError, Answer
from flakestorm.engine.ports import Boundary, Line
from flakestorm.errors import AgentUnreachable

__all__ = ["CommandAgent"]

OUTPUT_LIMIT_BYTES = 64 * 1024 * 1024


class CommandAgent:
    """A program that reads the input on stdin, or in its arguments where they say `{prompt}`, and prints its answer.

    The answer is its stdout without the final line break; with `response_path`, stdout is JSON and the answer is found
    in it. An exit code other than 0 is a crash. What the program leaves running in its process group ends with it.

    Args:
        config: the whole configuration.
        boundary: gives each run a channel.

    Raises:
        ConfigError: `start` cannot be split into arguments, or `cwd` is no folder.
    """

    def __init__(self, config: Config, boundary: Boundary) -> None:
        self._agent, self._boundary = config.agent, boundary
        self._start = config.agent.start or ""
        self._folder = folder_of(config)
        self._path = None if self._agent.response_path is None else ResponsePath(self._agent.response_path)
        self._reset = Reset(self._agent, Path(config.folder).absolute())
        self._in_arguments = takes_prompt(self._start)
        command_line(self._start)

    async def start(self) -> None:
        """Make resetting ready. The program itself is first started by the first run.

        Raises:
            ConfigError: `reset_function` names nothing.
            AgentUnreachable: its module cannot be imported.
        """
        try:
            await self._reset.start()
        except BaseException:
            await self._reset.close()
            raise

    async def ask(self, prompt: str, line: Line) -> Answer:
        """One run: reset, start, wait for the end."""
        async with self._reset.turn():
            trouble = await self._reset()
            if trouble is not None:
                return Answer(error=AgentError("unreachable", trouble))
            port = free_port()
            env = environment(self._agent, port)
            channel = await self._boundary.channel(env)
            try:
                with channel.bind(line):
                    answer = await self._run(prompt, port, {**env, **channel.env})
                    await channel.settled(gone=True)
                    return answer
            except AgentUnreachable as error:
                return Answer(error=AgentError("unreachable", f"{error}{self._way_out(error, prompt)}"))
            finally:
                channel.close()

    async def close(self) -> None:
        """Let go of what resetting needed; every program ended with its run."""
        await self._reset.close()

    async def _run(self, prompt: str, port: int, env: dict[str, str]) -> Answer:
        start = self._start
        filled = fill_port(start, port) if isinstance(start, str) else [fill_port(part, port) for part in start]
        began = time.perf_counter()
        program = Program(
            command_line(filled, prompt=prompt),
            cwd=self._folder,
            env=env,
            stdin=None if self._in_arguments else prompt.encode("utf-8", "replace"),
            stdout=Capture(OUTPUT_LIMIT_BYTES, keep_first=True),
        )
        try:
            async with asyncio.timeout(self._agent.timeout / 1000):
                code = await program.wait()
        except TimeoutError:
            program.kill()
            await program.wait()
            error = AgentError("timeout", f"the command did not end within {self._agent.timeout} ms")
            return Answer(error=error, latency_ms=_since(began))
        except BaseException:
            program.kill()
            raise
        output = self._output(program, code)
        if isinstance(output, AgentError):
            return Answer(error=output, latency_ms=_since(began), status=code)
        return Answer(output, latency_ms=_since(began), status=code)

    def _way_out(self, error: AgentUnreachable, prompt: str) -> str:
        """What to do about an input that is too long to be an argument."""
        cause = error.__cause__
        if not (self._in_arguments and isinstance(cause, OSError) and cause.errno == errno.E2BIG):
            return ""
        size = len(prompt.encode("utf-8", "replace"))
        return (
            f". The input has {size:,} bytes: leave {PROMPT} out of agent.start, and the agent gets its input on "
            "standard input, whatever its length"
        )

    def _output(self, program: Program, code: int) -> str | AgentError:
        if code != 0:
            return AgentError("crash", f"the command {program.ending()}")
        if program.stdout.overflowed:
            return AgentError("unreadable", f"the command printed more than {OUTPUT_LIMIT_BYTES // 2**20} MB")
        printed = program.stdout.data
        if self._path is not None and not self._path.whole:
            return read_body(printed, self._path)
        return printed.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
