"""Agents in this process: Python callables, and whatever an adapter makes one of."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from flakestorm.agents.loading import importing_from, last_frames, load_object
from flakestorm.agents.mcp import handed
from flakestorm.agents.reading import ResponsePath, read_value
from flakestorm.agents.reset import Reset
from flakestorm.agents.threads import in_thread
from flakestorm.agents.tools import hold_tools
from flakestorm.config.model import Agent as Settings
from flakestorm.config.model import Config
from flakestorm.core.answer import AgentError, Answer
from flakestorm.engine.ports import Boundary, Line
from flakestorm.errors import AgentUnreachable, Misuse

__all__ = ["Adapt", "PythonAgent", "as_callable"]

Ask = Callable[[str], Any]
"""From the input to what the agent answers, or to an awaitable of it."""

Adapt = Callable[[Any, Settings], Ask]
"""Makes what `agent.endpoint` names something to ask. Raises AgentUnreachable if that cannot be."""


def as_callable(found: Any, agent: Settings) -> Ask:
    """A function or an object that can be called; an object with an `invoke` method stands for that method.

    Raises:
        AgentUnreachable: it is neither.
    """
    if inspect.isclass(found):
        raise AgentUnreachable(f"agent.endpoint: {agent.endpoint} is a class; name a function or an instance of it")
    if not callable(found):
        found = getattr(found, "invoke", found)
    if not callable(found):
        raise AgentUnreachable(
            f"agent.endpoint: {agent.endpoint} is of type {type(found).__name__} and cannot be called"
        )
    function: Ask = found
    return function


class PythonAgent:
    """A callable named `module:function`, from text to text (or to anything `response_path` and the usual keys read).

    An async callable runs in the event loop; a sync one in a thread of its own, with the run's context. When
    `agent.timeout` passes, the answer is a time-out; an async callable is cancelled, but nothing can end a thread: a
    sync one goes on in the background until it returns.

    Calls of the functions in `agent.tools` cross the boundary as tools from `start` to `close`.

    Args:
        config: the whole configuration.
        boundary: holds the agent's tools.
        adapt: makes the named object something to ask.
    """

    def __init__(self, config: Config, boundary: Boundary, *, adapt: Adapt = as_callable) -> None:
        self._agent, self._boundary, self._adapt = config.agent, boundary, adapt
        self._folder = Path(config.folder).absolute()
        self._path = None if self._agent.response_path is None else ResponsePath(self._agent.response_path)
        self._reset = Reset(self._agent, self._folder)
        self._function: Ask | None = None
        self._open = ExitStack()

    async def start(self) -> None:
        """Import the tools and hold them, and import the agent.

        Raises:
            AgentUnreachable: something cannot be imported, or is not what it should be.
            ConfigError: `endpoint` or `tools` is not of the form `module:name`.
        """
        if self._function is not None:
            return
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
            if trouble is not None:
                return Answer(error=AgentError("unreachable", trouble))
            began = time.perf_counter()
            output = await self._call(prompt, line)
            latency_ms = (time.perf_counter() - began) * 1000
        if isinstance(output, AgentError):
            return Answer(error=output, latency_ms=latency_ms)
        return Answer(output, latency_ms=latency_ms)

    async def close(self) -> None:
        """Let go of the tools and of the import path."""
        self._function = None
        await self._reset.close()
        self._open.close()

    async def _call(self, prompt: str, line: Line) -> str | AgentError:
        limit = asyncio.timeout(self._agent.timeout / 1000)
        try:
            async with limit:
                with line.active():
                    value = await self._value(prompt)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return _crash(error)  # the agent's own, not a request to us
        except TimeoutError as error:
            if limit.expired():
                return AgentError("timeout", f"no answer within {self._agent.timeout} ms")
            return _crash(error)
        except Misuse:
            raise
        except (Exception, SystemExit) as error:
            return _crash(error)
        if inspect.isgenerator(value) or inspect.isasyncgen(value):
            return AgentError("unreadable", "the agent returned a generator; return the whole text")
        return read_value(value, self._path)

    async def _value(self, prompt: str) -> Any:
        if self._function is None:
            raise Misuse("start() comes before ask()")
        if inspect.iscoroutinefunction(self._function):
            return await self._function(prompt)
        value = await in_thread(self._function, prompt)
        return await value if inspect.isawaitable(value) else value


def _crash(error: BaseException) -> AgentError:
    return AgentError("crash", f"the agent raised {last_frames(error)}")
