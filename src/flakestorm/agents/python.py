"""Agents that are Python callables in this process."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from flakestorm.agents.loading import importing_from, last_frames, load_object
from flakestorm.agents.loop import AgentLoop, Overdue
from flakestorm.agents.reading import ResponsePath, read_value
from flakestorm.agents.reset import Reset
from flakestorm.agents.threads import in_thread
from flakestorm.config.model import Config
from flakestorm.core.answer import AgentError, Answer
from flakestorm.engine.ports import Line
from flakestorm.errors import AgentUnreachable, ConfigError, Misuse

__all__ = ["PythonAgent"]


class PythonAgent:
    """A callable named `module:function`, from text to text (or to anything `response_path` and the usual keys read).

    An async callable runs on the agents' own event loop (see `AgentLoop`); a sync one in a thread of its own, with the
    run's context. An object with an `invoke` method stands for that method. When `agent.timeout` passes, the answer is
    a time-out; an async callable is cancelled, but nothing can end a thread: a sync one goes on in the background until
    it returns. Whatever the callable raises, `KeyboardInterrupt` included, is its own crash.

    `agent.env` is in `os.environ` from `start` to `close`, for there is only one environment in a process.

    Args:
        config: the whole configuration.

    Raises:
        ConfigError: the `agent` block says how to launch a program.
    """

    def __init__(self, config: Config) -> None:
        self._agent = config.agent
        for key in ("start", "ready", "cwd"):
            if getattr(self._agent, key) is not None:
                raise ConfigError(
                    "type python is imported and called in flakestorm's own process, so nothing is launched; leave "
                    "this out, or use type http or command",
                    key=f"agent.{key}",
                )
        self._folder = Path(config.folder).absolute()
        self._path = None if self._agent.response_path is None else ResponsePath(self._agent.response_path)
        self._loop = AgentLoop()
        self._reset = Reset(self._agent, self._folder, loop=self._loop)
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
        self._open.enter_context(_environment(self._agent.env))
        self._open.enter_context(importing_from(self._folder))
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
            with line.active():
                return await self._call(prompt)

    async def close(self) -> None:
        """End the agents' loop, and let go of the import path and the environment."""
        self._function = None
        await self._reset.close()
        await self._loop.close()
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

    async def _call(self, prompt: str) -> Answer:
        if self._function is None:
            raise Misuse("start() comes before ask()")
        function, limit_s = self._function, self._agent.timeout / 1000
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


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """While entered, these variables are set; then they are what they were before."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
