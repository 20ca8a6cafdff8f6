"""Agents in this process: Python callables, and whatever an adapter makes one of."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from flakestorm.agents.environ import in_environ
from flakestorm.agents.history import History, with_history
from flakestorm.agents.loop import AgentLoop, Overdue
from flakestorm.agents.mcp import handed
from flakestorm.agents.reading import ResponsePath, read_value
from flakestorm.agents.reset import Reset
from flakestorm.agents.threads import in_thread
from flakestorm.agents.tools import hold_tools
from flakestorm.config.model import Agent as Settings
from flakestorm.config.model import Config
from flakestorm.core.answer import AgentError, Answer
from flakestorm.core.loading import importing_from, last_frames, load_object
from flakestorm.engine.ports import Boundary, Line, Say
from flakestorm.errors import ConfigError, Misuse

__all__ = ["Adapt", "PythonAgent", "as_callable"]

Ask = Callable[..., Any]
"""From the input to what the agent answers, or to an awaitable of it. If it has a parameter `history`, it is given what
was said before in a conversation."""

Adapt = Callable[[Any, Settings], Ask]
"""Makes what `agent.endpoint` names something to ask. Raises ConfigError if that cannot be."""


def as_callable(found: Any, agent: Settings) -> Ask:
    """A function or an object that can be called; an object with an `invoke` method stands for that method.

    Raises:
        ConfigError: it is neither.
    """
    if inspect.isclass(found):
        raise ConfigError(f"{agent.endpoint} is a class; name a function or an instance of it", key="agent.endpoint")
    if not callable(found):
        found = getattr(found, "invoke", found)
    if not callable(found):
        said = f"{agent.endpoint} is of type {type(found).__name__} and cannot be called; name a function"
        raise ConfigError(said, key="agent.endpoint")
    function: Ask = found
    return function


class PythonAgent:
    """A callable named `module:function`, from text to text (or to anything `response_path` and the usual keys read).

    An async callable runs on the agents' own event loop (see `AgentLoop`); a sync one in a thread of its own, with the
    run's context. When `agent.timeout` passes, the answer is
    a time-out; an async callable is cancelled, but nothing can end a thread: a sync one goes on in the background until
    it returns. Whatever the callable raises, `KeyboardInterrupt` included, is its own crash.

    `agent.env` is in `os.environ` from `start` to `close`, for there is only one environment in a process.

    Calls of the functions in `agent.tools` cross the boundary as tools from `start` to `close`.

    Args:
        config: the whole configuration.
        boundary: holds the agent's tools.
        adapt: makes the named object something to ask.

    Raises:
        ConfigError: the `agent` block says how to launch a program.
    """

    def __init__(self, config: Config, boundary: Boundary, *, adapt: Adapt = as_callable) -> None:
        self._agent, self._boundary, self._adapt = config.agent, boundary, adapt
        for key in ("start", "ready", "cwd"):
            if getattr(self._agent, key) is not None:
                raise ConfigError(
                    f"type {self._agent.type} is imported and called in flakestorm's own process, so nothing is "
                    "launched; leave this out, or use type http or command",
                    key=f"agent.{key}",
                )
        self._folder = Path(config.folder).absolute()
        self._path = None if self._agent.response_path is None else ResponsePath(self._agent.response_path)
        self._loop = AgentLoop()
        self._reset = Reset(self._agent, self._folder, loop=self._loop)
        self._function: Ask | None = None
        self._open = ExitStack()

    async def start(self) -> None:
        """Import the tools and hold them, and import the agent.

        Raises:
            AgentUnreachable: the code of a module fails when it is imported.
            ConfigError: there is nothing of the name that `endpoint`, `tools` or `reset_function` gives, or it is not
                what it should be.
        """
        if self._function is not None:
            return
        self._open.enter_context(in_environ(self._agent.env))
        self._open.enter_context(importing_from(self._folder))
        self._open.enter_context(handed(self._agent, self._folder))
        try:
            if self._agent.tools is not None:
                self._open.enter_context(hold_tools(self._agent.tools, self._folder, self._boundary))
            found = load_object(self._agent.endpoint, folder=self._folder, key="agent.endpoint")
            self._function = self._adapt(found, self._agent)
            await self._reset.start()
        except BaseException:
            await self.close()
            raise

    async def ask(self, prompt: str, line: Line) -> Answer:
        """One run, reset included."""
        async with self._reset.turn():
            trouble = await self._reset()
            return await self._answer(prompt, None, trouble, line)

    @asynccontextmanager
    async def conversation(self, line: Line) -> AsyncIterator[Say]:
        """One run of several turns."""
        async with self._reset.turn():
            trouble, history = await self._reset(), History()

            async def say(prompt: str, _: object = None) -> Answer:
                answer = await self._answer(prompt, history, trouble, line)
                history.add(prompt, answer.output)
                return answer

            yield say

    async def _answer(self, prompt: str, history: History | None, trouble: str | None, line: Line) -> Answer:
        if trouble is not None:
            return Answer(error=AgentError("unreachable", trouble))
        with line.active():
            return await self._call(prompt, history)

    async def close(self) -> None:
        """End the agents' loop, and let go of the tools, the import path and the environment."""
        self._function = None
        await self._reset.close()
        await self._loop.close()
        self._open.close()

    async def _call(self, prompt: str, history: History | None) -> Answer:
        if self._function is None:
            raise Misuse("start() comes before ask()")
        function, limit_s = with_history(self._function, history), self._agent.timeout / 1000
        began = time.perf_counter()

        async def asked() -> Any:
            nonlocal began
            began = time.perf_counter()  # it may have had to wait for its turn on the loop
            return await _crashing(lambda: function(prompt))

        value: Any
        try:
            if inspect.iscoroutinefunction(function):
                value = await self._loop.run(asked, limit_s=limit_s)
            else:
                async with asyncio.timeout(limit_s):
                    value = await in_thread(_crash_or_value, function, prompt)
                if inspect.isawaitable(awaitable := value):
                    left_s = limit_s - (time.perf_counter() - began)
                    value = await self._loop.run(lambda: _crashing(lambda: awaitable), limit_s=left_s)
        except (Overdue, TimeoutError):
            value = AgentError("timeout", f"no answer within {self._agent.timeout} ms")
        latency_ms = (time.perf_counter() - began) * 1000
        output = value if isinstance(value, AgentError) else self._read(value)
        if isinstance(output, AgentError):
            return Answer(error=output, latency_ms=latency_ms)
        return Answer(output, latency_ms=latency_ms)

    def _read(self, value: object) -> str | AgentError:
        if inspect.isgenerator(value) or inspect.isasyncgen(value):
            return AgentError("unreadable", "the agent returned a generator; return the whole text")
        return read_value(value, self._path)


def _crash_or_value(function: Callable[[str], Any], prompt: str) -> Any:
    """What it returns, or its crash. Decided here, where nobody else's exceptions (a Ctrl-C, our own time-out) come."""
    try:
        return function(prompt)
    except Misuse:
        raise
    except BaseException as error:
        return _crash(error)


async def _crashing(value: Callable[[], Awaitable[Any]]) -> Any:
    """As `_crash_or_value`, on the agents' loop."""
    try:
        return await value()
    except Misuse:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _crash(error)  # the agent's own, not a request of ours
    except BaseException as error:
        return _crash(error)


def _crash(error: BaseException) -> AgentError:
    return AgentError("crash", f"the agent raised {last_frames(error)}")
