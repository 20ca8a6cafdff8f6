"""Agents that are Python callables in this process."""

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
from flakestorm.config.model import Config
from flakestorm.core.answer import AgentError, Answer
from flakestorm.engine.ports import Line
from flakestorm.errors import AgentUnreachable, Misuse

__all__ = ["PythonAgent"]


class PythonAgent:
    """A callable named `module:function`, from text to text (or to anything `response_path` and the usual keys read).

    An async callable runs in the event loop; a sync one in a thread of its own, with the run's context. An object with
    an `invoke` method stands for that method. When `agent.timeout` passes, the answer is a time-out; an async callable
    is cancelled, but nothing can end a thread: a sync one goes on in the background until it returns.

    Args:
        config: the whole configuration.
    """

    def __init__(self, config: Config) -> None:
        self._agent = config.agent
        self._folder = Path(config.folder).absolute()
        self._path = None if self._agent.response_path is None else ResponsePath(self._agent.response_path)
        self._reset = Reset(self._agent, self._folder)
        self._function: Callable[[str], Any] | None = None
        self._open = ExitStack()

    async def start(self) -> None:
        """Import the callable.

        Raises:
            AgentUnreachable: it cannot be imported, or is not something to call with a text.
            ConfigError: `endpoint` is not of the form `module:function`.
        """
        if self._function is not None:
            return
        self._open.enter_context(importing_from(self._folder))
        self._open.enter_context(handed(self._agent, self._folder))
        try:
            self._function = self._load(self._agent.endpoint)
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
        """Let go of the import path."""
        self._function = None
        await self._reset.close()
        self._open.close()

    def _load(self, name: str) -> Callable[[str], Any]:
        found = load_object(name, folder=self._folder, key="agent.endpoint")
        if inspect.isclass(found):
            raise AgentUnreachable(f"agent.endpoint: {name} is a class; name a function or an instance of it")
        if not callable(found):
            found = getattr(found, "invoke", found)
        if not callable(found):
            raise AgentUnreachable(f"agent.endpoint: {name} is of type {type(found).__name__} and cannot be called")
        function: Callable[[str], Any] = found
        return function

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
